#include "chat/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/errorf.h"
#include "base/utf8.h"

namespace tsq::chat {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}
char32_t upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

// Each character c of the text as f(c, result) appends it; bytes outside UTF-8 stay.
template <class F>
std::string mapped(std::string_view text, F f) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = utf8_sequence_length(text);
    if (n == 0) {
      result += text[0];
    } else {
      f(decode_char(text), result);
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return result;
}

bool is_line_end(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

std::size_t last_char_bytes(std::string_view text) {
  for (std::size_t n = 2; n <= std::min<std::size_t>(4, text.size()); ++n) {
    if (utf8_sequence_length(text.substr(text.size() - n)) == n) return n;
  }
  return 1;
}

bool has(std::string_view chars, std::string_view c) {
  for (std::size_t n; !chars.empty(); chars.remove_prefix(n)) {
    n = char_bytes(chars);
    if (chars.substr(0, n) == c) return true;
  }
  return false;
}

// "1_000" to "1000"; nothing where an underscore is not between digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      result += text[i];
    } else if (i == 0 || i + 1 == text.size() || text[i - 1] == '_' ||
               !isalnum(text[i + 1] & 0x7f)) {
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace

std::size_t char_bytes(std::string_view text) {
  return text.empty() ? 0 : std::max<std::size_t>(utf8_sequence_length(text), 1);
}

std::size_t count_chars(std::string_view text) {
  std::size_t n = 0;
  for (; !text.empty(); ++n) text.remove_prefix(char_bytes(text));
  return n;
}

std::vector<std::uint32_t> char_offsets(std::string_view text) {
  std::vector<std::uint32_t> offsets = {0};
  for (std::size_t at = 0; at < text.size();) {
    at += char_bytes(text.substr(at));
    offsets.push_back(static_cast<std::uint32_t>(at));
  }
  return offsets;
}

char32_t decode_char(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto more = [&](std::size_t i) { return char32_t{byte(i)} & 0x3f; };
  switch (utf8_sequence_length(text)) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1fu) << 6 | more(1);
    case 3:
      return (byte(0) & 0x0fu) << 12 | more(1) << 6 | more(2);
    case 4:
      return (byte(0) & 0x07u) << 18 | more(1) << 12 | more(2) << 6 | more(3);
    default:
      return 0xfffd;
  }
}

void append_char(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

bool is_printable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

bool is_letter(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (part.size() < 32 || from > text.size()) return text.find(part, from);
  // Knuth, Morris, Pratt. borders[i]: the longest proper prefix of part that ends at its byte i.
  std::vector<std::uint32_t> borders(part.size());
  const auto matched_with = [&](std::size_t matched, char next) {
    while (matched > 0 && part[matched] != next) matched = borders[matched - 1];
    return matched + (part[matched] == next);
  };
  for (std::size_t i = 1; i < part.size(); ++i) {
    borders[i] = static_cast<std::uint32_t>(matched_with(borders[i - 1], part[i]));
  }
  std::size_t matched = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    matched = matched_with(matched, text[i]);
    if (matched == part.size()) return i + 1 - matched;
  }
  return std::string_view::npos;
}

std::size_t rfind_text(std::string_view text, std::string_view part) {
  if (part.size() < 32) return text.rfind(part);
  const std::string reversed(text.rbegin(), text.rend()), end(part.rbegin(), part.rend());
  const std::size_t at = find_text(reversed, end);
  return at == std::string_view::npos ? at : text.size() - at - part.size();
}

std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Side side) {
  const auto strips = [&](std::string_view c) {
    return chars ? has(*chars, c) : is_space(decode_char(c));
  };
  while (side != Side::right && !text.empty()) {
    const std::size_t n = char_bytes(text);
    if (!strips(text.substr(0, n))) break;
    text.remove_prefix(n);
  }
  while (side != Side::left && !text.empty()) {
    const std::size_t n = last_char_bytes(text);
    if (!strips(text.substr(text.size() - n))) break;
    text.remove_suffix(n);
  }
  return text;
}

std::string to_upper(std::string_view text) {
  return mapped(text, [](char32_t c, std::string& result) {
    if (c == 0xdf) {
      result += "SS";
    } else {
      append_char(result, upper(c));
    }
  });
}
std::string to_lower(std::string_view text) {
  return mapped(text, [](char32_t c, std::string& result) { append_char(result, lower(c)); });
}

