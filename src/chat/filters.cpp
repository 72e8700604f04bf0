// value | NAME(arguments).
#include <algorithm>
#include <cmath>

#include "chat/functions.h"
#include "chat/text.h"

namespace tsq::chat {
namespace {

using Filter = Value (*)(Budget&, const Value& input, const Args&);
using Items = std::vector<Value>;

bool flag(const Value* value) { return value != nullptr && value->truthy(); }

// soft_str of Jinja, paid for.
std::string text_of(Budget& budget, const Value& input) {
  std::string text = to_string(budget, input);
  budget.bytes(text.size());
  return text;
}

// What attribute= reads: "a.b.0" steps through the levels; null is the item itself.
Value lookup(Budget& budget, Value item, const Value* path) {
  if (path == nullptr || path->is_none()) return item;
  const std::string* text = path->if_string();
  if (text == nullptr) return subscript(budget, item, *path);
  std::string_view rest = *text;
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const auto index = parse_int(part);
    const bool digits = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](unsigned char c) { return isdigit(c); });
    item = subscript(budget, item, digits && index ? Value(*index) : Value(part));
    if (dot == rest.npos) return item;
    rest.remove_prefix(dot + 1);
  }
}

// What sorting and comparing look at.
Value sort_key(Budget& budget, const Value& item, const Value* attribute, bool case_sensitive) {
  Value key = lookup(budget, item, attribute);
  const std::string* text = key.if_string();
  return text && !case_sensitive ? budget.string(to_lower(*text)) : key;
}

// Sorts pairs of a key and an item by the key.
Items sorted(Budget& budget, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? compare(budget, b.first, a.first, "<") == -1
                   : compare(budget, a.first, b.first, "<") == -1;
  });
  Items items;
  for (auto& pair : keyed) items.push_back(std::move(pair.second));
  return items;
}

Value upper(Budget& b, const Value& in, const Args& args) {
  bind("upper", args, {});
  return b.string(to_upper(text_of(b, in)));
}
Value lower(Budget& b, const Value& in, const Args& args) {
  bind("lower", args, {});
  return b.string(to_lower(text_of(b, in)));
}
Value capitalize(Budget& b, const Value& in, const Args& args) {
  bind("capitalize", args, {});
  return b.string(to_capitalized(text_of(b, in)));
}
Value string(Budget& b, const Value& in, const Args& args) {
  bind("string", args, {});
  return in.if_string() ? in : b.string(to_string(b, in));
}

// Jinja's own: words begin after white space, - ( { [ <.
Value title(Budget& b, const Value& in, const Args& args) {
  bind("title", args, {});
  const std::string text = text_of(b, in);
  std::string result;
  const auto separates = [](std::string_view c) {
    return is_space(decode_char(c)) ||
           std::string_view("-({[<").find(c[0]) != std::string_view::npos;
  };
  bool first = true;
  std::string_view rest = text;
  for (std::size_t n; !rest.empty(); rest.remove_prefix(n)) {
    n = char_bytes(rest);
    const std::string_view c = rest.substr(0, n);
    result += first ? to_upper(c) : to_lower(c);
    first = separates(c);
  }
  return b.string(std::move(result));
}

Value trim(Budget& b, const Value& in, const Args& args) {
  return call_method(b, b.string(to_string(b, in)), "strip", args);
}

Value replace(Budget& b, const Value& in, const Args& args) {
  const auto given = bind("replace", args, {"old", "new", "count"}, 2);
  Args call;
  call.positional = {b.string(to_string(b, *given[0])), b.string(to_string(b, *given[1]))};
  if (given[2] && !given[2]->is_none()) call.positional.push_back(*given[2]);
  return call_method(b, b.string(to_string(b, in)), "replace", call);
}

Value indent(Budget& b, const Value& in, const Args& args) {
  const auto given = bind("indent", args, {"width", "first", "blank"});
  std::string space(4, ' ');
  if (given[0] && given[0]->if_string()) {
    space = *given[0]->if_string();
  } else if (given[0]) {
    const Value spaces = arithmetic(b, "*", " ", *given[0]);
    space = require_string(spaces, "indent");
  }
  const std::string source = require_string(in, "indent") + "\n";
  const auto lines = split_lines(source, false);
  const bool blank = flag(given[2]);
  Text out(b);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i == 0 ? flag(given[1]) : blank || !lines[i].empty()) out += space;
    out += lines[i];
  }
  return b.string(out.take());
}

