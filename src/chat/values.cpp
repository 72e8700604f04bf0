// Python's str(), repr(), ==, <, in and iteration.
#include <algorithm>
#include <cmath>

#include "chat/functions.h"
#include "chat/text.h"

namespace tsq::chat {
namespace {

struct Number {
  bool is_real;
  std::int64_t integer;
  double real;
};

std::optional<Number> number_of(const Value& value) {
  if (const bool* flag = value.if_bool()) return Number{false, *flag, double(*flag)};
  if (const auto* n = value.if_exact_int()) return Number{false, *n, static_cast<double>(*n)};
  if (const double* n = value.if_real()) return Number{true, 0, *n};
  return std::nullopt;
}

// -1, 0, 1, or 2 where one is not a number.
int compare_numbers(const Number& a, const Number& b) {
  if (!a.is_real && !b.is_real) return a.integer < b.integer ? -1 : a.integer > b.integer;
  if (std::isnan(a.real) || std::isnan(b.real)) return 2;
  return a.real < b.real ? -1 : a.real > b.real;
}

void append_items(Text& out, const std::vector<Value>& items, int depth) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(out, items[i], depth + 1);
  }
}

void append_sequence(Text& out, const Sequence& sequence, int depth) {
  const auto& items = sequence.items;
  switch (sequence.kind) {
    case SequenceKind::list:
      out += '[';
      append_items(out, items, depth);
      out += ']';
      break;
    case SequenceKind::tuple:
      out += '(';
      append_items(out, items, depth);
      out += items.size() == 1 ? ",)" : ")";
      break;
    case SequenceKind::dict_keys:
    case SequenceKind::dict_values:
    case SequenceKind::dict_items:
      out += Value::name_of(sequence.kind);
      out += "([";
      append_items(out, items, depth);
      out += "])";
      break;
    case SequenceKind::range:
    case SequenceKind::generator:
      out += sequence.kind == SequenceKind::range ? "<range of " : "<generator of ";
      out += stringf("%zu>", items.size());
      break;
  }
}

}  // namespace

std::vector<const Value*> bind(const std::string& callee, const Args& args,
                               std::initializer_list<const char*> parameters,
                               std::size_t required) {
  std::vector<const Value*> result(parameters.size());
  if (args.positional.size() > parameters.size()) {
    fail(stringf("%s() with %zu arguments, expected at most %zu", callee.c_str(),
                 args.positional.size(), parameters.size()));
  }
  for (std::size_t i = 0; i < args.positional.size(); ++i) result[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto known = std::find(parameters.begin(), parameters.end(), name);
    if (known == parameters.end()) {
      fail(callee +
           stringf("() with an argument '%s', which it does not take", printable(name).c_str()));
    }
    const Value*& slot = result[static_cast<std::size_t>(known - parameters.begin())];
    if (slot != nullptr) fail(callee + "() with two values for argument '" + name + "'");
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (result[i] == nullptr) {
      fail(callee + "() without its argument '" + *(parameters.begin() + i) + "'");
    }
  }
  return result;
}

void append_string(Text& out, const Value& value) {
  if (const std::string* text = value.if_string()) {
    out += *text;
  } else if (!value.is_undefined()) {
    append_repr(out, value);
  }
}

std::string to_string(Budget& budget, const Value& value) {
  if (const std::string* text = value.if_string()) return *text;
  Text out(budget);
  append_string(out, value);
  return out.take();
}

void append_repr(Text& out, const Value& value, int depth) {
  out.budget().step();
  if (depth > kMaxValueDepth) {  // a namespace may hold itself
    fail("a value that holds itself cannot be printed", ErrorCode::unsupported);
  }
  if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_none()) {
    out += "None";
  } else if (const bool* flag = value.if_bool()) {
    out += *flag ? "True" : "False";
  } else if (const auto* integer = value.if_exact_int()) {
    out += std::to_string(*integer);
  } else if (const double* real = value.if_real()) {
    out += real_repr(*real);
  } else if (const std::string* text = value.if_string()) {
    out += string_repr(*text);
  } else if (const Sequence* sequence = value.if_sequence()) {
    append_sequence(out, *sequence, depth);
  } else if (const Dict* dict = value.if_dict()) {
    out += '{';
    for (std::size_t i = 0; i < dict->entries.size(); ++i) {
      if (i > 0) out += ", ";
      append_repr(out, dict->entries[i].first, depth + 1);
      out += ": ";
      append_repr(out, dict->entries[i].second, depth + 1);
    }
    out += '}';
  } else if (Namespace* space = value.if_namespace()) {
    out += "<Namespace {";
    for (std::size_t i = 0; i < space->attributes.size(); ++i) {
      if (i > 0) out += ", ";
      out += string_repr(space->attributes[i].first);
      out += ": ";
      append_repr(out, space->attributes[i].second, depth + 1);
    }
    out += "}>";
  } else {
    fail(stringf("a %s cannot be printed, expected a value", value.type_name()));
  }
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.step();
  const auto x = number_of(a), y = number_of(b);
  if (x || y) return x && y && compare_numbers(*x, *y) == 0;
  if (a.data().index() != b.data().index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (const std::string* text = a.if_string()) {
    budget.step(text->size() / 64);
    return *text == *b.if_string();
  }
  if (const Sequence* s = a.if_sequence()) {
    const Sequence* t = b.if_sequence();
    if (s->kind != t->kind || s->items.size() != t->items.size()) return false;
    for (std::size_t i = 0; i < s->items.size(); ++i) {
      if (!equal(budget, s->items[i], t->items[i])) return false;
    }
    return true;
  }
  if (const Dict* d = a.if_dict()) {
    if (d->entries.size() != b.if_dict()->entries.size()) return false;
    for (const auto& [key, value] : d->entries) {
      const Value* other = find_key(budget, *b.if_dict(), key);
      if (other == nullptr || !equal(budget, value, *other)) return false;
    }
    return true;
  }
  return a.if_namespace() == b.if_namespace() && a.if_macro() == b.if_macro() &&
         a.if_loop() == b.if_loop() && a.if_bound() == b.if_bound() &&
         (a.if_builtin() == nullptr || *a.if_builtin() == *b.if_builtin());
}

