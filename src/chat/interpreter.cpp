// The interpreter's expressions.
#include "chat/interpreter.h"

#include <algorithm>

namespace tsq::chat {
namespace {

constexpr std::pair<std::string_view, Builtin> kBuiltins[] = {
    {"range", Builtin::range},
    {"dict", Builtin::dict},
    {"namespace", Builtin::make_namespace},
    {"raise_exception", Builtin::raise_exception},
    {"strftime_now", Builtin::strftime_now}};

constexpr std::int64_t kMaxRange = 100'000;  // Jinja's sandbox has the same

// 'dict object', but 'None': as Jinja writes what has no such attribute.
std::string object_name(const Value& value) {
  return value.is_none() ? "None" : std::string(value.type_name()) + " object";
}

}  // namespace

Value Interpreter::eval(const Expr& e) {
  const Nest nest(*this);
  line_ = e.line;
  return eval_now(e);
}

Value Interpreter::eval_now(const Expr& e) {
  const auto kid = [&](std::size_t i) { return eval(*e.kids[i]); };
  switch (e.kind) {
    case ExprKind::constant:
      return e.constant;
    case ExprKind::name:
      return eval_name(e.text);
    case ExprKind::list:
    case ExprKind::tuple: {
      std::vector<Value> items;
      for (const auto& item : e.kids) items.push_back(eval(*item));
      return budget_.sequence(e.kind == ExprKind::list ? SequenceKind::list : SequenceKind::tuple,
                              std::move(items));
    }
    case ExprKind::dict:
      return eval_dict(e);
    case ExprKind::attribute:
      return attribute(kid(0), e.text);
    case ExprKind::subscript: {
      const Value object = kid(0), key = kid(1);
      line_ = e.line;
      Value found = subscript(budget_, object, key);
      const std::string* name = key.if_string();
      // object['name'] is object.name where it is no item.
      return found.is_undefined() && name != nullptr ? attribute(object, *name) : found;
    }
    case ExprKind::slice:
      return eval_slice(e);
    case ExprKind::call: {
      const Value callee = kid(0);
      const Args args = eval_args(e.arguments);
      line_ = e.line;
      return call(callee, args);
    }
    case ExprKind::filter:
      return filtered(e, Value());
    case ExprKind::test: {
      const Value input = kid(0);
      const Args args = eval_args(e.arguments);
      line_ = e.line;
      return apply_test(budget_, e.text, input, args);
    }
    case ExprKind::conditional:
      if (kid(0).truthy()) return kid(1);
      if (e.kids[2]) return kid(2);
      return Value::undefined(
          "the inline if-expression evaluated to false and no else section was defined");
    case ExprKind::logical_not:
      return !kid(0).truthy();
    case ExprKind::logical_and: {
      Value left = kid(0);
      return left.truthy() ? kid(1) : left;
    }
    case ExprKind::logical_or: {
      Value left = kid(0);
      return left.truthy() ? left : kid(1);
    }
    case ExprKind::compare:
      return eval_compare(e);
    case ExprKind::arithmetic: {
      const Value left = kid(0), right = kid(1);
      line_ = e.line;
      return arithmetic(budget_, e.text, left, right);
    }
    case ExprKind::negate:
      return negate(kid(0));
    case ExprKind::plus:
      return negate(negate(kid(0)));
    case ExprKind::concat: {
      Text text(budget_);
      for (const auto& part : e.kids) append_string(text, eval(*part));
      return budget_.string(text.take());
    }
  }
  return {};
}

Value Interpreter::eval_name(const std::string& name) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer) {
    budget_.step(1 + scope->names.size() / 16);
    for (const auto& [known, value] : scope->names) {
      if (known == name) return value;
    }
  }
  budget_.step(context_.if_dict()->entries.size() / 16);
  if (const Value* found = context_.if_dict()->find(name)) return *found;
  for (const auto& [known, function] : kBuiltins) {
    if (known == name) return function;
  }
  return Value::undefined(stringf("'%s' is undefined", name.c_str()));
}