std::string to_capitalized(std::string_view text) {
  const std::size_t n = char_bytes(text);
  return to_upper(text.substr(0, n)) + to_lower(text.substr(n));
}

std::string to_title(std::string_view text) {
  bool in_word = false;
  return mapped(text, [&](char32_t c, std::string& result) {
    append_char(result, in_word ? lower(c) : upper(c));
    in_word = is_letter(c) && (upper(c) != c || lower(c) != c);
  });
}

bool is_upper(std::string_view text) { return to_upper(text) == text && to_lower(text) != text; }
bool is_lower(std::string_view text) { return to_lower(text) == text && to_upper(text) != text; }

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  for (std::size_t start = 0, at = 0; at < text.size();) {
    std::size_t n = char_bytes(text.substr(at));
    if (is_line_end(decode_char(text.substr(at, n)))) {
      if (text.substr(at, 2) == "\r\n") n = 2;
      lines.push_back(text.substr(start, at - start + (keep_ends ? n : 0)));
      start = at + n;
    }
    at += n;
    if (at == text.size() && start < at) lines.push_back(text.substr(start));
  }
  return lines;
}

std::string real_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
  std::string result;
  if (text[0] == '-') {
    result = "-";
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  std::string digits(text.substr(0, e));
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    result += digits[0];
    if (n > 1) result.append(1, '.').append(digits, 1);
    return result + stringf("e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return result.append("0.").append(-exponent - 1, '0').append(digits);
  if (n <= exponent + 1) return result.append(digits).append(exponent + 1 - n, '0').append(".0");
  return result.append(digits, 0, exponent + 1).append(1, '.').append(digits, exponent + 1);
}

std::string string_repr(std::string_view text) {
  const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
  const char quote = single ? '\'' : '"';
  std::string result(1, quote);
  for (std::size_t n; !text.empty(); text.remove_prefix(n)) {
    n = char_bytes(text);
    const char32_t c = decode_char(text);
    if (c == '\\' || c == static_cast<char32_t>(quote)) {
      result += {'\\', text[0]};
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (is_printable(c)) {
      result += text.substr(0, n);
    } else if (c < 0x100) {
      result += stringf("\\x%02x", static_cast<unsigned>(c));
    } else if (c < 0x10000) {
      result += stringf("\\u%04x", static_cast<unsigned>(c));
    } else {
      result += stringf("\\U%08x", static_cast<unsigned>(c));
    }
  }
  return result + quote;
}

std::optional<std::int64_t> parse_int(std::string_view text, int base) {
  text = strip(text, std::nullopt, Side::both);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const auto prefixed = [&](char letter) {
    return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == letter;
  };
  for (const auto& [letter, value] : {std::pair('x', 16), std::pair('o', 8), std::pair('b', 2)}) {
    if ((base == value || base == 0) && prefixed(letter)) {
      text.remove_prefix(2);
      base = value;
      break;
    }
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36) return std::nullopt;
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || (*digits)[0] == '-') return std::nullopt;
  std::uint64_t number = 0;
  const char* end = digits->data() + digits->size();
  const auto parsed = std::from_chars(digits->data(), end, number, base);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (number > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) return std::nullopt;
  return negative ? -static_cast<std::int64_t>(number) : static_cast<std::int64_t>(number);
}

std::optional<double> parse_real(std::string_view text) {
  text = strip(text, std::nullopt, Side::both);
  if (!text.empty() && text[0] == '+') text.remove_prefix(text.substr(1, 1) == "-" ? 0 : 1);
  const auto digits = without_underscores(text);
  if (!digits || digits->empty()) return std::nullopt;
  double number = 0;
  const char* end = digits->data() + digits->size();
  const auto parsed = std::from_chars(digits->data(), end, number);
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) {
    // Python gives an infinity or a zero; from_chars leaves number alone.
    const std::size_t e = digits->find_first_of("eE");
    const bool tiny = e != digits->npos && (*digits)[e + 1] == '-';
    number = tiny ? 0 : std::numeric_limits<double>::infinity();
    if ((*digits)[0] == '-') number = -number;
  }
  return number;
}

}  // namespace tsq::chat
