// What the commands share: exit codes, messages, signals, the terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "log.h"
#include "tsq/error.h"

namespace tsq::tool {

enum Exit : int {
  kSuccess = 0,
  kFailure = 1,
  kUsage = 2,
  kDamaged = 3,
  kUnsupported = 4,
  kInterrupted = 130,
};

Exit exit_code(ErrorCode code);

// Occupies descriptors 0 to 2 where the caller closed them, so that no file that is opened later
// takes the place of a stream. Reading and writing them fails as before.
void reserve_standard_streams();

// Options that the environment gives, such as "TSQ_TEMP='-1'": a later error of usage may be
// theirs, and names them.
void blame_environment(const std::vector<std::string>& settings);

// Says what failed and returns the exit code that the error means.
int fail(const Error& error);

// Writes to stdout and flushes. False when that is impossible: the error is printed, except for a
// closed pipe, whose reader has seen enough, and for what follows a failure.
bool print(std::string_view text);

// The whole of a file, of whatever kind; "-" is standard input. The path is in the message.
Result<std::string> read_text(const std::string& path);

bool is_terminal(std::FILE* stream);
// A terminal that can dim a word and draw over a line, and a user who wants that.
bool has_color(std::FILE* stream);
// Dims what is printed from now on, or no more. False as print().
bool dim_text(bool dim);
// The terminal is to be left as it is now, also by a signal that ends the process.
void remember_terminal();
std::size_t terminal_columns(std::FILE* stream);  // 80 where it is none

// Ctrl-C sets a flag; a second one ends the process at once.
void watch_interrupt();
bool interrupted();
void forget_interrupts();
// Ctrl-C, a termination, a hang-up or a closed pipe end the process, after the files that it was
// writing are removed.
void clean_up_on_signals();

// Three digits and a unit: "5.90 GB" of 1000^3 bytes, "5.50 GiB" of 1024^3.
std::string human_bytes(std::uint64_t bytes);
std::string human_bytes_binary(std::uint64_t bytes);
// "5,904,211,968"
std::string with_commas(std::uint64_t number);
std::string lower_first(std::string text);

// A line on stderr that is drawn over itself: percent, amount, rate, time left. Only on a terminal
// that can, without NO_COLOR, and not beside JSON lines; gone when the object is.
class ProgressBar {
 public:
  enum class Unit { bytes, tokens };
  ProgressBar(std::string label, Unit unit);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(std::uint64_t done, std::uint64_t total);
  // Starts again, for something else.
  void restart(std::string label, Unit unit);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  Unit unit_;
  bool enabled_;
  bool drawn_ = false;
  Clock::time_point start_, last_;
};

// Takes the bar that is drawn, if one is, off the terminal: before a line of another kind.
void erase_bar();

}  // namespace tsq::tool
