#include "support.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/errorf.h"
#include "base/output_file.h"

namespace tsq::tool {
namespace {

volatile sig_atomic_t interrupt_count = 0;
std::atomic<bool> bar_is_drawn = false;
static_assert(std::atomic<bool>::is_always_lock_free, "read in signal handlers");

// The shell's prompt should not stand behind a half-drawn bar.
void leave_bar() {
  if (bar_is_drawn.load()) [[maybe_unused]]
    const auto n = ::write(STDERR_FILENO, "\n", 1);
}

void count_interrupt(int) {
  interrupt_count = interrupt_count + 1;
  if (interrupt_count < 2) return;
  leave_bar();
  ::_exit(kInterrupted);
}

void clean_up_and_end(int signal_number) {
  remove_temporaries();
  leave_bar();
  if (signal_number == SIGINT) ::_exit(kInterrupted);
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(signal_number, &action, nullptr);
}

bool is_ignored(int signal_number) {
  struct sigaction action = {};
  ::sigaction(signal_number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

// https://no-color.org: set, and not to nothing.
bool no_color() {
  const char* const value = std::getenv("NO_COLOR");
  return value != nullptr && *value != '\0';
}

std::string with_unit(std::uint64_t bytes, double step, std::array<const char*, 7> units) {
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value < 9.995 ? 2 : 1;
  return stringf("%.*f %s", decimals, value, units[unit]);
}

}  // namespace

Exit exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return kUsage;
    case ErrorCode::damaged:
      return kDamaged;
    case ErrorCode::unsupported:
      return kUnsupported;
    case ErrorCode::cancelled:
      return kInterrupted;
    case ErrorCode::not_found:
    case ErrorCode::io:
    case ErrorCode::out_of_memory:
    case ErrorCode::out_of_context:
    case ErrorCode::numeric:
      return kFailure;
  }
  return kFailure;
}

void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
      const int taken = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int fail(const Error& error) {
  // A path may hold anything, a line break too.
  std::fprintf(stderr, "tsq: %s\n", printable(error.message(), SIZE_MAX).c_str());
  return exit_code(error.code());
}

void warn(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::fputs("tsq: warning: ", stderr);
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
  va_end(args);
}

bool print(std::string_view text) {
  errno = 0;
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return true;
  if (errno != EPIPE)
    fail(errorf(ErrorCode::io, "standard output: %s", lower_first(std::strerror(errno)).c_str()));
  return false;
}

Result<std::string> read_text(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : path;
  const auto failed = [&] {
    return errorf(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io, "%s: %s", name.c_str(),
                  lower_first(std::strerror(errno)).c_str());
  };
  std::FILE* const file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return failed();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closer(file, std::fclose);
  std::string text;
  char piece[65536];
  while (const std::size_t n = std::fread(piece, 1, sizeof piece, file)) text.append(piece, n);
  if (std::ferror(file)) return failed();
  return text;
}

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

bool has_color(std::FILE* stream) { return is_terminal(stream) && !no_color(); }

void watch_interrupt() { handle(SIGINT, count_interrupt); }

bool interrupted() { return interrupt_count > 0; }

void forget_interrupts() { interrupt_count = 0; }

void clean_up_on_signals() {
  handle(SIGINT, clean_up_and_end);
  handle(SIGTERM, clean_up_and_end);
  for (const int signal_number :
       {SIGHUP, SIGPIPE, SIGQUIT, SIGXCPU})  // nohup and others ignore some
    if (!is_ignored(signal_number)) handle(signal_number, clean_up_and_end);
  ::signal(SIGXFSZ, SIG_IGN);  // the write fails then, and says why
}

std::string human_bytes(std::uint64_t bytes) {
  return with_unit(bytes, 1000, {"B", "kB", "MB", "GB", "TB", "PB", "EB"});
}

std::string human_bytes_binary(std::uint64_t bytes) {
  return with_unit(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
}

std::string with_commas(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string lower_first(std::string text) {
  // An abbreviation keeps its capitals.
  const auto is_upper = [&](std::size_t i) {
    return i < text.size() && std::isupper(static_cast<unsigned char>(text[i]));
  };
  if (is_upper(0) && !is_upper(1)) text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

ProgressBar::ProgressBar(std::string label, Unit unit)
    : label_(std::move(label)),
      unit_(unit),
      enabled_(has_color(stderr)),
      start_(Clock::now()) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  if (!enabled_ || total == 0) return;
  const auto now = Clock::now();
  if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;

  constexpr int kWidth = 24;
  const int filled = static_cast<int>(share * kWidth);
  std::string line =
      stringf("%-10s [%s%s] %3d %%", label_.c_str(), std::string(filled, '#').c_str(),
              std::string(kWidth - filled, '.').c_str(), static_cast<int>(share * 100));
  if (unit_ == Unit::bytes)
    line += stringf("  %s of %s, %s/s", human_bytes(done).c_str(), human_bytes(total).c_str(),
                    human_bytes(static_cast<std::uint64_t>(rate)).c_str());
  else
    line += stringf("  %s of %s tokens, %.0f/s", with_commas(done).c_str(),
                    with_commas(total).c_str(), rate);
  if (share > 0 && share < 1) {
    const auto left = static_cast<long>(seconds / share - seconds + 0.5);
    line += stringf(", %ld:%02ld left", left / 60, left % 60);
  }
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
  bar_is_drawn = true;
  last_ = now;
}

void ProgressBar::restart(std::string label, Unit unit) {
  clear();
  label_ = std::move(label);
  unit_ = unit;
  start_ = Clock::now();
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
  bar_is_drawn = false;
}

}  // namespace tsq::tool
