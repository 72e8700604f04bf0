// value is NAME(arguments).
#include <algorithm>

#include "chat/functions.h"
#include "chat/text.h"

namespace tsq::chat {
namespace {

// Of the argument of odd, even and divisibleby.
std::int64_t remainder(Budget& budget, const Value& value, const Value& by) {
  return require_int(arithmetic(budget, "%", value, by), "test");
}

bool is_number(const Value& v) { return v.if_bool() || v.if_exact_int() || v.if_real(); }

bool is_sequence(const Value& v) {
  const Sequence* s = v.if_sequence();
  return v.is_undefined() || v.if_string() || v.if_dict() ||
         (s && (s->kind == SequenceKind::list || s->kind == SequenceKind::tuple ||
                s->kind == SequenceKind::range));
}

using Check = bool (*)(const Value&);
constexpr std::pair<std::string_view, Check> kChecks[] = {
    {"defined", [](const Value& v) { return !v.is_undefined(); }},
    {"undefined", [](const Value& v) { return v.is_undefined(); }},
    {"none", [](const Value& v) { return v.is_none(); }},
    {"boolean", [](const Value& v) { return v.if_bool() != nullptr; }},
    {"true", [](const Value& v) { return v.if_bool() && *v.if_bool(); }},
    {"false", [](const Value& v) { return v.if_bool() && !*v.if_bool(); }},
    {"integer", [](const Value& v) { return v.if_exact_int() != nullptr; }},
    {"float", [](const Value& v) { return v.if_real() != nullptr; }},
    {"number", is_number},
    {"string", [](const Value& v) { return v.if_string() != nullptr; }},
    {"mapping", [](const Value& v) { return v.if_dict() != nullptr; }},
    {"sequence", is_sequence},
    {"iterable", is_iterable},
    {"callable",
     [](const Value& v) {
       return v.if_macro() || v.if_builtin() || v.if_bound() || v.is_undefined();
     }},
    {"escaped", [](const Value&) { return false; }}};

struct Relation {
  std::string_view name, alias, alias2;
  const char* op;
};
constexpr Relation kRelations[] = {{"eq", "equalto", "==", "=="},   {"ne", "ne", "!=", "!="},
                                   {"lt", "lessthan", "<", "<"},    {"le", "le", "<=", "<="},
                                   {"gt", "greaterthan", ">", ">"}, {"ge", "ge", ">=", ">="}};

bool holds(Budget& budget, const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return equal(budget, a, b);
  if (op == "!=") return !equal(budget, a, b);
  const int order = compare(budget, a, b, op.c_str());
  if (op[0] == '<') return order == -1 || (order == 0 && op.size() == 2);
  return order == 1 || (order == 0 && op.size() == 2);
}

}  // namespace

bool apply_test(Budget& budget, const std::string& name, const Value& input, const Args& args) {
  for (const auto& [known, check] : kChecks) {
    if (known != name) continue;
    bind(name, args, {});
    return check(input);
  }
  for (const Relation& r : kRelations) {
    if (r.name == name || r.alias == name || r.alias2 == name) {
      return holds(budget, r.op, input, *bind(name, args, {"other"}, 1)[0]);
    }
  }
  if (name == "odd" || name == "even") {
    bind(name, args, {});
    return equal(budget, arithmetic(budget, "%", input, 2), name == "odd" ? 1 : 0);
  }
  if (name == "divisibleby") return remainder(budget, input, *bind(name, args, {"num"}, 1)[0]) == 0;
  if (name == "in") return contains(budget, *bind(name, args, {"seq"}, 1)[0], input);
  if (name == "sameas") {
    const Value& other = *bind(name, args, {"other"}, 1)[0];
    return input.data().index() == other.data().index() && equal(budget, input, other);
  }
  if (name == "upper" || name == "lower") {
    bind(name, args, {});
    const std::string text = to_string(budget, input);
    budget.bytes(2 * text.size());
    return name == "upper" ? is_upper(text) : is_lower(text);
  }
  fail(stringf("no test named '%s'", printable(name).c_str()), ErrorCode::unsupported);
}

}  // namespace tsq::chat
