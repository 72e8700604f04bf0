// Lines from whoever talks to the tool: with editing and history on a terminal, plain otherwise.
#pragma once

#include <memory>
#include <string>

namespace tsq::tool {

class LineReader {
 public:
  // On a terminal prompts are shown on stderr, and what was typed before can be had with the arrow
  // keys. history_file, if not empty, keeps that between runs; a file that holds something else is
  // left as it is, with a warning.
  explicit LineReader(std::string history_file);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  enum class Status { line, end, interrupted };
  struct Line {
    Status status;
    std::string text;   // without its line break
    bool more = false;  // on a terminal: the next line is there already, so this one was pasted
  };
  Line read(const char* prompt);

  // Adds what was typed to the history.
  void remember(const std::string& text);

 private:
  class Terminal;
  std::unique_ptr<Terminal> terminal_;  // null where standard input is none
};

}  // namespace tsq::tool