Value format(Budget& b, const Value& in, const Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    fail("format with positional and keyword arguments, expected one kind");
  }
  Value values;
  if (args.named.empty()) {
    values = b.sequence(SequenceKind::tuple, args.positional);
  } else {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [name, value] : args.named) entries.emplace_back(Value(name), value);
    values = b.dict(std::move(entries));
  }
  return b.string(printf_format(b, text_of(b, in), values));
}

Value tojson(Budget& b, const Value& in, const Args& args) {
  const auto given = bind("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = flag(given[0]);
  style.sorted = flag(given[3]);
  if (given[1] && !given[1]->is_none()) {
    style.multiline = true;
    style.comma.pop_back();  // lines end without a space
    if (const std::string* text = given[1]->if_string()) {
      style.indent = *text;
    } else {
      const std::int64_t width = require_int(*given[1], "tojson indent");
      if (width > 1000)
        fail(stringf("tojson indent %" PRId64 ", expected at most 1000", width),
             ErrorCode::unsupported);
      style.indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
  }
  if (given[2] && !given[2]->is_none()) {
    const auto pair = iterate(b, *given[2]);
    if (pair->items.size() != 2) fail("tojson separators, expected two");
    style.comma = require_string(pair->items[0], "separator");
    style.colon = require_string(pair->items[1], "separator");
  }
  return b.string(dump_json(b, in, style));
}

Value default_value(Budget&, const Value& in, const Args& args) {
  const auto given = bind("default", args, {"default_value", "boolean"});
  if (!in.is_undefined() && !(flag(given[1]) && !in.truthy())) return in;
  return given[0] ? *given[0] : Value("");
}

Value count(Budget& b, const Value& in, const Args& args) {
  bind("length", args, {});
  if (const std::string* text = in.if_string()) b.step(text->size() / 16);
  return length(in);
}

Value first(Budget& b, const Value& in, const Args& args) {
  bind("first", args, {});
  if (const std::string* text = in.if_string()) {
    if (!text->empty()) return b.string(text->substr(0, char_bytes(*text)));
  }
  const auto items = iterate(b, in);
  return items->items.empty() ? Value::undefined("No first item, sequence was empty.")
                              : items->items.front();
}

Value last(Budget& b, const Value& in, const Args& args) {
  bind("last", args, {});
  const Sequence* s = in.if_sequence();
  if (s && s->kind == SequenceKind::generator) fail("'generator' object is not reversible");
  const auto items = iterate(b, in);
  return items->items.empty() ? Value::undefined("No last item, sequence was empty.")
                              : items->items.back();
}

Value list(Budget& b, const Value& in, const Args& args) {
  bind("list", args, {});
  return b.list(iterate(b, in)->items);
}

Value items(Budget& b, const Value& in, const Args& args) {
  bind("items", args, {});
  if (in.is_undefined()) return b.sequence(SequenceKind::generator, {});
  if (!in.if_dict()) fail("Can only get item pairs from a mapping.");
  return b.sequence(SequenceKind::generator, iterate(b, call_method(b, in, "items", {}))->items);
}

Value join(Budget& b, const Value& in, const Args& args) {
  const auto given = bind("join", args, {"d", "attribute"});
  Text out(b);
  bool more = false;
  const auto source = iterate(b, in);
  for (const Value& item : source->items) {
    if (more && given[0]) append_string(out, *given[0]);
    more = true;
    append_string(out, lookup(b, item, given[1]));
  }
  return b.string(out.take());
}

Value reverse(Budget& b, const Value& in, const Args& args) {
  bind("reverse", args, {});
  if (in.if_string()) {
    const Value step = -1;
    return slice(b, in, nullptr, nullptr, &step);
  }
  Items result = iterate(b, in)->items;
  std::reverse(result.begin(), result.end());
  return b.sequence(SequenceKind::generator, std::move(result));
}

Value sort(Budget& b, const Value& in, const Args& args) {
  const auto given = bind("sort", args, {"reverse", "case_sensitive", "attribute"});
  std::vector<std::pair<Value, Value>> keyed;
  const std::string* text = given[2] ? given[2]->if_string() : nullptr;
  const auto source = iterate(b, in);
  for (const Value& item : source->items) {
    if (text == nullptr || text->find(',') == text->npos) {
      keyed.emplace_back(sort_key(b, item, given[2], flag(given[1])), item);
      continue;
    }
    Items keys;  // "a,b": by a, then by b
    for (std::size_t at = 0; at <= text->size();) {
      const std::size_t end = std::min(text->find(',', at), text->size());
      const Value path(text->substr(at, end - at));
      keys.push_back(sort_key(b, item, &path, flag(given[1])));
      at = end + 1;
    }
    keyed.emplace_back(b.list(std::move(keys)), item);
  }
  return b.list(sorted(b, std::move(keyed), flag(given[0])));
}

Value dictsort(Budget& b, const Value& in, const Args& args) {
  const auto given = bind("dictsort", args, {"case_sensitive", "by", "reverse"});
  const std::string by = given[1] ? require_string(*given[1], "dictsort") : "key";
  if (by != "key" && by != "value")
    fail(stringf("dictsort by '%s', expected key or value", printable(by).c_str()));
  if (!in.if_dict()) fail(stringf("dictsort of a %s, expected a dict", in.type_name()));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : in.if_dict()->entries) {
    keyed.emplace_back(sort_key(b, by == "key" ? key : value, nullptr, flag(given[0])),
                       b.sequence(SequenceKind::tuple, {key, value}));
  }
  return b.list(sorted(b, std::move(keyed), flag(given[2])));
}

Value unique(Budget& b, const Value& in, const Args& args) {
  const auto given = bind("unique", args, {"case_sensitive", "attribute"});
  Items seen, result;
  const auto source = iterate(b, in);
  for (const Value& item : source->items) {
    Value key = sort_key(b, item, given[1], flag(given[0]));
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& s) { return equal(b, s, key); }))
      continue;
    seen.push_back(std::move(key));
    result.push_back(item);
  }
  return b.sequence(SequenceKind::generator, std::move(result));
}

