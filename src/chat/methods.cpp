// Methods of str, list, tuple and dict. Those that would change the object are none here: the
// sandbox of transformers refuses them.
#include <algorithm>
#include <span>

#include "chat/functions.h"
#include "chat/text.h"

namespace tsq::chat {
namespace {

using Method = Value (*)(Budget&, const Value& self, const Args&);
using Items = std::vector<Value>;

const std::string& str(const Value& self) { return *self.if_string(); }

std::int64_t optional_int(const Value* value, std::int64_t absent) {
  return value == nullptr || value->is_none() ? absent : require_int(*value, "argument");
}

template <Side side>
Value stripped(Budget& b, const Value& self, const Args& args) {
  const auto given = bind("strip", args, {"chars"});
  std::optional<std::string_view> chars;
  if (given[0] && !given[0]->is_none()) chars = require_string(*given[0], "strip");
  // Each character may be looked for in all of chars.
  b.step(str(self).size() / 16 * (chars ? chars->size() / 16 + 1 : 1));
  return b.string(std::string(strip(str(self), chars, side)));
}

template <std::string (*convert)(std::string_view)>
Value converted(Budget& b, const Value& self, const Args& args) {
  bind("case", args, {});
  b.bytes(str(self).size());
  return b.string(convert(str(self)));
}

std::size_t skip_space(std::string_view text, std::size_t at, bool space) {
  while (at < text.size() && is_space(decode_char(text.substr(at))) == space)
    at += char_bytes(text.substr(at));
  return at;
}

// The words between white space: at most limit splits, from the left.
Items split_words(Budget& b, std::string_view text, std::int64_t limit) {
  Items parts;
  for (std::size_t at = skip_space(text, 0, true); at < text.size();) {
    const bool rest = static_cast<std::int64_t>(parts.size()) == limit;
    const std::size_t end = rest ? text.size() : skip_space(text, at, false);
    const std::string_view part = text.substr(at, end - at);
    parts.push_back(b.string(std::string(part)));
    at = skip_space(text, end, true);
  }
  return parts;
}

// The same from the right.
Items rsplit_words(Budget& b, std::string_view text, std::int64_t limit) {
  Items parts;
  text = strip(text, std::nullopt, Side::right);
  while (!text.empty()) {
    if (static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(b.string(std::string(text)));
      break;
    }
    std::size_t start = 0;
    for (std::size_t at = text.size(); at > 0 && start == 0;) {
      --at;
      if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
      if (is_space(decode_char(text.substr(at)))) start = at + char_bytes(text.substr(at));
    }
    parts.push_back(b.string(std::string(text.substr(start))));
    text = strip(text.substr(0, start), std::nullopt, Side::right);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Items split_by(Budget& b, std::string_view text, std::string_view by, std::int64_t limit) {
  Items parts;
  while (static_cast<std::int64_t>(parts.size()) != limit) {
    const std::size_t at = find_text(text, by);
    if (at == text.npos) break;
    parts.push_back(b.string(std::string(text.substr(0, at))));
    text.remove_prefix(at + by.size());
  }
  parts.push_back(b.string(std::string(text)));
  return parts;
}

Items rsplit_by(Budget& b, std::string_view text, std::string_view by, std::int64_t limit) {
  Items parts;
  while (static_cast<std::int64_t>(parts.size()) != limit) {
    if (by.size() >= 32) b.step(text.size() / 64);  // looks at all of it each time
    const std::size_t at = rfind_text(text, by);
    if (at == text.npos) break;
    parts.push_back(b.string(std::string(text.substr(at + by.size()))));
    text = text.substr(0, at);
  }
  parts.push_back(b.string(std::string(text)));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool from_right>
Value split(Budget& b, const Value& self, const Args& args) {
  const auto given = bind("split", args, {"sep", "maxsplit"});
  const std::int64_t limit = std::max<std::int64_t>(optional_int(given[1], -1), -1);
  const std::string& text = str(self);
  b.step(text.size() / 16);
  if (!given[0] || given[0]->is_none()) {
    return b.list(from_right ? rsplit_words(b, text, limit) : split_words(b, text, limit));
  }
  const std::string& by = require_string(*given[0], "split");
  if (by.empty()) fail("empty separator");
  return b.list(from_right ? rsplit_by(b, text, by, limit) : split_by(b, text, by, limit));
}

Value partition(Budget& b, const Value& self, const Args& args, bool from_right) {
  const std::string& by = require_string(*bind("partition", args, {"sep"}, 1)[0], "partition");
  if (by.empty()) fail("empty separator");
  const std::string& text = str(self);
  b.step(text.size() / 16);
  const std::size_t at = from_right ? rfind_text(text, by) : find_text(text, by);
  Items parts;
  if (at != text.npos) {
    parts = {b.string(text.substr(0, at)), by, b.string(text.substr(at + by.size()))};
  } else if (from_right) {
    parts = {"", "", self};
  } else {
    parts = {self, "", ""};
  }
  return b.sequence(SequenceKind::tuple, std::move(parts));
}
Value left_partition(Budget& b, const Value& self, const Args& args) {
  return partition(b, self, args, false);
}
Value right_partition(Budget& b, const Value& self, const Args& args) {
  return partition(b, self, args, true);
}

Value splitlines(Budget& b, const Value& self, const Args& args) {
  const auto given = bind("splitlines", args, {"keepends"});
  b.step(str(self).size() / 16);
  Items lines;
  b.bytes(str(self).size());
  for (const auto line : split_lines(str(self), given[0] && given[0]->truthy())) {
    lines.push_back(b.string(std::string(line)));
  }
  return b.list(std::move(lines));
}

// The part of the text that find, count and startswith look at.
struct Part {
  std::string_view text;
  std::size_t offset;  // in bytes, of the whole
  std::int64_t first;  // in characters
  bool valid;          // start is not behind the end
};
Part part_of(Budget& b, const std::string& text, const Value* start, const Value* end) {
  b.step(text.size() / 16);
  if (!start && !end) return {text, 0, 0, true};
  b.bytes(4 * text.size());
  const auto offsets = char_offsets(text);
  const auto size = static_cast<std::int64_t>(offsets.size()) - 1;
  const auto place = [&](const Value* value, std::int64_t absent) {
    std::int64_t at = optional_int(value, absent);
    if (at < 0) at = std::max<std::int64_t>(at < -size ? 0 : at + size, 0);
    return at;
  };
  const std::int64_t from = place(start, 0), to = std::min(place(end, size), size);
  if (from > to) return {"", 0, 0, false};
  const std::size_t at = offsets[static_cast<std::size_t>(from)];
  return {std::string_view(text).substr(at, offsets[static_cast<std::size_t>(to)] - at), at, from,
          true};
}

template <bool from_left>
Value has_affix(Budget& b, const Value& self, const Args& args) {
  const auto given = bind("startswith", args, {"prefix", "start", "end"}, 1);
  const Part part = part_of(b, str(self), given[1], given[2]);
  const auto has = [&](const Value& affix) {
    const std::string& a = require_string(affix, "startswith");
    return part.valid && (from_left ? part.text.substr(0, a.size()) == a
                                    : part.text.size() >= a.size() &&
                                          part.text.substr(part.text.size() - a.size()) == a);
  };
  const Sequence* tuple = given[0]->if_sequence();
  if (tuple == nullptr || tuple->kind != SequenceKind::tuple) return has(*given[0]);
  b.step(tuple->items.size());
  return std::any_of(tuple->items.begin(), tuple->items.end(), has);
}

std::int64_t found_at(Budget& b, const Value& self, const Args& args, bool from_right) {
  const auto given = bind("find", args, {"sub", "start", "end"}, 1);
  const Part part = part_of(b, str(self), given[1], given[2]);
  const std::string& sub = require_string(*given[0], "find");
  if (!part.valid) return -1;
  const std::size_t at = from_right ? rfind_text(part.text, sub) : find_text(part.text, sub);
  if (at == part.text.npos) return -1;
  return part.first + static_cast<std::int64_t>(count_chars(part.text.substr(0, at)));
}
Value find(Budget& b, const Value& self, const Args& args) {
  return found_at(b, self, args, false);
}
Value rfind(Budget& b, const Value& self, const Args& args) {
  return found_at(b, self, args, true);
}
Value index(Budget& b, const Value& self, const Args& args) {
  const std::int64_t at = found_at(b, self, args, false);
  if (at < 0) fail("substring not found");
  return at;
}

Value count(Budget& b, const Value& self, const Args& args) {
  const auto given = bind("count", args, {"sub", "start", "end"}, 1);
  const Part part = part_of(b, str(self), given[1], given[2]);
  const std::string& sub = require_string(*given[0], "count");
  if (!part.valid) return 0;
  if (sub.empty()) return static_cast<std::int64_t>(count_chars(part.text)) + 1;
  std::int64_t n = 0;
  for (std::size_t at = find_text(part.text, sub); at != part.text.npos;
       at = find_text(part.text, sub, at + sub.size()))
    ++n;
  return n;
}

Value replace(Budget& b, const Value& self, const Args& args) {
  const auto given = bind("replace", args, {"old", "new", "count"}, 2);
  const std::string &old = require_string(*given[0], "replace"),
                    &with = require_string(*given[1], "replace");
  std::int64_t left = optional_int(given[2], -1);
  std::string_view text = str(self);
  Text out(b);
  while (left != 0) {
    const std::size_t at = find_text(text, old);
    if (at == text.npos) break;
    out += text.substr(0, at);
    out += with;
    text.remove_prefix(at + old.size());
    if (old.empty()) {  // between all characters
      if (text.empty()) break;
      const std::size_t n = char_bytes(text);
      out += text.substr(0, n);
      text.remove_prefix(n);
    }
    b.step();
    --left;
  }
  out += text;
  return b.string(out.take());
}

Value join(Budget& b, const Value& self, const Args& args) {
  const auto items = iterate(b, *bind("join", args, {"iterable"}, 1)[0]);
  Text out(b);
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    if (i > 0) out += str(self);
    out += require_string(items->items[i], "join");
  }
  return b.string(out.take());
}

template <Side side>
Value without_affix(Budget& b, const Value& self, const Args& args) {
  const std::string& affix = require_string(*bind("removeprefix", args, {"prefix"}, 1)[0], "affix");
  std::string_view text = str(self);
  const bool left = side == Side::left;
  if (text.size() >= affix.size() &&
      text.substr(left ? 0 : text.size() - affix.size(), affix.size()) == affix) {
    text = left ? text.substr(affix.size()) : text.substr(0, text.size() - affix.size());
  }
  return b.string(std::string(text));
}

// str.is...: all characters are, and there is one.
template <bool (*is)(char32_t)>
Value all_chars(Budget& b, const Value& self, const Args& args) {
  bind("is", args, {});
  std::string_view text = str(self);
  b.step(text.size() / 16);
  if (text.empty()) return false;
  for (; !text.empty(); text.remove_prefix(char_bytes(text))) {
    if (!is(decode_char(text))) return false;
  }
  return true;
}
bool is_alnum(char32_t c) { return is_letter(c) || is_digit(c); }

template <bool (*is)(std::string_view)>
Value cased(Budget& b, const Value& self, const Args& args) {
  bind("is", args, {});
  b.bytes(2 * str(self).size());
  return is(str(self));
}

template <Side side>
Value padded(Budget& b, const Value& self, const Args& args) {
  const auto given = bind("ljust", args, {"width", "fillchar"}, 1);
  const std::string fill = given[1] ? require_string(*given[1], "fillchar") : " ";
  if (count_chars(fill) != 1) fail("the fill character must be exactly one character long");
  const std::int64_t width = require_int(*given[0], "width");
  const std::int64_t missing = std::max<std::int64_t>(width - length(self), 0);
  // Of an odd rest, Python's center puts the greater half to the left where width is odd.
  const std::int64_t left = side == Side::right  ? missing
                            : side == Side::left ? 0
                                                 : missing / 2 + (missing & width & 1);
  Text out(b);
  for (std::int64_t i = 0; i < left; ++i) out += fill;
  out += str(self);
  for (std::int64_t i = left; i < missing; ++i) out += fill;
  return b.string(out.take());
}

Value zfill(Budget& b, const Value& self, const Args& args) {
  const std::int64_t width = require_int(*bind("zfill", args, {"width"}, 1)[0], "zfill");
  std::string_view text = str(self);
  Text out(b);
  const std::int64_t missing = width - length(self);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    out += text[0];
    text.remove_prefix(1);
  }
  for (std::int64_t i = 0; i < missing; ++i) out += '0';
  out += text;
  return b.string(out.take());
}

// str.format with {}, {0}, {name} and attributes and items of them; no format specification.
Value format(Budget& b, const Value& self, const Args& args) {
  Text out(b);
  std::size_t next = 0;
  const std::string_view text = str(self);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (text.substr(at + 1, 1) == std::string_view(&c, 1)) {
      out += text[at++];
      continue;
    }
    const std::size_t end = c == '{' ? text.find('}', at) : text.npos;
    if (end == text.npos)
      fail(stringf("a single '%c' in a format string, expected two or {NAME}", c));
    std::string_view field = text.substr(at + 1, end - at - 1);
    at = end;
    if (field.find_first_of(":![.") != field.npos) {
      fail(stringf("format field {%s}, expected a position or a name", printable(field).c_str()),
           ErrorCode::unsupported);
    }
    const auto position = parse_int(field);
    const Value* value = nullptr;
    if (field.empty() || position) {
      const std::size_t i = position ? static_cast<std::size_t>(*position) : next++;
      if (i >= args.positional.size()) fail("a format field without its argument");
      value = &args.positional[i];
    } else {
      for (const auto& [name, named] : args.named) {
        if (name == field) value = &named;
      }
      if (value == nullptr)
        fail(stringf("format field {%s} without its argument", printable(field).c_str()));
    }
    append_string(out, *value);
  }
  return b.string(out.take());
}

Value get(Budget& b, const Value& self, const Args& args) {
  const auto given = bind("get", args, {"key", "default"}, 1);
  if (const Value* found = find_key(b, *self.if_dict(), *given[0])) return *found;
  return given[1] ? *given[1] : Value(nullptr);
}

template <bool keys, bool values>
Value view(Budget& b, const Value& self, const Args& args) {
  bind("items", args, {});
  Items result;
  for (const auto& [key, value] : self.if_dict()->entries) {
    if (keys && values) {
      result.push_back(b.sequence(SequenceKind::tuple, {key, value}));
    } else {
      result.push_back(keys ? key : value);
    }
  }
  return b.sequence(!values ? SequenceKind::dict_keys
                    : !keys ? SequenceKind::dict_values
                            : SequenceKind::dict_items,
                    std::move(result));
}

Value copy(Budget&, const Value& self, const Args& args) {
  bind("copy", args, {});
  return self;
}

Value list_count(Budget& b, const Value& self, const Args& args) {
  const Value& wanted = *bind("count", args, {"value"}, 1)[0];
  std::int64_t n = 0;
  for (const Value& item : self.if_sequence()->items) n += equal(b, item, wanted);
  return n;
}

Value list_index(Budget& b, const Value& self, const Args& args) {
  const Value& wanted = *bind("index", args, {"value"}, 1)[0];
  const Items& all = self.if_sequence()->items;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (equal(b, all[i], wanted)) return static_cast<std::int64_t>(i);
  }
  fail("the value is not in the list");
}

using Entry = std::pair<std::string_view, Method>;
constexpr Entry kString[] = {
    {"capitalize", converted<to_capitalized>},
    {"center", padded<Side::both>},
    {"count", count},
    {"endswith", has_affix<false>},
    {"find", find},
    {"format", format},
    {"index", index},
    {"isalnum", all_chars<is_alnum>},
    {"isalpha", all_chars<is_letter>},
    {"isdecimal", all_chars<is_digit>},
    {"isdigit", all_chars<is_digit>},
    {"islower", cased<is_lower>},
    {"isspace", all_chars<is_space>},
    {"isupper", cased<is_upper>},
    {"join", join},
    {"ljust", padded<Side::left>},
    {"lower", converted<to_lower>},
    {"lstrip", stripped<Side::left>},
    {"partition", left_partition},
    {"removeprefix", without_affix<Side::left>},
    {"removesuffix", without_affix<Side::right>},
    {"replace", replace},
    {"rfind", rfind},
    {"rjust", padded<Side::right>},
    {"rpartition", right_partition},
    {"rsplit", split<true>},
    {"rstrip", stripped<Side::right>},
    {"split", split<false>},
    {"splitlines", splitlines},
    {"startswith", has_affix<true>},
    {"strip", stripped<Side::both>},
    {"title", converted<to_title>},
    {"upper", converted<to_upper>},
    {"zfill", zfill},
};
constexpr Entry kDict[] = {{"copy", copy},
                           {"get", get},
                           {"items", view<true, true>},
                           {"keys", view<true, false>},
                           {"values", view<false, true>}};
constexpr Entry kList[] = {{"copy", copy}, {"count", list_count}, {"index", list_index}};

std::span<const Entry> methods_of(const Value& self) {
  if (self.if_string()) return kString;
  if (self.if_dict()) return kDict;
  const Sequence* s = self.if_sequence();
  if (s && (s->kind == SequenceKind::list || s->kind == SequenceKind::tuple)) return kList;
  return {};
}

Method find_method(const Value& self, std::string_view name) {
  for (const auto& [known, method] : methods_of(self)) {
    if (known == name) return method;
  }
  return nullptr;
}

}  // namespace

bool has_method(const Value& self, std::string_view name) {
  return find_method(self, name) != nullptr;
}

bool is_unsafe_method(const Value& self, std::string_view name) {
  static constexpr std::string_view kListNames[] = {"append", "clear",  "extend",  "insert",
                                                    "pop",    "remove", "reverse", "sort"};
  static constexpr std::string_view kDictNames[] = {"clear", "pop", "popitem", "setdefault",
                                                    "update"};
  if (name.size() > 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__")
    return true;
  std::span<const std::string_view> names;
  const Sequence* s = self.if_sequence();
  if (self.if_dict()) names = kDictNames;
  if (s && s->kind == SequenceKind::list) names = kListNames;
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value call_method(Budget& budget, const Value& self, const std::string& name, const Args& args) {
  return find_method(self, name)(budget, self, args);
}

}  // namespace tsq::chat