Value Interpreter::eval_compare(const Expr& e) {
  Value left = eval(*e.kids[0]);
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    Value right = eval(*e.kids[i + 1]);
    const std::string& op = e.operators[i];
    line_ = e.line;
    bool holds;
    if (op == "in" || op == "not in") {
      holds = contains(budget_, right, left) == (op == "in");
    } else if (op == "==" || op == "!=") {
      holds = equal(budget_, left, right) == (op == "==");
    } else {
      const int order = compare(budget_, left, right, op.c_str());
      holds = op == "<"    ? order == -1
              : op == ">"  ? order == 1
              : op == "<=" ? order <= 0
                           : order == 0 || order == 1;
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::eval_dict(const Expr& e) {
  Dict dict;
  for (std::size_t i = 0; i < e.kids.size(); i += 2) {
    Value key = eval(*e.kids[i]), value = eval(*e.kids[i + 1]);
    if (const Value* old = find_key(budget_, dict, key)) {
      *const_cast<Value*>(old) = std::move(value);  // the dict is still ours
    } else {
      dict.entries.emplace_back(std::move(key), std::move(value));
    }
  }
  return budget_.dict(std::move(dict.entries));
}

Value Interpreter::eval_slice(const Expr& e) {
  const Value object = eval(*e.kids[0]);
  Value parts[3];
  const Value* given[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!e.kids[i + 1]) continue;
    parts[i] = eval(*e.kids[i + 1]);
    given[i] = &parts[i];
  }
  line_ = e.line;
  return slice(budget_, object, given[0], given[1], given[2]);
}

Value Interpreter::filtered(const Expr& filter, const Value& input) {
  const Expr* source = filter.kids[0].get();
  Value value = input;
  if (source != nullptr && source->kind == ExprKind::filter) {
    const Nest nest(*this);
    value = filtered(*source, input);
  } else if (source != nullptr) {
    value = eval(*source);
  }
  const Args args = eval_args(filter.arguments);
  line_ = filter.line;
  return apply_filter(budget_, filter.text, value, args);
}

Args Interpreter::eval_args(const Arguments& source) {
  Args args;
  for (const auto& value : source.positional) args.positional.push_back(eval(*value));
  for (const auto& [name, value] : source.named) args.named.emplace_back(name, eval(*value));
  if (source.star) {
    const auto items = iterate(budget_, eval(*source.star));
    budget_.bytes(items->items.size() * sizeof(Value));
    args.positional.insert(args.positional.end(), items->items.begin(), items->items.end());
  }
  if (source.star_star) {
    const Value value = eval(*source.star_star);
    if (value.if_dict() == nullptr)
      fail(stringf("** before a %s, expected a dict", value.type_name()));
    budget_.bytes(value.if_dict()->entries.size() * 2 * sizeof(Value));
    for (const auto& [key, item] : value.if_dict()->entries)
      args.named.emplace_back(require_string(key, "keyword"), item);
  }
  for (std::size_t i = 0; i < args.named.size(); ++i) {
    budget_.step(i);
    for (std::size_t j = 0; j < i; ++j) {
      if (args.named[i].first == args.named[j].first)
        fail(stringf("keyword argument '%s' twice, expected once",
                     printable(args.named[i].first).c_str()));
    }
  }
  return args;
}

Value Interpreter::attribute(const Value& object, const std::string& name) {
  if (object.is_undefined()) fail(object.why());
  if (Loop* loop = object.if_loop()) {
    if (name == "cycle") return std::make_shared<const Bound>(Bound{object, name});
    return loop_attribute(*loop, name);
  }
  if (Namespace* space = object.if_namespace()) {
    budget_.step(space->attributes.size() / 16);
    if (const Value* found = space->find(name)) return *found;
  }
  if (is_unsafe_method(object, name)) {
    return Value::undefined(stringf("access to attribute '%s' of '%s' object is unsafe.",
                                    printable(name).c_str(), object.type_name()));
  }
  if (has_method(object, name)) {
    budget_.bytes(Budget::kValueBytes);
    return std::make_shared<const Bound>(Bound{object, name});
  }
  if (const Dict* dict = object.if_dict()) {
    budget_.step(dict->entries.size() / 16);
    if (const Value* found = dict->find(name)) return *found;
  }
  return Value::undefined(
      stringf("'%s' has no attribute '%s'", object_name(object).c_str(), printable(name).c_str()));
}

Value Interpreter::call(const Value& callee, const Args& args) {
  const Nest nest(*this);
  if (const Macro* macro = callee.if_macro()) return call_macro(*macro, args);
  if (const Builtin* function = callee.if_builtin()) return call_builtin(*function, args);
  if (const Bound* bound = callee.if_bound()) {
    if (const Loop* loop = bound->self.if_loop()) {  // loop.cycle
      if (args.positional.empty()) fail("no items for cycling given");
      return args.positional[static_cast<std::size_t>(loop->index0) % args.positional.size()];
    }
    return call_method(budget_, bound->self, bound->name, args);
  }
  if (callee.is_undefined()) fail(callee.why());
  fail(stringf("'%s' object is not callable", callee.type_name()));
}

Value Interpreter::call_builtin(Builtin function, const Args& args) {
  switch (function) {
    case Builtin::range: {
      const auto given = bind("range", args, {"start", "stop", "step"}, 1);
      std::int64_t from = 0, to = require_int(*given[0], "range"), step = 1;
      if (given[1]) from = std::exchange(to, require_int(*given[1], "range"));
      if (given[2]) step = require_int(*given[2], "range");
      if (step == 0) fail("range() arg 3 must not be zero");
      std::vector<Value> items;
      for (std::int64_t i = from; step > 0 ? i < to : i > to;) {
        budget_.step();
        if (static_cast<std::int64_t>(items.size()) == kMaxRange) {
          fail(stringf("a range of more than %" PRId64 " items, expected fewer", kMaxRange));
        }
        items.emplace_back(i);
        if (__builtin_add_overflow(i, step, &i)) break;
      }
      return budget_.sequence(SequenceKind::range, std::move(items));
    }
    case Builtin::dict:
    case Builtin::make_namespace: {
      std::vector<std::pair<Value, Value>> entries;
      if (args.positional.size() > 1) fail("more than one argument, expected a dict");
      if (!args.positional.empty()) {
        const Dict* dict = args.positional[0].if_dict();
        if (dict == nullptr) fail("not a dict", ErrorCode::unsupported);
        entries = dict->entries;
      }
      for (const auto& [name, value] : args.named) {
        budget_.step(entries.size());
        const auto known =
            std::find_if(entries.begin(), entries.end(), [&, &key = name](const auto& e) {
              return e.first.if_string() != nullptr && *e.first.if_string() == key;
            });
        if (known != entries.end()) {
          known->second = value;
        } else {
          entries.emplace_back(Value(name), value);
        }
      }
      if (function == Builtin::dict) return budget_.dict(std::move(entries));
      budget_.bytes(Budget::kValueBytes + entries.size() * sizeof(entries[0]));
      namespaces_.push_back(std::make_unique<Namespace>());
      for (auto& [key, value] : entries) {
        const std::string& name = require_string(key, "attribute of a namespace");
        if (!name.empty() && name[0] == '_') {
          fail(stringf("attribute '%s', expected one that does not begin with _",
                       printable(name).c_str()));
        }
        namespaces_.back()->attributes.emplace_back(name, std::move(value));
      }
      return namespaces_.back().get();
    }
    case Builtin::raise_exception: {
      const auto given = bind("raise_exception", args, {"message"}, 1);
      throw Failure{ErrorCode::invalid_argument, printable(to_string(budget_, *given[0]), 1000)};
    }
    case Builtin::strftime_now: {
      const auto given = bind("strftime_now", args, {"format"}, 1);
      std::tm time{};
      if (now_) {
        time = *now_;
      } else {
        const std::time_t seconds = std::time(nullptr);
        localtime_r(&seconds, &time);
      }
      return budget_.string(time_format(require_string(*given[0], "strftime_now"), time));
    }
  }
  return {};
}

}  // namespace tsq::chat
