#include "chat/expressions.h"

#include <algorithm>

namespace tsq::chat {
namespace {

constexpr int kMaxDepth = 200;  // levels of an expression

}  // namespace

std::unique_ptr<Expr> ExpressionParser::make(ExprKind kind, int line,
                                             std::vector<ExprPtr> kids) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  expr->kids = std::move(kids);
  for (const auto& kid : expr->kids) deepen(*expr, kid);
  return expr;
}

void ExpressionParser::deepen(Expr& expr, const ExprPtr& kid) const {
  if (!kid) return;
  expr.depth = std::max(expr.depth, kid->depth + 1);
  if (expr.depth > kMaxDepth) {
    fail_here(stringf("an expression of more than %d levels, expected fewer", kMaxDepth),
              ErrorCode::unsupported);
  }
}

ExprPtr ExpressionParser::constant(int line, Value value) const {
  auto expr = make(ExprKind::constant, line);
  expr->constant = std::move(value);
  return expr;
}

ExprPtr ExpressionParser::tuple(std::string_view end, bool with_conditional) {
  const int line = now().line;
  const auto at_end = [&] {
    return now().kind == TokenKind::output_end || now().kind == TokenKind::block_end ||
           now().is_symbol(")") || (!end.empty() && now().is_name(end));
  };
  if (at_end()) unexpected("an expression");
  ExprPtr first = expression(with_conditional);
  if (!now().is_symbol(",")) return first;
  std::vector<ExprPtr> items;
  items.push_back(std::move(first));
  while (skip_symbol(",") && !at_end()) items.push_back(expression(with_conditional));
  return make(ExprKind::tuple, line, std::move(items));
}

ExprPtr ExpressionParser::expression(bool with_conditional) {
  const Nest nest(*this);
  ExprPtr expr = logical_or();
  while (with_conditional && now().is_name("if")) {
    const int line = next().line;
    ExprPtr test = logical_or();
    ExprPtr other;
    if (skip_name("else")) other = expression();
    expr = node(ExprKind::conditional, line, std::move(test), std::move(expr), std::move(other));
  }
  return expr;
}

ExprPtr ExpressionParser::logical_or() {
  ExprPtr left = logical_and();
  while (now().is_name("or")) {
    const int line = next().line;
    left = node(ExprKind::logical_or, line, std::move(left), logical_and());
  }
  return left;
}

ExprPtr ExpressionParser::logical_and() {
  ExprPtr left = logical_not();
  while (now().is_name("and")) {
    const int line = next().line;
    left = node(ExprKind::logical_and, line, std::move(left), logical_not());
  }
  return left;
}

ExprPtr ExpressionParser::logical_not() {
  if (!now().is_name("not")) return comparison();
  const Nest nest(*this);
  const int line = next().line;
  return node(ExprKind::logical_not, line, logical_not());
}

std::string ExpressionParser::comparison_operator() {
  for (const std::string_view symbol : {"==", "!=", "<", "<=", ">", ">="}) {
    if (skip_symbol(symbol)) return std::string(symbol);
  }
  if (skip_name("in")) return "in";
  if (now().is_name("not") && look().is_name("in")) {
    next();
    next();
    return "not in";
  }
  return "";
}

ExprPtr ExpressionParser::comparison() {
  const int line = now().line;
  std::vector<ExprPtr> kids;
  kids.push_back(sum());
  std::vector<std::string> operators;
  for (std::string op; !(op = comparison_operator()).empty();) {
    operators.push_back(std::move(op));
    kids.push_back(sum());
  }
  if (operators.empty()) return std::move(kids[0]);
  auto expr = make(ExprKind::compare, line, std::move(kids));
  expr->operators = std::move(operators);
  return expr;
}

ExprPtr ExpressionParser::binary(std::initializer_list<std::string_view> operators, Level operand) {
  ExprPtr left = (this->*operand)();
  while (now().kind == TokenKind::symbol &&
         std::find(operators.begin(), operators.end(), now().text) != operators.end()) {
    const Token& op = next();
    auto expr = node(ExprKind::arithmetic, op.line, std::move(left), (this->*operand)());
    expr->text = op.text;
    left = std::move(expr);
  }
  return left;
}

ExprPtr ExpressionParser::concat() {
  const int line = now().line;
  std::vector<ExprPtr> parts;
  parts.push_back(product());
  while (skip_symbol("~")) parts.push_back(product());
  return parts.size() == 1 ? std::move(parts[0]) : make(ExprKind::concat, line, std::move(parts));
}

ExprPtr ExpressionParser::unary(bool with_filter) {
  const Nest nest(*this);
  const int line = now().line;
  ExprPtr expr;
  if (skip_symbol("-")) {
    expr = node(ExprKind::negate, line, unary(false));
  } else if (skip_symbol("+")) {
    expr = node(ExprKind::plus, line, unary(false));
  } else {
    expr = primary();
  }
  expr = postfix(std::move(expr));
  return with_filter ? filters_and_tests(std::move(expr)) : std::move(expr);
}

ExprPtr ExpressionParser::primary() {
  const int line = now().line;
  switch (now().kind) {
    case TokenKind::name:
      return name();
    case TokenKind::string: {
      std::string text;
      while (now().kind == TokenKind::string) text += next().text;
      return constant(line, std::move(text));
    }
    case TokenKind::integer:
      return constant(line, next().integer);
    case TokenKind::real:
      return constant(line, next().real);
    case TokenKind::symbol:
      break;
    default:
      unexpected("an expression");
  }
  if (skip_symbol("(")) {
    ExprPtr expr = now().is_symbol(")") ? make(ExprKind::tuple, line) : tuple();
    expect_symbol(")");
    return expr;
  }
  if (skip_symbol("[")) return list(line);
  if (skip_symbol("{")) return dict(line);
  unexpected("an expression");
}

