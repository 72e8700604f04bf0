#include "line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/output_file.h"
#include "base/utf8.h"
#include "log.h"
#include "support.h"

namespace tsq::tool {
namespace {

constexpr int kHistoryLines = 1000;

// The next byte of standard input; nothing at its end or, with interrupted() true, after Ctrl-C.
std::optional<char> read_byte() {
  // Blocked but while it waits: an interrupt cannot slip in between the question and the wait. (The
  // library's threads never take signals.)
  sigset_t interrupt, before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  std::optional<char> byte;
  while (!interrupted()) {
    fd_set input;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    if (::pselect(STDIN_FILENO + 1, &input, nullptr, nullptr, nullptr, &before) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    char c;
    const ssize_t n = ::read(STDIN_FILENO, &c, 1);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n == 1) byte = c;
    break;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return byte;
}

bool input_is_waiting() {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, 0) > 0 && (input.revents & POLLIN) != 0;
}

// The code point that a valid sequence of this length stands for.
wchar_t code_point(const char* bytes, std::size_t length) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  wchar_t c = length == 1 ? first : first & (0x7f >> length);
  for (std::size_t i = 1; i < length; ++i)
    c = c << 6 | (static_cast<unsigned char>(bytes[i]) & 0x3f);
  return c;
}

std::wstring to_wide(const std::string& utf8) {
  std::wstring wide;
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence_length(utf8.substr(at, 4)));
    wide += code_point(utf8.data() + at, length);
    at += length;
  }
  return wide;
}

}  // namespace

class LineReader::Terminal {
 public:
  explicit Terminal(std::string history_file) : history_file_(std::move(history_file)) {
    remember_terminal();
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
    history_ = history_winit();
    HistEventW event;
    history_w(history_, &event, H_SETSIZE, kHistoryLines);
    history_w(history_, &event, H_SETUNIQUE, 1);
    load_history();
    edit_ = el_init("tsq", stdin, stderr, stderr);
    el_wset(edit_, EL_CLIENTDATA, this);
    el_wset(edit_, EL_EDITOR, L"emacs");
    el_wset(edit_, EL_SIGNAL, 1);  // to be drawn anew after Ctrl-Z and at another width
    el_wset(edit_, EL_HIST, history_w, history_);
    bind_keys();
    el_wset(edit_, EL_GETCFN, &get_character);
    el_wset(edit_, EL_PROMPT, &show_prompt);
  }
  ~Terminal() {
    save_history();
    el_end(edit_);
    history_wend(history_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  Line read(const char* prompt) {
    prompt_ = to_wide(prompt);
    given_up_.clear();
    int n = 0;
    el_wset(edit_, EL_PREP_TERM, 1);  // else what is typed right after the prompt shows twice
    const wchar_t* const wide = el_wgets(edit_, &n);
    Line line{Status::line, {}, false};
    for (int i = 0; wide != nullptr && i < n; ++i)
      utf8_append(line.text, static_cast<char32_t>(wide[i]));
    const bool whole = line.text.ends_with('\n');
    if (whole) line.text.pop_back();
    if (interrupted()) {
      line.status = Status::interrupted;
      line.text = given_up_;
    } else if (!whole && line.text.empty()) {
      line.status = Status::end;
    }
    line.more = whole && input_is_waiting();
    return line;
  }

  void remember(const std::string& text) {
    HistEventW event;
    history_w(history_, &event, H_ENTER, to_wide(text).c_str());
  }

 private:
  // What terminals send for Ctrl and Alt with the arrows, for Delete, Home and End; a pasted tab is
  // text.
  void bind_keys() {
    constexpr std::pair<const wchar_t*, const wchar_t*> kKeys[] = {
        {L"\\e[1;5D", L"ed-prev-word"},
        {L"\\e[1;5C", L"em-next-word"},
        {L"\\e[1;3D", L"ed-prev-word"},
        {L"\\e[1;3C", L"em-next-word"},
        {L"\\e[3~", L"ed-delete-next-char"},
        {L"\\e[3;5~", L"em-delete-next-word"},
        {L"\\e[H", L"ed-move-to-beg"},
        {L"\\e[F", L"ed-move-to-end"},
        {L"\\e[1~", L"ed-move-to-beg"},
        {L"\\e[4~", L"ed-move-to-end"},
        {L"\\e[5~", L"ed-ignore"},
        {L"\\e[6~", L"ed-ignore"},
        {L"\\t", L"ed-insert"}};
    for (const auto& [key, command] : kKeys)
      el_wset(edit_, EL_BIND, key, command, static_cast<wchar_t*>(nullptr));
  }
  // A file that is there and holds something else is neither read nor replaced.
  void load_history() {
    std::error_code error;
    if (history_file_.empty() || !std::filesystem::exists(history_file_, error) ||
        std::filesystem::file_size(history_file_, error) == 0)
      return;
    HistEventW event;
    if (history_w(history_, &event, H_LOAD, history_file_.c_str()) >= 0) return;
    warn("%s: holds no history that can be read, and is left as it is", history_file_.c_str());
    history_file_.clear();
  }
  void save_history() {
    if (history_file_.empty()) return;
    const auto saved = [&]() -> Result<void> {
      auto file = OutputFile::create(history_file_);
      if (!file) return file.error();
      HistEventW event;
      if (history_w(history_, &event, H_SAVE, file->temporary_path().c_str()) < 0)
        return Error(ErrorCode::io, "cannot be written");
      return file->commit();
    }();
    if (!saved) warn("%s: %s", history_file_.c_str(), saved.error().message().c_str());
  }

  static Terminal& of(EditLine* edit) {
    Terminal* self = nullptr;
    el_wget(edit, EL_CLIENTDATA, &self);
    return *self;
  }
  static wchar_t* show_prompt(EditLine* edit) { return of(edit).prompt_.data(); }
  // Reads a character, whatever the locale. At the end or after Ctrl-C libedit forgets the line.
  static int get_character(EditLine* edit, wchar_t* character) {
    std::string bytes;
    while (const auto byte = read_byte()) {
      bytes += *byte;
      if (utf8_is_incomplete(bytes)) continue;
      const std::size_t length = utf8_sequence_length(bytes);
      *character = length == 0 ? 0xfffd : code_point(bytes.data(), length);
      return 1;
    }
    const LineInfoW* const typed = el_wline(edit);
    std::string& given_up = of(edit).given_up_;
    for (const wchar_t* c = typed->buffer; c < typed->lastchar; ++c)
      utf8_append(given_up, static_cast<char32_t>(*c));
    return 0;
  }

  std::string history_file_;
  std::wstring prompt_;
  std::string given_up_;  // what had been typed when Ctrl-C came
  HistoryW* history_ = nullptr;
  EditLine* edit_ = nullptr;
};

LineReader::LineReader(std::string history_file)
    : terminal_(is_terminal(stdin) && !log_json()
                    ? std::make_unique<Terminal>(std::move(history_file))
                    : nullptr) {}
LineReader::~LineReader() = default;

LineReader::Line LineReader::read(const char* prompt) {
  if (terminal_) return terminal_->read(prompt);
  Line line{Status::line, {}, false};
  while (const auto byte = read_byte()) {
    if (*byte == '\n') return line;
    line.text += *byte;
  }
  if (interrupted())
    line.status = Status::interrupted;
  else if (line.text.empty())
    line.status = Status::end;
  return line;
}

void LineReader::remember(const std::string& text) {
  if (terminal_) terminal_->remember(text);
}

}  // namespace tsq::tool
