// The interpreter's statements: output, branches, loops, assignments, macros.
#include <algorithm>

#include "chat/interpreter.h"
#include "chat/scopes.h"

namespace tsq::chat {

Interpreter::Nest::Nest(Interpreter& i) : interpreter(i) {
  i.budget_.step();
  if (++i.depth_ > i.budget_.limits().depth) {
    --i.depth_;
    fail(stringf("evaluation nested more than %d levels deep, expected fewer",
                 i.budget_.limits().depth),
         ErrorCode::unsupported);
  }
}

std::string Interpreter::run(const Body& body) {
  const NewScope globals(*this, nullptr);
  return run_captured(body);
}

void Interpreter::write(std::string_view text) {
  budget_.bytes(text.size());
  if (text.size() > budget_.limits().output_bytes - out_->size()) {
    fail(stringf("over %" PRIu64 " bytes of output, expected fewer", budget_.limits().output_bytes),
         ErrorCode::unsupported);
  }
  *out_ += text;
}

std::string Interpreter::run_captured(const Body& body) {
  std::string text;
  const Capture capture(*this, &text);
  run_body(body);
  return text;
}

Interpreter::Flow Interpreter::run_body(const Body& body) {
  for (const StmtPtr& s : body) {
    const Flow flow = run_stmt(*s);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_stmt(const Stmt& s) {
  const Nest nest(*this);
  line_ = s.line;
  switch (s.kind) {
    case StmtKind::data:
      write(s.text);
      break;
    case StmtKind::output:
      write(to_string(budget_, eval(*s.expr)));
      break;
    case StmtKind::branch:
      return run_body(eval(*s.expr).truthy() ? s.body : s.other);
    case StmtKind::loop:
      run_loop(s);
      break;
    case StmtKind::assign:
      assign(s.target, eval(*s.expr));
      break;
    case StmtKind::block_set:
    case StmtKind::filter_body: {
      Value text;
      {
        const NewScope scope(*this, scope_);
        text = budget_.string(run_captured(s.body));
      }
      if (s.expr) text = filtered(*s.expr, text);
      if (s.kind == StmtKind::block_set) {
        assign(s.target, text);
      } else {
        write(to_string(budget_, text));
      }
      break;
    }
    case StmtKind::with: {
      std::vector<Value> values;
      for (const auto& binding : s.bindings) values.push_back(eval(*binding.second));
      const NewScope scope(*this, scope_);
      for (std::size_t i = 0; i < values.size(); ++i) assign(s.bindings[i].first, values[i]);
      return run_body(s.body);
    }
    case StmtKind::macro:
      set(s.macro->name, make_macro(*s.macro));
      break;
    case StmtKind::call: {
      Args args = eval_args(s.expr->arguments);
      args.named.emplace_back("caller", make_macro(*s.macro));
      write(to_string(budget_, call(eval(*s.expr->kids[0]), args)));
      break;
    }
    case StmtKind::scope: {
      const NewScope scope(*this, scope_);
      run_body(s.body);
      break;
    }
    case StmtKind::break_loop:
      return Flow::broken;
    case StmtKind::continue_loop:
      return Flow::continued;
  }
  return Flow::normal;
}

void Interpreter::run_loop(const Stmt& s) {
  const auto loop = std::make_shared<Loop>();
  loop->items = iterate(budget_, eval(*s.expr));
  loop->statement = &s;
  loop->scope = scope_;
  struct End {  // whoever kept the variable loop takes no more items
    Loop& loop;
    ~End() { loop.over = true; }
  } const end{*loop};
  bool ended = false;
  while (true) {
    std::optional<Value> item;
    if (loop->ahead.empty()) {
      item = take(*loop);
    } else {
      item = loop->ahead.front();
      loop->ahead.erase(loop->ahead.begin());
      budget_.step(loop->ahead.size() / 16);
    }
    if (!item) break;
    ++loop->index0;
    loop->previous = std::exchange(loop->current, *item);
    const NewScope scope(*this, scope_);
    set("loop", loop);
    assign(s.target, *item);
    const Flow flow = run_body(s.body);
    if (flow == Flow::normal) ended = true;
    if (flow == Flow::broken) break;
  }
  if (!ended) {  // as Jinja has it: where no iteration came to its end
    const NewScope scope(*this, scope_);
    run_body(s.other);
  }
}

std::optional<Value> Interpreter::take(Loop& loop) {
  while (!loop.over && loop.next < loop.items->items.size()) {
    budget_.step();
    const Value& item = loop.items->items[loop.next++];
    if (!loop.statement->test) return item;
    const NewScope scope(*this, loop.scope);
    assign(loop.statement->target, item);
    if (eval(*loop.statement->test).truthy()) return item;
  }
  return std::nullopt;
}

// Takes one item ahead, or all.
void Interpreter::peek(Loop& loop, bool all) {
  while (all || loop.ahead.empty()) {
    auto item = take(loop);
    if (!item) return;
    loop.ahead.push_back(std::move(*item));
  }
}

Value Interpreter::loop_attribute(Loop& loop, const std::string& name) {
  const auto length = [&] {
    if (!loop.length) {
      if (loop.statement->test) {
        peek(loop, true);
        loop.length = loop.index0 + 1 + static_cast<std::int64_t>(loop.ahead.size());
      } else {
        loop.length = static_cast<std::int64_t>(loop.items->items.size());
      }
    }
    return *loop.length;
  };
  if (name == "index0") return loop.index0;
  if (name == "index") return loop.index0 + 1;
  if (name == "first") return loop.index0 == 0;
  if (name == "length") return length();
  if (name == "revindex") return length() - loop.index0;
  if (name == "revindex0") return length() - loop.index0 - 1;
  if (name == "depth") return 1;
  if (name == "depth0") return 0;
  if (name == "previtem")
    return loop.index0 == 0 ? Value::undefined("there is no previous item") : loop.previous;
  if (name == "last" || name == "nextitem") {
    peek(loop, false);
    const bool last = loop.ahead.empty();
    if (name == "last") return last;
    return last ? Value::undefined("there is no next item") : loop.ahead.front();
  }
  return Value::undefined(
      stringf("the variable 'loop' has no attribute '%s'", printable(name).c_str()));
}

void Interpreter::set(const std::string& name, Value value) {
  budget_.step(scope_->names.size() / 16);
  for (auto& [known, old] : scope_->names) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  budget_.bytes(Budget::kValueBytes + name.size());
  scope_->names.emplace_back(name, std::move(value));
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.parts.empty()) {
    const auto items = iterate(budget_, value);
    if (items->items.size() != target.parts.size()) {
      fail(stringf("%zu values to assign to %zu names, expected as many", items->items.size(),
                   target.parts.size()));
    }
    for (std::size_t i = 0; i < target.parts.size(); ++i) assign(target.parts[i], items->items[i]);
  } else if (target.attribute.empty()) {
    set(target.name, value);
  } else {
    const Value object = eval_name(target.name);
    Namespace* space = object.if_namespace();
    if (space == nullptr) {
      fail(stringf("'%s' is a %s, expected a namespace to assign an attribute of",
                   printable(target.name).c_str(), object.type_name()));
    }
    if (target.attribute[0] == '_') {
      fail(stringf("attribute '%s', expected one that does not begin with _",
                   printable(target.attribute).c_str()));
    }
    budget_.step(space->attributes.size() / 16);
    if (Value* old = space->find(target.attribute)) {
      *old = value;
    } else {
      budget_.bytes(Budget::kValueBytes + target.attribute.size());
      space->attributes.emplace_back(target.attribute, value);
    }
  }
}

Value Interpreter::make_macro(const MacroSource& source) {
  budget_.bytes(Budget::kValueBytes);
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->outer) {
    scope->captured = true;
  }
  macros_.push_back(std::make_unique<Macro>(Macro{&source, scope_}));
  return macros_.back().get();
}

Value Interpreter::call_macro(const Macro& macro, const Args& args) {
  const MacroSource& source = *macro.source;
  const std::size_t n = source.parameters.size();
  const NewScope scope(*this, macro.scope);
  std::vector<std::pair<std::string, Value>> named = args.named;
  const auto take_named = [&](const std::string& name) -> std::optional<Value> {
    for (auto it = named.begin(); it != named.end(); ++it) {
      if (it->first != name) continue;
      std::optional<Value> value = std::move(it->second);
      named.erase(it);
      return value;
    }
    return std::nullopt;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::string& name = source.parameters[i];
    std::optional<Value> value;
    if (i < args.positional.size()) {
      value = args.positional[i];
    } else {
      value = take_named(name);
    }
    if (!value) {
      const std::size_t without_default = n - source.defaults.size();
      value = i >= without_default
                  ? eval(*source.defaults[i - without_default])
                  : Value::undefined(stringf("parameter '%s' was not provided", name.c_str()));
    }
    set(name, std::move(*value));
  }
  if (source.uses_caller) {
    if (auto caller = take_named("caller")) {
      set("caller", std::move(*caller));
    } else if (std::find(source.parameters.begin(), source.parameters.end(), "caller") ==
               source.parameters.end()) {
      set("caller", Value::undefined("No caller defined"));
    }
  }
  if (source.uses_kwargs) {
    std::vector<std::pair<Value, Value>> entries;
    for (auto& [name, value] : named) entries.emplace_back(Value(name), std::move(value));
    set("kwargs", budget_.dict(std::move(entries)));
  } else if (!named.empty()) {
    fail(stringf("macro '%s' takes no keyword argument '%s'", source.name.c_str(),
                 printable(named[0].first).c_str()));
  }
  if (source.uses_varargs) {
    const auto extra = args.positional.begin() + std::min(n, args.positional.size());
    set("varargs", budget_.sequence(SequenceKind::tuple, {extra, args.positional.end()}));
  } else if (args.positional.size() > n) {
    fail(stringf("macro '%s' takes not more than %zu argument(s)", source.name.c_str(), n));
  }
  return budget_.string(run_captured(source.body));
}

}  // namespace tsq::chat
