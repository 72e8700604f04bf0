// The expressions of a template, by recursive descent.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/ast.h"
#include "chat/cursor.h"

namespace tsq::chat {

// Every function begins at the current token and leaves the first that it does not read. Throws
// Failure.
class ExpressionParser : protected Cursor {
 protected:
  using Cursor::Cursor;

  std::unique_ptr<Expr> make(ExprKind kind, int line, std::vector<ExprPtr> kids = {}) const;
  void deepen(Expr& expr, const ExprPtr& kid) const;
  template <class... Kids>
  std::unique_ptr<Expr> node(ExprKind kind, int line, Kids... kids) const {
    std::vector<ExprPtr> all;
    (all.push_back(std::move(kids)), ...);
    return make(kind, line, std::move(all));
  }
  ExprPtr constant(int line, Value value) const;
  // One expression, or several with commas between: a tuple.
  ExprPtr tuple(std::string_view end = "", bool with_conditional = true);
  ExprPtr expression(bool with_conditional = true);
  ExprPtr logical_or();
  ExprPtr logical_and();
  ExprPtr logical_not();
  // The comparison that the current token begins, or nothing.
  std::string comparison_operator();
  ExprPtr comparison();
  using Level = ExprPtr (ExpressionParser::*)();
  ExprPtr binary(std::initializer_list<std::string_view> operators, Level operand);
  ExprPtr sum() { return binary({"+", "-"}, &ExpressionParser::concat); }
  ExprPtr concat();
  ExprPtr product() { return binary({"*", "/", "//", "%"}, &ExpressionParser::power); }
  ExprPtr power() { return binary({"**"}, &ExpressionParser::filtered_unary); }
  ExprPtr filtered_unary() { return unary(true); }
  ExprPtr unary(bool with_filter);
  ExprPtr primary();
  ExprPtr name();
  ExprPtr list(int line);
  ExprPtr dict(int line);
  ExprPtr postfix(ExprPtr expr);
  ExprPtr subscript(ExprPtr expr, int line);
  ExprPtr call(ExprPtr callee);
  void arguments(Expr& expr);
  std::string dotted_name();
  // expr|a|b(...); where the body of a block is filtered, expr is null and, inline, no bar comes
  // first.
  ExprPtr filters(ExprPtr expr, bool start_inline);
  ExprPtr filters_and_tests(ExprPtr expr);
  ExprPtr test(ExprPtr expr);

  MacroSource* macro_ = nullptr;  // that is being read: it notes what its body asks for
};

}  // namespace tsq::chat