Value extreme(Budget& b, const Value& in, const Args& args, const char* op) {
  const auto given = bind("min", args, {"case_sensitive", "attribute"});
  const Value* best = nullptr;
  Value best_key;
  const auto source = iterate(b, in);
  for (const Value& item : source->items) {
    Value key = sort_key(b, item, given[1], flag(given[0]));
    if (best == nullptr || compare(b, key, best_key, op) == (op[0] == '<' ? -1 : 1)) {
      best = &item;
      best_key = std::move(key);
    }
  }
  return best ? *best : Value::undefined("No aggregated item, sequence was empty.");
}
Value min(Budget& b, const Value& in, const Args& args) { return extreme(b, in, args, "<"); }
Value max(Budget& b, const Value& in, const Args& args) { return extreme(b, in, args, ">"); }

Value sum(Budget& b, const Value& in, const Args& args) {
  const auto given = bind("sum", args, {"attribute", "start"});
  Value total = given[1] ? *given[1] : Value(0);
  if (total.if_string()) fail("sum() can't sum strings");
  const auto source = iterate(b, in);
  for (const Value& item : source->items)
    total = arithmetic(b, "+", total, lookup(b, item, given[0]));
  return total;
}

Value map(Budget& b, const Value& in, const Args& args) {
  Items result;
  if (!in.truthy()) return b.sequence(SequenceKind::generator, {});  // none, too
  const auto source = iterate(b, in);
  if (args.positional.empty()) {
    const auto given = bind("map", args, {"attribute", "default"}, 1);
    for (const Value& item : source->items) {
      Value found = lookup(b, item, given[0]);
      result.push_back(found.is_undefined() && given[1] ? *given[1] : std::move(found));
    }
  } else {
    const std::string name = require_string(args.positional[0], "map");
    const Args rest{{args.positional.begin() + 1, args.positional.end()}, args.named};
    for (const Value& item : source->items) {
      b.step();
      result.push_back(apply_filter(b, name, item, rest));
    }
  }
  return b.sequence(SequenceKind::generator, std::move(result));
}

// select and its kin: the items, or an attribute of theirs, that meet a test or are true.
Value chosen(Budget& b, const Value& in, const Args& args, bool by_attribute, bool keep) {
  if (!in.truthy()) return b.sequence(SequenceKind::generator, {});  // none, too
  const std::size_t used = by_attribute ? 1 : 0;
  if (args.positional.size() < used) fail("Missing parameter for attribute name");
  const Value* attribute = by_attribute ? &args.positional[0] : nullptr;
  std::string test;
  Args rest;
  if (args.positional.size() > used) {
    test = require_string(args.positional[used], "test");
    rest = {
        {args.positional.begin() + static_cast<std::ptrdiff_t>(used) + 1, args.positional.end()},
        args.named};
  }
  Items result;
  const auto source = iterate(b, in);
  for (const Value& item : source->items) {
    b.step();
    const Value subject = lookup(b, item, attribute);
    if ((test.empty() ? subject.truthy() : apply_test(b, test, subject, rest)) == keep) {
      result.push_back(item);
    }
  }
  return b.sequence(SequenceKind::generator, std::move(result));
}
Value select(Budget& b, const Value& in, const Args& a) { return chosen(b, in, a, false, true); }
Value reject(Budget& b, const Value& in, const Args& a) { return chosen(b, in, a, false, false); }
Value selectattr(Budget& b, const Value& in, const Args& a) { return chosen(b, in, a, true, true); }
Value rejectattr(Budget& b, const Value& in, const Args& a) {
  return chosen(b, in, a, true, false);
}

