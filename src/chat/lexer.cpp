#include "chat/lexer.h"

#include <algorithm>
#include <charconv>

#include "chat/budget.h"
#include "chat/text.h"

namespace tsq::chat {
namespace {

// One kind of line end, and no last one.
std::string normalized(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      result += '\n';
      if (source.substr(i + 1, 1) == "\n") ++i;
    } else {
      result += source[i];
    }
  }
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(at_); }
  bool starts(std::string_view s) const { return rest().substr(0, s.size()) == s; }

  [[noreturn]] void fail_here(const std::string& what) const {
    fail(stringf("line %d: %s", line_, what.c_str()));
  }

  void advance(std::size_t n) {
    line_ += static_cast<int>(std::count(source_.begin() + at_, source_.begin() + at_ + n, '\n'));
    at_ += n;
  }
  void skip_space() { advance(after_space(at_) - at_); }
  void add(TokenKind kind, std::string text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text)});
  }

  // Text up to the next tag, and the tag's beginning.
  void root() {
    std::size_t tag = at_;
    do {
      tag = source_.find('{', tag);
      if (tag == source_.npos || tag + 1 == source_.size()) {
        add(TokenKind::data, std::string(rest()));
        at_ = source_.size();
        return;
      }
    } while (std::string_view("{%#").find(source_[tag + 1]) == std::string_view::npos && ++tag);
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const bool has_sign = sign == '-' || sign == '+';
    add_data(source_.substr(at_, tag - at_), has_sign ? sign : '\0', kind != '{');
    advance(tag + (has_sign ? 3 : 2) - at_);
    if (kind == '#') return comment();
    if (kind == '%' && raw()) return;
    tag_tokens(kind == '{');
  }

  void add_data(std::string_view text, char sign, bool is_block) {
    if (sign == '-') {
      text = strip(text, std::nullopt, Side::right);
    } else if (sign != '+' && is_block) {
      const std::size_t line_start = text.rfind('\n') + 1;  // npos + 1 is 0
      if ((line_start > 0 || at_line_start_) &&
          strip(text.substr(line_start), std::nullopt, Side::both).empty()) {
        text = text.substr(0, line_start);
      }
    }
    if (!text.empty()) add(TokenKind::data, std::string(text));
  }

  // What ends a tag: its sign, the end itself, and the white space that goes with it.
  bool tag_end(std::string_view end, bool is_block) {
    const bool minus = starts("-") && rest().substr(1, end.size()) == end;
    const bool plus = is_block && starts("+") && rest().substr(1, end.size()) == end;
    if (!minus && !plus && !starts(end)) return false;
    advance(end.size() + (minus || plus));
    if (minus) {
      skip_space();
    } else if (!plus && is_block && starts("\n")) {
      advance(1);
    }
    at_line_start_ = source_[at_ - 1] == '\n';
    return true;
  }

  void comment() {
    const int start = line_;
    while (!tag_end("#}", true)) {
      if (at_ == source_.size()) {
        line_ = start;
        fail_here("a comment without an end, expected #}");
      }
      advance(1);
    }
  }

  std::size_t after_space(std::size_t at) const {
    while (at < source_.size() && is_space(decode_char(source_.substr(at)))) {
      at += char_bytes(source_.substr(at));
    }
    return at;
  }
  // Behind "NAME" and the white space around it; npos where something else is.
  std::size_t after_word(std::size_t at, std::string_view name) const {
    at = after_space(at);
    return source_.substr(at, name.size()) == name ? after_space(at + name.size()) : source_.npos;
  }

  // Of {% raw %}, behind {%: the text up to {% endraw %} as data.
  bool raw() {
    const std::size_t word_end = after_word(at_, "raw");
    if (word_end == source_.npos) return false;
    const bool minus = source_.substr(word_end, 3) == "-%}";
    if (!minus && source_.substr(word_end, 2) != "%}") return false;
    advance(word_end + (minus ? 3 : 2) - at_);
    if (minus) skip_space();
    at_line_start_ = source_[at_ - 1] == '\n';
    for (std::size_t tag = source_.find("{%", at_); tag != source_.npos;
         tag = source_.find("{%", tag + 2)) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      const bool has_sign = sign == '-' || sign == '+';
      const std::size_t end = after_word(std::min(tag + 2 + has_sign, source_.size()), "endraw");
      if (end == source_.npos) continue;
      const bool end_sign = end < source_.size() && (source_[end] == '-' || source_[end] == '+');
      if (source_.substr(std::min(end + end_sign, source_.size()), 2) != "%}") continue;
      add_data(source_.substr(at_, tag - at_), has_sign ? sign : '\0', true);
      advance(end - at_);
      return tag_end("%}", true);
    }
    fail_here("a raw block without an end, expected {% endraw %}");
  }

  void tag_tokens(bool is_output) {
    add(is_output ? TokenKind::output_begin : TokenKind::block_begin, "");
    const std::string_view end = is_output ? "}}" : "%}";
    std::string open;  // brackets
    while (true) {
      skip_space();
      if (at_ == source_.size()) {
        fail_here(stringf("the template ends inside a tag, expected %.2s", end.data()));
      }
      const int line = line_;
      if (open.empty() && tag_end(end, !is_output)) {
        add(is_output ? TokenKind::output_end : TokenKind::block_end, "");
        tokens_.back().line = line;
        return;
      }
      const char c = source_[at_];
      if (is_decimal(c)) {
        number();
      } else if (const std::size_t n = name_bytes(); n > 0) {
        add(TokenKind::name, std::string(rest().substr(0, n)));
        advance(n);
      } else if (c == '\'' || c == '"') {
        string(c);
      } else {
        symbol(open);
      }
    }
  }

  // Letters, digits and _.
  std::size_t name_bytes() const {
    std::size_t n = 0;
    while (n < rest().size()) {
      const char32_t c = decode_char(rest().substr(n));
      if (c != '_' && !is_letter(c) && !(is_digit(c) && n > 0)) break;
      n += char_bytes(rest().substr(n));
    }
    return n;
  }

  void symbol(std::string& open) {
    static constexpr std::string_view kPairs[] = {"//", "**", "==", "!=", ">=", "<="};
    std::string_view found = rest().substr(0, 1);
    for (const std::string_view pair : kPairs) {
      if (starts(pair)) found = pair;
    }
    if (std::string_view("+-/*%~[](){}><=.:|,;!").find(found[0]) == std::string_view::npos ||
        found == "!") {
      fail_here(stringf("unexpected character '%s'",
                        printable(rest().substr(0, char_bytes(rest()))).c_str()));
    }
    const std::string_view kOpen = "([{", kClose = ")]}";
    if (const auto i = kOpen.find(found[0]); i != kOpen.npos) open += kClose[i];
    if (kClose.find(found[0]) != kClose.npos) {
      if (open.empty()) fail_here(stringf("unexpected '%c'", found[0]));
      if (open.back() != found[0])
        fail_here(stringf("unexpected '%c', expected '%c'", found[0], open.back()));
      open.pop_back();
    }
    add(TokenKind::symbol, std::string(found));
    advance(found.size());
  }

  std::size_t digits(std::size_t from) const {
    std::size_t n = from;
    while (n < rest().size() &&
           (is_decimal(rest()[n]) ||
            (rest()[n] == '_' && n > from && n + 1 < rest().size() && is_decimal(rest()[n + 1]))))
      ++n;
    return n;
  }

  void number() {
    const std::string_view text = rest();
    std::size_t n = 0;
    bool is_real = false;
    if (text.size() > 2 && text[0] == '0' &&
        std::string_view("xXoObB").find(text[1]) != std::string_view::npos) {
      n = 2;
      while (n < text.size() && (isxdigit(static_cast<unsigned char>(text[n])) || text[n] == '_'))
        ++n;
    } else {
      n = digits(0);
      const bool after_dot = !tokens_.empty() && tokens_.back().is_symbol(".");
      if (!after_dot && n + 1 < text.size() && text[n] == '.' && is_decimal(text[n + 1])) {
        n = digits(n + 1);
        is_real = true;
      }
      if (n < text.size() && (text[n] | 0x20) == 'e') {
        const bool sign = n + 1 < text.size() && (text[n + 1] == '-' || text[n + 1] == '+');
        const std::size_t end = digits(n + 1 + sign);
        if (end > n + 1 + sign) {
          n = end;
          is_real = true;
        }
      }
    }
    add(is_real ? TokenKind::real : TokenKind::integer, std::string(text.substr(0, n)));
    const auto integer = is_real ? 0 : parse_int(text.substr(0, n), 0);
    const auto real = is_real ? parse_real(text.substr(0, n)) : 0;
    if (!integer || !real) {
      fail_here(stringf("number %s, expected one that fits 64 bits",
                        printable(text.substr(0, n)).c_str()));
    }
    tokens_.back().integer = *integer;
    tokens_.back().real = *real;
    advance(n);
  }

  void string(char quote) {
    const int line = line_;
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_here("a string without an end");
    std::string value = unescaped(source_.substr(at_ + 1, end - at_ - 1));
    advance(end + 1 - at_);
    add(TokenKind::string, std::move(value));
    tokens_.back().line = line;
  }

  // The digits of an escape: \xhh, \uhhhh, \Uhhhhhhhh.
  char32_t hex_escape(std::string_view text, std::size_t n) const {
    const std::string_view digits = text.substr(0, n);
    const char* end = digits.data() + digits.size();
    std::uint32_t code = 0;
    const bool whole =
        std::from_chars(digits.data(), end, code, 16).ptr == end && digits.size() == n;
    if (!whole || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      fail_here(stringf("escape with the digits '%s', expected %zu hexadecimal ones of a character",
                        printable(digits).c_str(), n));
    }
    return code;
  }

  std::string unescaped(std::string_view text) const {
    static constexpr std::string_view kLetters = "ntr\\'\"abfv", kMeanings = "\n\t\r\\'\"\a\b\f\v";
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        result += text[i];
        continue;
      }
      const char c = text[++i];
      if (const auto known = kLetters.find(c); known != kLetters.npos) {
        result += kMeanings[known];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        append_char(result, hex_escape(text.substr(i + 1), n));
        i += n;
      } else if (c >= '0' && c <= '7') {
        std::size_t n = 1;
        while (n < 3 && i + n < text.size() && text[i + n] >= '0' && text[i + n] <= '7') ++n;
        append_char(result, static_cast<char32_t>(*parse_int(text.substr(i, n), 8)));
        i += n - 1;
      } else if (c == 'N') {
        fail("\\N{...} in a string, expected \\u", ErrorCode::unsupported);
      } else if (c != '\n') {  // a backslash before a line end removes it
        result += {'\\', c};
      }
    }
    return result;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  const std::string text = normalized(source);
  return Lexer(text).run();
}

}  // namespace tsq::chat
