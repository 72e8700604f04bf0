// format % values of Python, and strftime.
#include <algorithm>

#include "chat/functions.h"
#include "chat/text.h"

namespace tsq::chat {
namespace {

constexpr std::int64_t kMaxWidth = 1000;

// One conversion: %(name)-08.3f.
struct Conversion {
  std::string_view name;
  bool has_name = false;
  std::string flags;
  std::int64_t width = 0, precision = -1;
  char kind = 0;
};

// Reads one from behind the %; at ends behind it.
Conversion parse(std::string_view format, std::size_t& at) {
  Conversion c;
  const auto has = [&](std::string_view chars) {
    return at < format.size() && chars.find(format[at]) != chars.npos;
  };
  const auto number = [&] {
    std::int64_t n = 0;
    while (has("0123456789")) {
      n = n * 10 + (format[at++] - '0');
      if (n > kMaxWidth)
        fail("a format width of more than 1000, expected a smaller one", ErrorCode::unsupported);
    }
    return n;
  };
  if (has("(")) {
    const std::size_t end = format.find(')', at);
    if (end == format.npos) fail("incomplete format key");
    c.has_name = true;
    c.name = format.substr(at + 1, end - at - 1);
    at = end + 1;
  }
  while (has("-+ #0")) {
    if (c.flags.find(format[at]) == c.flags.npos) c.flags += format[at];
    ++at;
  }
  if (has("*")) fail("'*' in a format, expected a number", ErrorCode::unsupported);
  c.width = number();
  if (has(".")) {
    ++at;
    c.precision = number();
  }
  if (has("hlL")) ++at;
  if (at == format.size()) fail("incomplete format");
  c.kind = format[at++];
  return c;
}

std::string formatted(Budget& budget, const Conversion& c, const Value& value) {
  const std::string precision =
      c.precision < 0 ? "" : stringf(".%d", static_cast<int>(c.precision));
  const std::string head =
      "%" + c.flags + (c.width > 0 ? stringf("%d", static_cast<int>(c.width)) : "") + precision;
  char text[2000];
  switch (c.kind) {
    case 'd':
    case 'i':
    case 'u': {
      const double* real = value.if_real();
      if (real != nullptr && !(*real > -9e18 && *real < 9e18))
        fail("%d format: a number is required that fits 64 bits");
      const std::int64_t number =
          real ? static_cast<std::int64_t>(*real) : require_int(value, "%d");
      std::snprintf(text, sizeof text, (head + "ld").c_str(), static_cast<long>(number));
      return text;
    }
    case 'x':
    case 'X':
    case 'o': {
      const std::int64_t number = require_int(value, "%x");
      if (number < 0) fail("a negative number in %x, expected none", ErrorCode::unsupported);
      if (c.kind == 'o' && c.flags.find('#') != c.flags.npos)
        fail("%#o, expected %o", ErrorCode::unsupported);
      std::snprintf(text, sizeof text, (head + "l" + c.kind).c_str(), static_cast<long>(number));
      return text;
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': {
      const double number =
          value.if_real() ? *value.if_real() : static_cast<double>(require_int(value, "%f"));
      std::snprintf(text, sizeof text, (head + c.kind).c_str(), number);
      return text;
    }
    case 's':
    case 'r': {
      Text out(budget);
      if (c.kind == 's') {
        append_string(out, value);
      } else {
        append_repr(out, value);
      }
      std::string result = out.take();
      if (c.precision >= 0) {
        const auto offsets = char_offsets(result);
        const auto n =
            std::min<std::size_t>(static_cast<std::size_t>(c.precision), offsets.size() - 1);
        result.resize(offsets[n]);
      }
      const std::int64_t missing = c.width - static_cast<std::int64_t>(count_chars(result));
      if (missing > 0) {
        const bool left = c.flags.find('-') != c.flags.npos;
        result.insert(left ? result.size() : 0,
                      std::string(static_cast<std::size_t>(missing), ' '));
      }
      return result;
    }
    default:
      fail(stringf("unsupported format character '%s'",
                   printable(std::string_view(&c.kind, 1)).c_str()));
  }
}

}  // namespace

std::string printf_format(Budget& budget, const std::string& format, const Value& value) {
  const Sequence* tuple = value.if_sequence();
  if (tuple && tuple->kind != SequenceKind::tuple) tuple = nullptr;
  std::size_t used = 0;
  const auto next = [&]() -> const Value& {
    if (tuple ? used >= tuple->items.size() : used > 0)
      fail("not enough arguments for format string");
    ++used;
    return tuple ? tuple->items[used - 1] : value;
  };
  Text out(budget);
  bool named = false;
  for (std::size_t at = 0; at < format.size();) {
    const std::size_t percent = std::min(format.find('%', at), format.size());
    out += std::string_view(format).substr(at, percent - at);
    at = percent + 1;
    if (percent == format.size()) break;
    budget.step();
    const Conversion c = parse(format, at);
    if (c.kind == '%') {
      out += '%';
    } else if (c.has_name) {
      const Dict* dict = value.if_dict();
      if (dict == nullptr) fail("format requires a mapping");
      budget.step(dict->entries.size() / 16);
      const Value* found = dict->find(c.name);
      if (found == nullptr)
        fail(stringf("format key '%s' is not there", printable(c.name).c_str()));
      named = true;
      out += formatted(budget, c, *found);
    } else {
      out += formatted(budget, c, next());
    }
  }
  const bool all_used = tuple ? used == tuple->items.size()
                              : used > 0 || named || value.if_dict() || value.if_sequence();
  if (!all_used) fail("not all arguments converted during string formatting");
  return out.take();
}

std::string time_format(const std::string& format, const std::tm& time) {
  static constexpr std::string_view kKnown = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%";
  std::string result;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      result += format[at];
      continue;
    }
    std::string conversion = "%";
    if (format.compare(at + 1, 1, "-") == 0) conversion += format[++at];
    if (++at >= format.size() || kKnown.find(format[at]) == kKnown.npos) {
      fail(stringf("time format '%s', expected the conversions of strftime",
                   printable(format).c_str()),
           ErrorCode::unsupported);
    }
    conversion += format[at];
    char text[200];
    result.append(text, std::strftime(text, sizeof text, conversion.c_str(), &time));
  }
  return result;
}

}  // namespace tsq::chat