int compare(Budget& budget, const Value& a, const Value& b, const char* op) {
  budget.step();
  if (a.is_undefined()) fail(a.why());
  if (b.is_undefined()) fail(b.why());
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return compare_numbers(*x, *y);
  const std::string *s = a.if_string(), *t = b.if_string();
  if (s != nullptr && t != nullptr) {
    budget.step(std::min(s->size(), t->size()) / 64);
    const int order = s->compare(*t);  // of UTF-8: that of the code points
    return order < 0 ? -1 : order > 0;
  }
  const Sequence *l = a.if_sequence(), *m = b.if_sequence();
  const auto ordered = [](const Sequence* q) {
    return q != nullptr && (q->kind == SequenceKind::list || q->kind == SequenceKind::tuple);
  };
  if (ordered(l) && ordered(m) && l->kind == m->kind) {
    for (std::size_t i = 0; i < std::min(l->items.size(), m->items.size()); ++i) {
      if (!equal(budget, l->items[i], m->items[i]))
        return compare(budget, l->items[i], m->items[i], op);
    }
    return l->items.size() < m->items.size() ? -1 : l->items.size() > m->items.size();
  }
  fail(stringf("'%s' not supported between instances of '%s' and '%s'", op, a.type_name(),
               b.type_name()));
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.if_string() || value.if_sequence() || value.if_dict() ||
         value.if_loop();
}

std::shared_ptr<const Sequence> iterate(Budget& budget, const Value& value) {
  if (const auto* items = std::get_if<std::shared_ptr<const Sequence>>(&value.data()))
    return *items;
  std::vector<Value> items;
  if (const Dict* dict = value.if_dict()) {
    for (const auto& entry : dict->entries) items.push_back(entry.first);
  } else if (const std::string* text = value.if_string()) {
    std::string_view rest = *text;
    for (std::size_t n; !rest.empty(); rest.remove_prefix(n)) {
      n = char_bytes(rest);
      items.push_back(budget.string(std::string(rest.substr(0, n))));
    }
  } else if (!value.is_undefined()) {
    fail(stringf("'%s' object is not iterable", value.type_name()));
  }
  const Value list = budget.list(std::move(items));
  return std::get<std::shared_ptr<const Sequence>>(list.data());
}

const Value* find_key(Budget& budget, const Dict& dict, const Value& key) {
  if (key.is_undefined()) return nullptr;
  const Sequence* sequence = key.if_sequence();
  if (key.if_dict() || (sequence && sequence->kind != SequenceKind::tuple)) {
    fail(stringf("unhashable type: '%s'", key.type_name()));
  }
  budget.step(dict.entries.size() / 16);
  if (const std::string* text = key.if_string()) return dict.find(*text);
  for (const auto& [name, value] : dict.entries) {
    if (equal(budget, name, key)) return &value;
  }
  return nullptr;
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  if (const std::string* text = container.if_string()) {
    const std::string* part = item.if_string();
    if (item.is_undefined()) fail(item.why());
    if (part == nullptr) {
      fail(stringf("'in <string>' requires string as left operand, not %s", item.type_name()));
    }
    budget.step(text->size() / 16);
    return find_text(*text, *part) != text->npos;
  }
  if (const Dict* dict = container.if_dict()) return find_key(budget, *dict, item) != nullptr;
  if (!is_iterable(container)) {
    fail(stringf("argument of type '%s' is not iterable", container.type_name()));
  }
  const auto items = iterate(budget, container);
  return std::any_of(items->items.begin(), items->items.end(),
                     [&](const Value& one) { return equal(budget, one, item); });
}

std::int64_t length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (const std::string* text = value.if_string())
    return static_cast<std::int64_t>(count_chars(*text));
  if (const Dict* dict = value.if_dict()) return static_cast<std::int64_t>(dict->entries.size());
  const Sequence* sequence = value.if_sequence();
  if (sequence == nullptr || sequence->kind == SequenceKind::generator) {
    fail(stringf("object of type '%s' has no len()", value.type_name()));
  }
  return static_cast<std::int64_t>(sequence->items.size());
}

std::int64_t require_int(const Value& value, const char* what) {
  if (const bool* flag = value.if_bool()) return *flag;
  if (const auto* number = value.if_exact_int()) return *number;
  if (value.is_undefined()) fail(value.why());
  fail(stringf("%s: '%s', expected an integer", what, value.type_name()));
}

const std::string& require_string(const Value& value, const char* what) {
  if (const std::string* text = value.if_string()) return *text;
  if (value.is_undefined()) fail(value.why());
  fail(stringf("%s: '%s', expected a string", what, value.type_name()));
}

}  // namespace tsq::chat