ExprPtr ExpressionParser::name() {
  const Token& token = next();
  const std::string& text = token.text;
  if (text == "true" || text == "True") return constant(token.line, true);
  if (text == "false" || text == "False") return constant(token.line, false);
  if (text == "none" || text == "None") return constant(token.line, nullptr);
  if (macro_ != nullptr) {
    macro_->uses_varargs |= text == "varargs";
    macro_->uses_kwargs |= text == "kwargs";
    macro_->uses_caller |= text == "caller";
  }
  auto expr = make(ExprKind::name, token.line);
  expr->text = text;
  return expr;
}

ExprPtr ExpressionParser::list(int line) {
  std::vector<ExprPtr> items;
  while (!now().is_symbol("]")) {
    if (!items.empty()) expect_symbol(",");
    if (now().is_symbol("]")) break;
    items.push_back(expression());
  }
  next();
  return make(ExprKind::list, line, std::move(items));
}

ExprPtr ExpressionParser::dict(int line) {
  std::vector<ExprPtr> items;
  while (!now().is_symbol("}")) {
    if (!items.empty()) expect_symbol(",");
    if (now().is_symbol("}")) break;
    items.push_back(expression());
    expect_symbol(":");
    items.push_back(expression());
  }
  next();
  return make(ExprKind::dict, line, std::move(items));
}

ExprPtr ExpressionParser::postfix(ExprPtr expr) {
  while (true) {
    const int line = now().line;
    if (skip_symbol(".")) {
      if (now().kind == TokenKind::integer) {
        expr = node(ExprKind::subscript, line, std::move(expr), constant(line, next().integer));
        continue;
      }
      auto attribute = node(ExprKind::attribute, line, std::move(expr));
      attribute->text = expect_any_name();
      expr = std::move(attribute);
    } else if (skip_symbol("[")) {
      expr = subscript(std::move(expr), line);
    } else if (now().is_symbol("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr expr, int line) {
  ExprPtr parts[3];
  int n = 0;  // colons
  while (!now().is_symbol("]")) {
    if (skip_symbol(":")) {
      if (++n > 2) unexpected("']'");
    } else if (parts[n]) {
      unexpected("']'");
    } else {
      parts[n] = expression();
    }
  }
  next();
  if (n > 0) {
    return node(ExprKind::slice, line, std::move(expr), std::move(parts[0]), std::move(parts[1]),
                std::move(parts[2]));
  }
  if (!parts[0]) unexpected("an index");
  return node(ExprKind::subscript, line, std::move(expr), std::move(parts[0]));
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  auto expr = node(ExprKind::call, now().line, std::move(callee));
  arguments(*expr);
  return expr;
}

void ExpressionParser::arguments(Expr& expr) {
  Arguments& result = expr.arguments;
  expect_symbol("(");
  for (bool first = true; !now().is_symbol(")"); first = false) {
    if (!first) expect_symbol(",");
    if (now().is_symbol(")")) break;
    if (skip_symbol("**")) {
      if (result.star_star) unexpected("one '**'");
      deepen(expr, result.star_star = expression());
    } else if (skip_symbol("*")) {
      if (result.star || result.star_star) unexpected("one '*' before '**'");
      deepen(expr, result.star = expression());
    } else if (now().kind == TokenKind::name && look().is_symbol("=")) {
      std::string key = next().text;
      next();
      result.named.emplace_back(std::move(key), expression());
      deepen(expr, result.named.back().second);
    } else {
      if (!result.named.empty() || result.star || result.star_star) {
        unexpected("positional arguments before the others");
      }
      result.positional.push_back(expression());
      deepen(expr, result.positional.back());
    }
  }
  next();
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_any_name();
  while (skip_symbol(".")) (name += '.') += expect_any_name();
  return name;
}

ExprPtr ExpressionParser::filters(ExprPtr expr, bool start_inline) {
  while (start_inline || skip_symbol("|")) {
    start_inline = false;
    const int line = now().line;
    auto filter = node(ExprKind::filter, line, std::move(expr));
    filter->text = dotted_name();
    if (now().is_symbol("(")) arguments(*filter);
    expr = std::move(filter);
  }
  return expr;
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr expr) {
  while (true) {
    if (now().is_symbol("|")) {
      expr = filters(std::move(expr), false);
    } else if (now().is_name("is")) {
      expr = test(std::move(expr));
    } else if (now().is_symbol("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::test(ExprPtr expr) {
  const int line = next().line;
  const bool negated = skip_name("not");
  auto result = node(ExprKind::test, line, std::move(expr));
  result->text = dotted_name();
  const Token& t = now();
  const bool operand =
      t.kind == TokenKind::string || t.kind == TokenKind::integer || t.kind == TokenKind::real ||
      t.is_symbol("[") || t.is_symbol("{") ||
      (t.kind == TokenKind::name && !t.is_name("else") && !t.is_name("or") && !t.is_name("and"));
  if (t.is_symbol("(")) {
    arguments(*result);
  } else if (t.is_name("is")) {
    fail_here("tests cannot be chained with is");
  } else if (operand) {
    result->arguments.positional.push_back(postfix(primary()));
    deepen(*result, result->arguments.positional.back());
  }
  return negated ? node(ExprKind::logical_not, line, std::move(result)) : std::move(result);
}

}  // namespace tsq::chat
