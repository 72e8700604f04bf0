// The terminal and the signals that come from it.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/errorf.h"
#include "base/output_file.h"
#include "log.h"
#include "support.h"

namespace tsq::tool {
namespace {

std::atomic<int> interrupt_count = 0;
std::atomic<bool> bar_is_drawn = false, text_is_dim = false, terminal_is_known = false;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "used in signal handlers");
termios terminal_before;

constexpr std::string_view kDim = "\033[2m", kPlain = "\033[0m";

// In a signal handler, before the process ends: neither half a bar nor dim text nor the line
// editor's mode is left to the shell.
void leave_terminal() {
  [[maybe_unused]] ssize_t n = 0;
  if (text_is_dim) n = ::write(STDOUT_FILENO, kPlain.data(), kPlain.size());
  if (bar_is_drawn) n = ::write(STDERR_FILENO, "\n", 1);
  if (terminal_is_known) ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

void count_interrupt(int) {
  if (++interrupt_count < 2) return;
  leave_terminal();
  ::_exit(kInterrupted);
}

void clean_up_and_end(int signal_number) {
  remove_temporaries();
  leave_terminal();
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

bool may_draw() { return has_color(stderr) && !log_json() && log_enabled(LogLevel::info); }

std::string amount_text(ProgressBar::Unit unit, std::uint64_t done, std::uint64_t total,
                        double rate) {
  if (unit == ProgressBar::Unit::bytes)
    return stringf("  %s of %s, %s/s", human_bytes(done).c_str(), human_bytes(total).c_str(),
                   human_bytes(static_cast<std::uint64_t>(rate)).c_str());
  return stringf("  %s of %s tokens, %.0f/s", with_commas(done).c_str(), with_commas(total).c_str(),
                 rate);
}

}  // namespace

void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
      const int taken = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

std::size_t terminal_columns(std::FILE* stream) {
  struct winsize size = {};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

// https://no-color.org: NO_COLOR is set, and not to nothing.
bool has_color(std::FILE* stream) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return is_terminal(stream) && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

bool dim_text(bool dim) {
  text_is_dim = dim;
  return print(dim ? kDim : kPlain);
}

void remember_terminal() { terminal_is_known = ::tcgetattr(STDIN_FILENO, &terminal_before) == 0; }

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

ProgressBar::ProgressBar(std::string label, Unit unit)
    : label_(std::move(label)), unit_(unit), enabled_(may_draw()), start_(Clock::now()) {}

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
  const std::string label = stringf("%-10s ", label_.c_str());
  const std::string bar = stringf("[%s%s] ", std::string(filled, '#').c_str(),
                                  std::string(kWidth - filled, '.').c_str());
  std::string rest =
      stringf("%3d %%", static_cast<int>(share * 100)) + amount_text(unit_, done, total, rate);
  if (share > 0 && share < 1) {
    const auto left = static_cast<long>(seconds / share - seconds + 0.5);
    rest += stringf(", %ld:%02ld left", left / 60, left % 60);
  }
  // A line that does not fit would wrap and could not be drawn over.
  const std::size_t room = terminal_columns(stderr) - 1;
  std::string line = label + bar + rest;
  if (line.size() > room) line = label + rest;
  line.resize(std::min(line.size(), room));
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
  if (drawn_) erase_bar();
  drawn_ = false;
}

void erase_bar() {
  if (!bar_is_drawn.exchange(false)) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace tsq::tool
