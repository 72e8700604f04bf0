#include "chat.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "base/errorf.h"
#include "base/output_file.h"
#include "line_reader.h"
#include "log.h"
#include "support.h"
#include "thoughts.h"

namespace tsq::tool {
namespace {

constexpr char kBlank[] = " \t\r\n";

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlank) - first + 1));
}

// The text of a file: "-" is one here, standard input holds the conversation.
Result<std::string> read_file(const std::string& path) {
  return read_text(path == "-" ? "./-" : path);
}

std::string with_home(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

// What somebody who typed a command waits for, whatever the log level.
void reply(const std::string& text) {
  if (log_json()) return info("%s", text.c_str());
  std::fprintf(stderr, "%s\n", text.c_str());
}

// An answer as it grows: shown, its thoughts dimmed where there is colour and between their tags
// where there is none, and kept.
class AnswerSink final : public Sink {
 public:
  AnswerSink(const Tokenizer& tokenizer, bool in_thought, std::int32_t budget)
      : dim_(has_color(stdout)), begun_(in_thought), splitter_(in_thought), budget_(budget) {
    for (const char* tag : {"<think>", "</think>"})
      if (const auto token = tokenizer.find(tag)) tags_.push_back(*token);
    if (auto closing =
            tokenizer.encode("\n</think>\n\n", {.add_special = false, .parse_special = true}))
      closing_ = *std::move(closing);
    if (in_thought && !dim_) put("<think>\n");
  }

  bool show(std::string_view text) override { return take(splitter_.push(text)); }
  std::vector<Token> forced() override {
    if (!splitter_.in_thought() || thought_tokens_++ != budget_) return {};
    return closing_;
  }
  bool shows(Token token) const override {
    return std::find(tags_.begin(), tags_.end(), token) != tags_.end();
  }

  // After the last text. False where it could not be shown.
  bool finish() {
    take(splitter_.finish());
    set_dim(false);
    if (!ends_line_) put("\n");
    return !failed_;
  }
  std::string thoughts() const { return trimmed(thoughts_); }
  std::string answer() const {
    return has_thoughts_
               ? answer_.substr(std::min(answer_.find_first_not_of(kBlank), answer_.size()))
               : answer_;
  }

 private:
  using Kind = ThoughtSplitter::Kind;

  bool take(const std::vector<ThoughtSplitter::Piece>& pieces) {
    for (const auto& [kind, text] : pieces) {
      if (kind == Kind::answer) answer_ += text;
      if (kind == Kind::thought) thoughts_ += text;
      if (kind != Kind::answer) has_thoughts_ = true;
      if (kind == Kind::tag && (dim_ || (begun_ && text.ends_with("<think>")))) continue;
      set_dim(kind == Kind::thought);
      put(text);
    }
    return !failed_;
  }
  void set_dim(bool dim) {
    if (!dim_ || dim == is_dim_) return;
    is_dim_ = dim;
    if (!failed_) failed_ = !dim_text(dim);
  }
  void put(std::string_view text) {
    if (!failed_) failed_ = !print(text);
    ends_line_ = text.ends_with('\n');
  }

  bool dim_, is_dim_ = false;
  bool begun_;  // the prompt has <think>, which is shown once
  ThoughtSplitter splitter_;
  std::int32_t budget_, thought_tokens_ = 0;
  std::vector<Token> tags_, closing_;
  std::string thoughts_, answer_;
  bool has_thoughts_ = false, ends_line_ = true, failed_ = false;
};

class Chat {
 public:
  Chat(const Model& model, Session& session, Sampler& sampler, const GenerationOptions& generation,
       const ChatOptions& options)
      : tokenizer_(*model.tokenizer()),
        reader_(session),
        sampler_(sampler),
        generation_(generation),
        options_(options),
        dialogue_(model, options.dialogue),
        lines_(options.history_file),
        at_terminal_(is_terminal(stdin) && !options.single_turn) {}

  int run(const std::optional<std::string>& first) {
    watch_interrupt();
    if (at_terminal_)
      info_fact("chat", "/help lists the commands; Ctrl-C stops an answer, Ctrl-D ends", {});
    Outcome outcome = first ? send(*first) : Outcome{};
    const auto is_over = [&] {
      return outcome.leaves || (options_.single_turn && (first || outcome.answered));
    };
    while (!is_over()) outcome = turn();
    if (options_.timings && answered_.tokens > 0) {
      reader_.timing().print("prompt");
      answered_.print("generated");
    }
    return outcome.exit_code;
  }

 private:
  // What a line from the user led to.
  struct Outcome {
    bool leaves = false;
    int exit_code = kSuccess;
    bool answered = false;
  };
  struct Command {
    const char* name;
    const char* argument;  // null for none
    const char* help;
    Outcome (Chat::*run)(const std::string& argument);
  };
  static const Command kCommands[];

  Outcome turn();
  std::optional<std::string> read_message(Outcome& outcome);
  Outcome send(const std::string& message);
  // Answers the last message. After an error the messages are those before.
  Outcome respond(chat::Json before);
  Outcome command(const std::string& line);

  // An error that leaves the conversation as it was: somebody at a terminal goes on.
  Outcome survive(const Error& error) {
    return {.leaves = !at_terminal_, .exit_code = fail(error)};
  }
  Outcome say(const std::string& text) {
    reply(text);
    return {};
  }

  // Of what was being typed.
  void end_line() {
    if (!log_json()) std::fputc('\n', stderr);
  }

  Outcome exit(const std::string&) { return {.leaves = true}; }
  Outcome clear(const std::string&);
  Outcome regenerate(const std::string&);
  Outcome read(const std::string& path);
  Outcome save(const std::string& path);
  Outcome load(const std::string& path);
  Outcome help(const std::string&);

  const Tokenizer& tokenizer_;
  Reader reader_;
  Sampler& sampler_;
  const GenerationOptions& generation_;
  const ChatOptions& options_;
  Dialogue dialogue_;
  LineReader lines_;
  bool at_terminal_;
  bool asked_to_leave_ = false;  // by Ctrl-C before an empty line
  std::string attached_;         // by /read, to the next message
  Timing answered_;
};

constexpr Chat::Command Chat::kCommands[] = {
    {"/exit", nullptr, "end the conversation (also Ctrl-D)", &Chat::exit},
    {"/clear", nullptr, "forget the conversation, but for the system prompt", &Chat::clear},
    {"/regen", nullptr, "answer the last message once more", &Chat::regenerate},
    {"/read", "FILE", "put the text of a file before your next message", &Chat::read},
    {"/save", "FILE", "write the conversation to a file, as JSON", &Chat::save},
    {"/load", "FILE", "go on with a conversation that was saved", &Chat::load},
    {"/help", nullptr, "this list", &Chat::help},
};

Chat::Outcome Chat::turn() {
  Outcome outcome;
  const auto message = read_message(outcome);
  if (!message) return outcome;
  asked_to_leave_ = false;
  const std::string text = trimmed(*message);
  if (text.empty() && attached_.empty()) return {};
  lines_.remember(text);
  const auto word = text.substr(0, text.find_first_of(kBlank));
  const bool is_command =
      text.starts_with('/') && word.find('/', 1) == word.npos && word.size() > 1;
  outcome = is_command ? command(text) : send(*message);
  return outcome;
}

// Lines until one is the last: one that ends in \ is not, nor what stands between """ and """, nor
// one that was pasted with others.
std::optional<std::string> Chat::read_message(Outcome& outcome) {
  constexpr std::string_view kQuotes = "\"\"\"";
  std::string message;
  bool quoted = false;
  for (const char* prompt = "> ";; prompt = "... ") {
    LineReader::Line line = lines_.read(prompt);
    if (line.status == LineReader::Status::interrupted) {
      forget_interrupts();
      if (!at_terminal_) {
        outcome = {.leaves = true, .exit_code = kInterrupted};
      } else if (!line.text.empty() || !message.empty()) {
        end_line();
      } else if (asked_to_leave_) {
        end_line();
        outcome = {.leaves = true, .exit_code = kInterrupted};
      } else {
        asked_to_leave_ = true;
        end_line();
        reply("Ctrl-C again, Ctrl-D or /exit ends the conversation");
      }
      return std::nullopt;
    }
    if (line.status == LineReader::Status::end) {
      if (at_terminal_) end_line();
      if (!message.empty()) return message;
      outcome.leaves = true;
      return std::nullopt;
    }
    if (!quoted && message.empty() && line.text.starts_with(kQuotes)) {
      quoted = true;
      line.text.erase(0, kQuotes.size());
      if (line.text.empty()) continue;
    }
    if (quoted) {
      if (line.text.ends_with(kQuotes)) {
        line.text.resize(line.text.size() - kQuotes.size());
        return message + line.text;
      }
      message += line.text + '\n';
    } else if (line.text.ends_with('\\')) {
      line.text.back() = '\n';
      message += line.text;
    } else if (line.more) {
      message += line.text + '\n';
    } else {
      return message + line.text;
    }
  }
}

Chat::Outcome Chat::send(const std::string& message) {
  chat::Json before = dialogue_.messages();
  const std::string attached = std::exchange(attached_, {});
  dialogue_.say(attached + message);
  const Outcome outcome = respond(std::move(before));
  if (!outcome.answered) attached_ = attached;
  return outcome;
}

Chat::Outcome Chat::respond(chat::Json before) {
  const auto prompt = dialogue_.prompt();
  if (!prompt) {
    dialogue_.restore(std::move(before));
    return survive(prompt.error());
  }
  const auto logits = reader_.read(prompt->tokens, prompt->lasting);
  if (!logits) {
    dialogue_.restore(std::move(before));
    if (logits.error().code() == ErrorCode::out_of_context)
      return survive({ErrorCode::out_of_context,
                      logits.error().message() + ": the message is forgotten, /clear begins anew"});
    if (logits.error().code() != ErrorCode::cancelled)
      return {.leaves = true, .exit_code = fail(logits.error())};
    if (!at_terminal_) return {.leaves = true, .exit_code = kInterrupted};
    forget_interrupts();
    return say("stopped: the message is forgotten");
  }
  for (const Token token : prompt->tokens) sampler_.accept(token);

  AnswerSink sink(tokenizer_, prompt->in_thought, options_.think_budget);
  Generation generation(tokenizer_, reader_, sampler_, generation_, sink);
  const auto done = generation.run(*logits);
  const bool shown = sink.finish();
  answered_ += generation.timing();
  dialogue_.answer(sink.thoughts(), sink.answer());
  if (!shown) return {.leaves = true, .exit_code = kFailure};
  if (!done) return {.leaves = true, .exit_code = fail(done.error())};
  if (generation.context_full())
    warn("the context is full at %d tokens: the answer stops here, /clear begins anew",
         reader_.context());
  if (interrupted()) {
    if (!at_terminal_) return {.leaves = true, .exit_code = kInterrupted};
    forget_interrupts();
  }
  return {.answered = true};
}

Chat::Outcome Chat::command(const std::string& line) {
  const auto space = line.find_first_of(kBlank);
  const std::string name = line.substr(0, space);
  const std::string argument = space == line.npos ? "" : trimmed(line.substr(space));
  for (const Command& known : kCommands) {
    if (name != known.name) continue;
    if (known.argument != nullptr && argument.empty())
      return survive(errorf(ErrorCode::invalid_argument, "%s needs a FILE", known.name));
    if (known.argument == nullptr && !argument.empty())
      return survive(errorf(ErrorCode::invalid_argument, "%s takes nothing: found '%s'", known.name,
                            printable(argument).c_str()));
    return (this->*known.run)(with_home(argument));
  }
  return survive(errorf(ErrorCode::invalid_argument, "unknown command '%s': /help lists them",
                        printable(name).c_str()));
}

Chat::Outcome Chat::clear(const std::string&) {
  dialogue_.clear();
  attached_.clear();
  return say("the conversation is forgotten");
}

Chat::Outcome Chat::regenerate(const std::string&) {
  chat::Json before = dialogue_.messages();
  dialogue_.take_back("assistant");
  if (dialogue_.awaits_answer()) return respond(std::move(before));
  dialogue_.restore(std::move(before));
  return survive({ErrorCode::invalid_argument, "/regen: there is no message to answer yet"});
}

Chat::Outcome Chat::read(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return survive(text.error().at("/read"));
  attached_ += *text;
  if (!attached_.ends_with('\n')) attached_ += '\n';
  return say(stringf("%s bytes go before your next message", with_commas(text->size()).c_str()));
}

// Replaces nothing but another saved conversation.
Chat::Outcome Chat::save(const std::string& path) {
  const auto written = [&]() -> Result<void> {
    const auto old = read_file(path);
    if (old && !old->empty() && !is_dialogue(*old))
      return errorf(ErrorCode::invalid_argument, "%s: holds something else than a conversation",
                    path.c_str());
    if (!old && old.error().code() != ErrorCode::not_found) return old.error();
    auto file = OutputFile::create(path);
    if (!file) return file.error().at(path);
    const std::string json = dialogue_.to_json();
    if (auto done = file->write(std::as_bytes(std::span(json))); !done)
      return done.error().at(path);
    if (auto done = file->commit(); !done) return done.error().at(path);
    return {};
  }();
  if (!written) return survive(written.error().at("/save"));
  return say("saved");
}

Chat::Outcome Chat::load(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return survive(text.error().at("/load"));
  chat::Json before = dialogue_.messages();
  if (const auto loaded = dialogue_.load_json(*text); !loaded)
    return survive(loaded.error().at(path).at("/load"));
  attached_.clear();
  if (dialogue_.awaits_answer()) return respond(std::move(before));
  return say("loaded");
}

Chat::Outcome Chat::help(const std::string&) {
  for (const Command& known : kCommands)
    reply(stringf("%-7s %-5s %s", known.name, known.argument ? known.argument : "", known.help));
  return say("A line that ends in \\ goes on in the next; \"\"\" begins and ends a longer text.");
}

}  // namespace

int chat(const Model& model, Session& session, Sampler& sampler,
         const GenerationOptions& generation, const ChatOptions& options,
         const std::optional<std::string>& first) {
  return Chat(model, session, sampler, generation, options).run(first);
}

}  // namespace tsq::tool