std::optional<std::int64_t> truncated(double number) {
  if (!(std::fabs(number) < 9.2e18)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

Value to_int(Budget&, const Value& in, const Args& args) {
  const auto given = bind("int", args, {"default", "base"});
  if (in.is_undefined()) fail(in.why());
  std::optional<std::int64_t> number;
  if (const std::string* text = in.if_string()) {
    number = parse_int(*text, given[1] ? static_cast<int>(std::clamp<std::int64_t>(
                                             require_int(*given[1], "int"), -1, 99))
                                       : 10);
    if (!number) {
      const auto real = parse_real(*text);
      number = real ? truncated(*real) : std::nullopt;
    }
  } else if (const double* real = in.if_real()) {
    number = truncated(*real);
  } else if (in.if_bool() || in.if_exact_int()) {
    number = require_int(in, "int");
  }
  if (number) return *number;
  return given[0] ? *given[0] : Value(0);
}

Value to_float(Budget&, const Value& in, const Args& args) {
  const auto given = bind("float", args, {"default"});
  if (in.is_undefined()) fail(in.why());
  std::optional<double> number;
  if (const std::string* text = in.if_string()) {
    number = parse_real(*text);
  } else if (const double* real = in.if_real()) {
    number = *real;
  } else if (in.if_bool() || in.if_exact_int()) {
    number = static_cast<double>(require_int(in, "float"));
  }
  if (number) return *number;
  return given[0] ? *given[0] : Value(0.0);
}

Value absolute(Budget& b, const Value& in, const Args& args) {
  bind("abs", args, {});
  const Value zero = in.if_real() ? Value(0.0) : Value(0);
  if (in.if_real()) return std::fabs(*in.if_real());
  return compare(b, in, zero, "<") == -1 ? negate(in) : arithmetic(b, "+", in, zero);
}

Value round(Budget& b, const Value& in, const Args& args) {
  const auto given = bind("round", args, {"precision", "method"});
  const std::int64_t precision = given[0] ? require_int(*given[0], "round") : 0;
  const std::string method = given[1] ? require_string(*given[1], "round") : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail("method must be common, ceil or floor");
  if (precision < 0 || precision > 300)
    fail(stringf("round to %" PRId64 " digits, expected 0 to 300", precision),
         ErrorCode::unsupported);
  if (method == "common" && !in.if_real()) return require_int(in, "round");
  const double number =
      in.if_real() ? *in.if_real() : static_cast<double>(require_int(in, "round"));
  if (!std::isfinite(number)) return number;
  if (method == "common") {
    // As Python does: through the decimal digits, which printf rounds half to even.
    const auto result = parse_real(stringf("%.*f", static_cast<int>(precision), number));
    return result.value_or(number);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = method == "ceil" ? std::ceil(number * scale) : std::floor(number * scale);
  return arithmetic(b, "/", scaled, scale);
}

constexpr std::pair<std::string_view, Filter> kFilters[] = {{"abs", absolute},
                                                            {"capitalize", capitalize},
                                                            {"count", count},
                                                            {"d", default_value},
                                                            {"default", default_value},
                                                            {"dictsort", dictsort},
                                                            {"first", first},
                                                            {"float", to_float},
                                                            {"format", format},
                                                            {"indent", indent},
                                                            {"int", to_int},
                                                            {"items", items},
                                                            {"join", join},
                                                            {"last", last},
                                                            {"length", count},
                                                            {"list", list},
                                                            {"lower", lower},
                                                            {"map", map},
                                                            {"max", max},
                                                            {"min", min},
                                                            {"reject", reject},
                                                            {"rejectattr", rejectattr},
                                                            {"replace", replace},
                                                            {"reverse", reverse},
                                                            {"round", round},
                                                            {"safe", string},
                                                            {"select", select},
                                                            {"selectattr", selectattr},
                                                            {"sort", sort},
                                                            {"string", string},
                                                            {"sum", sum},
                                                            {"title", title},
                                                            {"tojson", tojson},
                                                            {"trim", trim},
                                                            {"unique", unique},
                                                            {"upper", upper}};

}  // namespace

Value apply_filter(Budget& budget, const std::string& name, const Value& input, const Args& args) {
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter(budget, input, args);
  }
  fail(stringf("no filter named '%s'", printable(name).c_str()), ErrorCode::unsupported);
}

}  // namespace tsq::chat
