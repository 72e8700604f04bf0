// Renders a parsed template: statements.cpp runs the statements, interpreter.cpp evaluates the
// expressions. Names are looked up when they are used, from the innermost scope out; loops, macros
// and captured blocks open a scope, branches do not.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/ast.h"
#include "chat/budget.h"
#include "chat/functions.h"
#include "chat/value.h"

namespace tsq::chat {

struct Scope {
  Scope* outer;
  std::vector<std::pair<std::string, Value>> names;
  bool captured = false;  // a macro holds it
};

struct Macro {
  const MacroSource* source;
  Scope* scope;  // where it was defined
};

// The variable loop, and where the iteration stands. The condition of a loop is evaluated as items
// are taken, so that it sees what the body did before.
struct Loop {
  std::shared_ptr<const Sequence> items;
  const Stmt* statement;
  Scope* scope;
  std::size_t next = 0;  // of items
  std::int64_t index0 = -1;
  std::optional<std::int64_t> length;
  std::vector<Value> ahead;  // taken, not yet iterated
  Value previous, current;
  bool over = false;
};

class Interpreter {
 public:
  // All are borrowed. context is a dict.
  Interpreter(const Value& context, const Limits& limits, std::optional<std::tm> now)
      : context_(context), budget_(limits), now_(now) {}

  std::string run(const Body& body);
  // Where the failure that run() threw arose.
  int line() const { return line_; }

 private:
  enum class Flow { normal, broken, continued };
  struct Nest {  // a level of evaluation
    explicit Nest(Interpreter& i);
    ~Nest() { --interpreter.depth_; }
    Interpreter& interpreter;
  };
  class NewScope;
  class Capture;

  // statements.cpp
  Flow run_body(const Body& body);
  Flow run_stmt(const Stmt& s);
  void run_loop(const Stmt& s);
  std::optional<Value> take(Loop& loop);  // the next item that meets the condition
  void peek(Loop& loop, bool all);
  Value loop_attribute(Loop& loop, const std::string& name);
  Value call_macro(const Macro& macro, const Args& args);
  Value make_macro(const MacroSource& source);
  void assign(const Target& target, const Value& value);
  void set(const std::string& name, Value value);
  void write(std::string_view text);
  std::string run_captured(const Body& body);

  // interpreter.cpp
  Value eval(const Expr& e);
  Value eval_now(const Expr& e);
  Value eval_name(const std::string& name);
  Value eval_compare(const Expr& e);
  Value eval_dict(const Expr& e);
  Value eval_slice(const Expr& e);
  Value filtered(const Expr& filter, const Value& input);  // through a chain that ends in no input
  Args eval_args(const Arguments& source);
  Value attribute(const Value& object, const std::string& name);
  Value call(const Value& callee, const Args& args);
  Value call_builtin(Builtin function, const Args& args);

  const Value& context_;
  Budget budget_;
  std::optional<std::tm> now_;
  Scope* scope_ = nullptr;
  std::string* out_ = nullptr;
  int depth_ = 0, line_ = 0;
  // What values may point to, until the end.
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<std::unique_ptr<Macro>> macros_;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
};

}  // namespace tsq::chat
