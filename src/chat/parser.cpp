#include "chat/parser.h"

#include <algorithm>
#include <initializer_list>

#include "chat/budget.h"
#include "chat/lexer.h"

namespace tsq::chat {
namespace {

// Levels of an expression, and of statements and brackets within each other.
constexpr int kMaxDepth = 200, kMaxNesting = 100;

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}

  Body run() { return body({}); }

 private:
  // --- tokens ---
  const Token& now() const { return tokens_[at_]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }

  [[noreturn]] void fail_here(const std::string& what, ErrorCode code = ErrorCode::damaged) const {
    fail(stringf("line %d: %s", now().line, what.c_str()), code);
  }
  std::string found() const {
    switch (now().kind) {
      case TokenKind::end:
        return "the end of the template";
      case TokenKind::output_end:
        return "}}";
      case TokenKind::block_end:
        return "%}";
      case TokenKind::string:
        return "a string";
      case TokenKind::data:
        return "text";
      default:
        return stringf("'%s'", printable(now().text).c_str());
    }
  }
  [[noreturn]] void unexpected(const std::string& expected) const {
    fail_here(stringf("%s, expected %s", found().c_str(), expected.c_str()));
  }
  bool skip_symbol(std::string_view s) {
    if (!now().is_symbol(s)) return false;
    next();
    return true;
  }
  bool skip_name(std::string_view s) {
    if (!now().is_name(s)) return false;
    next();
    return true;
  }
  void expect_symbol(std::string_view s) {
    if (!skip_symbol(s)) unexpected(stringf("'%.*s'", static_cast<int>(s.size()), s.data()));
  }
  void expect_name(std::string_view s) {
    if (!skip_name(s)) unexpected(stringf("'%.*s'", static_cast<int>(s.size()), s.data()));
  }
  std::string expect_any_name() {
    if (now().kind != TokenKind::name) unexpected("a name");
    return next().text;
  }
  void expect(TokenKind kind, const char* what) {
    if (now().kind != kind) unexpected(what);
    next();
  }

  // --- depth ---
  struct Nest {
    explicit Nest(Parser& p) : parser(p) {
      if (++parser.nesting_ > kMaxNesting) {
        parser.fail_here(stringf("nested more than %d levels deep, expected fewer", kMaxNesting),
                         ErrorCode::unsupported);
      }
    }
    ~Nest() { --parser.nesting_; }
    Parser& parser;
  };

  std::unique_ptr<Expr> make(ExprKind kind, int line, std::vector<ExprPtr> kids = {}) const {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = line;
    expr->kids = std::move(kids);
    for (const auto& kid : expr->kids) deepen(*expr, kid);
    return expr;
  }
  void deepen(Expr& expr, const ExprPtr& kid) const {
    if (!kid) return;
    expr.depth = std::max(expr.depth, kid->depth + 1);
    if (expr.depth > kMaxDepth) {
      fail_here(stringf("an expression of more than %d levels, expected fewer", kMaxDepth),
                ErrorCode::unsupported);
    }
  }
  template <class... Kids>
  std::unique_ptr<Expr> node(ExprKind kind, int line, Kids... kids) const {
    std::vector<ExprPtr> all;
    (all.push_back(std::move(kids)), ...);
    return make(kind, line, std::move(all));
  }
  ExprPtr constant(int line, Value value) const {
    auto expr = make(ExprKind::constant, line);
    expr->constant = std::move(value);
    return expr;
  }

  // --- statements ---
  // Up to a block that begins with one of the names, whose name is then the current token; with no
  // names, up to the end.
  Body body(std::initializer_list<std::string_view> ends) {
    const Nest nest(*this);
    const int start = now().line;
    Body result;
    while (now().kind != TokenKind::end) {
      auto stmt = std::make_unique<Stmt>();
      stmt->line = now().line;
      if (now().kind == TokenKind::data) {
        stmt->kind = StmtKind::data;
        stmt->text = next().text;
      } else if (now().kind == TokenKind::output_begin) {
        next();
        stmt->kind = StmtKind::output;
        stmt->expr = tuple();
        expect(TokenKind::output_end, "}}");
      } else {
        next();  // {%
        if (now().kind == TokenKind::name &&
            std::find(ends.begin(), ends.end(), now().text) != ends.end()) {
          return result;
        }
        statement(*stmt);
        expect(TokenKind::block_end, "%}");
      }
      result.push_back(std::move(stmt));
    }
    if (ends.size() != 0) {
      unexpected(stringf("{%% %s %%} for the block of line %d",
                         std::string(*(ends.end() - 1)).c_str(), start));
    }
    return result;
  }
  Body block(std::initializer_list<std::string_view> ends) {
    skip_symbol(":");
    expect(TokenKind::block_end, "%}");
    return body(ends);
  }
  Body block_to(std::string_view end) {
    Body result = block({end});
    next();
    return result;
  }

  void statement(Stmt& s) {
    if (now().kind != TokenKind::name) unexpected("the name of a tag");
    const std::string tag = next().text;
    if (tag == "if") return branch(s);
    if (tag == "for") return loop(s);
    if (tag == "set") return set(s);
    if (tag == "macro") return macro(s);
    if (tag == "call") return call_block(s);
    if (tag == "filter") {
      s.kind = StmtKind::filter_body;
      s.expr = filters(nullptr, true);
      s.body = block_to("endfilter");
    } else if (tag == "with") {
      with(s);
    } else if (tag == "generation") {
      s.kind = StmtKind::scope;
      const int loops = std::exchange(loops_, 0);
      s.body = block_to("endgeneration");
      loops_ = loops;
    } else if (tag == "break" || tag == "continue") {
      s.kind = tag == "break" ? StmtKind::break_loop : StmtKind::continue_loop;
      if (loops_ == 0) fail_here(stringf("'%s' outside a loop", tag.c_str()));
    } else {
      --at_;
      const bool known = tag == "block" || tag == "extends" || tag == "include" ||
                         tag == "import" || tag == "from" || tag == "autoescape";
      fail_here(stringf("tag '%s', expected one of if, for, set, macro, call, filter, with, "
                        "generation, break, continue",
                        printable(tag).c_str()),
                known ? ErrorCode::unsupported : ErrorCode::damaged);
    }
  }

  void branch(Stmt& s) {
    const Nest nest(*this);  // an elif is a branch within
    s.kind = StmtKind::branch;
    s.expr = tuple({}, false);
    s.body = block({"elif", "else", "endif"});
    const int line = now().line;
    const std::string end = next().text;
    if (end == "elif") {
      auto elif = std::make_unique<Stmt>();
      elif->line = line;
      branch(*elif);
      s.other.push_back(std::move(elif));
    } else if (end == "else") {
      s.other = block_to("endif");
    }
  }

  void loop(Stmt& s) {
    s.kind = StmtKind::loop;
    s.target = target("in", false);
    expect_name("in");
    s.expr = tuple("recursive", false);
    if (skip_name("if")) s.test = expression();
    if (now().is_name("recursive")) {
      fail_here("a recursive loop, expected a plain one", ErrorCode::unsupported);
    }
    ++loops_;
    s.body = block({"endfor", "else"});
    --loops_;
    if (next().text == "else") s.other = block_to("endfor");
  }

  void set(Stmt& s) {
    s.target = target("", true);
    if (skip_symbol("=")) {
      s.kind = StmtKind::assign;
      s.expr = tuple();
      return;
    }
    s.kind = StmtKind::block_set;
    s.expr = filters(nullptr, false);
    s.body = block_to("endset");
  }

  void with(Stmt& s) {
    s.kind = StmtKind::with;
    while (now().kind != TokenKind::block_end) {
      if (!s.bindings.empty()) expect_symbol(",");
      Target name = target("", false);
      expect_symbol("=");
      s.bindings.emplace_back(std::move(name), expression());
    }
    s.body = block_to("endwith");
  }

  void parameters(MacroSource& macro) {
    expect_symbol("(");
    while (!now().is_symbol(")")) {
      if (!macro.parameters.empty()) expect_symbol(",");
      macro.parameters.push_back(expect_any_name());
      if (skip_symbol("=")) {
        macro.defaults.push_back(expression());
      } else if (!macro.defaults.empty()) {
        fail_here("a parameter without a default behind one with a default");
      }
    }
    next();
  }

  // The body, and which of the special names it reads.
  void macro_body(MacroSource& macro, std::string_view end) {
    MacroSource* const outer = std::exchange(macro_, &macro);
    const int loops = std::exchange(loops_, 0);
    macro.body = block_to(end);
    loops_ = loops;
    macro_ = outer;
  }

  void macro(Stmt& s) {
    s.kind = StmtKind::macro;
    auto macro = std::make_unique<MacroSource>();
    macro->name = expect_any_name();
    parameters(*macro);
    macro_body(*macro, "endmacro");
    s.macro = std::move(macro);
  }

  void call_block(Stmt& s) {
    s.kind = StmtKind::call;
    auto caller = std::make_unique<MacroSource>();
    caller->name = "caller";
    if (now().is_symbol("(")) parameters(*caller);
    s.expr = expression();
    if (s.expr->kind != ExprKind::call) fail_here("a call block without a call");
    macro_body(*caller, "endcall");
    s.macro = std::move(caller);
  }

  Target one_target(bool with_attribute) {
    Target t;
    if (skip_symbol("(")) {
      t = target("", false);
      expect_symbol(")");
      return t;
    }
    t.name = expect_any_name();
    if (t.name == "true" || t.name == "false" || t.name == "none" || t.name == "loop") {
      fail_here(stringf("'%s' cannot be assigned", t.name.c_str()));
    }
    if (with_attribute && skip_symbol(".")) t.attribute = expect_any_name();
    return t;
  }

  Target target(std::string_view end, bool with_attribute) {
    const Nest nest(*this);
    Target first = one_target(with_attribute);
    if (!now().is_symbol(",")) return first;
    Target all;
    all.parts.push_back(std::move(first));
    while (skip_symbol(",")) {
      if (now().is_symbol("=") || now().is_symbol(")") || (!end.empty() && now().is_name(end)))
        break;
      all.parts.push_back(one_target(with_attribute));
    }
    return all;
  }

  // --- expressions, loosest first ---
  // One expression, or several with commas between: a tuple.
  ExprPtr tuple(std::string_view end = "", bool with_conditional = true) {
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

  ExprPtr expression(bool with_conditional = true) {
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

  ExprPtr logical_or() {
    ExprPtr left = logical_and();
    while (now().is_name("or")) {
      const int line = next().line;
      left = node(ExprKind::logical_or, line, std::move(left), logical_and());
    }
    return left;
  }

  ExprPtr logical_and() {
    ExprPtr left = logical_not();
    while (now().is_name("and")) {
      const int line = next().line;
      left = node(ExprKind::logical_and, line, std::move(left), logical_not());
    }
    return left;
  }

  ExprPtr logical_not() {
    if (!now().is_name("not")) return comparison();
    const Nest nest(*this);
    const int line = next().line;
    return node(ExprKind::logical_not, line, logical_not());
  }

  // The comparison that the current token begins, or nothing.
  std::string comparison_operator() {
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

  ExprPtr comparison() {
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

  using Level = ExprPtr (Parser::*)();
  ExprPtr binary(std::initializer_list<std::string_view> operators, Level operand) {
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

  ExprPtr sum() { return binary({"+", "-"}, &Parser::concat); }

  ExprPtr concat() {
    const int line = now().line;
    std::vector<ExprPtr> parts;
    parts.push_back(product());
    while (skip_symbol("~")) parts.push_back(product());
    return parts.size() == 1 ? std::move(parts[0]) : make(ExprKind::concat, line, std::move(parts));
  }

  ExprPtr product() { return binary({"*", "/", "//", "%"}, &Parser::power); }
  ExprPtr power() { return binary({"**"}, &Parser::filtered_unary); }
  ExprPtr filtered_unary() { return unary(true); }

  ExprPtr unary(bool with_filter) {
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

  ExprPtr primary() {
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

  ExprPtr name() {
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

  ExprPtr list(int line) {
    std::vector<ExprPtr> items;
    while (!now().is_symbol("]")) {
      if (!items.empty()) expect_symbol(",");
      if (now().is_symbol("]")) break;
      items.push_back(expression());
    }
    next();
    return make(ExprKind::list, line, std::move(items));
  }

  ExprPtr dict(int line) {
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

  ExprPtr postfix(ExprPtr expr) {
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

  ExprPtr subscript(ExprPtr expr, int line) {
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

  ExprPtr call(ExprPtr callee) {
    auto expr = node(ExprKind::call, now().line, std::move(callee));
    arguments(*expr);
    return expr;
  }

  void arguments(Expr& expr) {
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

  std::string dotted_name() {
    std::string name = expect_any_name();
    while (skip_symbol(".")) (name += '.') += expect_any_name();
    return name;
  }

  // expr|a|b(...); where the body of a block is filtered, expr is null and, inline, no bar comes
  // first.
  ExprPtr filters(ExprPtr expr, bool start_inline) {
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

  ExprPtr filters_and_tests(ExprPtr expr) {
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

  ExprPtr test(ExprPtr expr) {
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

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // around this place, within the macro
  MacroSource* macro_ = nullptr;
};

}  // namespace

Body parse_template(std::string_view source) { return Parser(source).run(); }

}  // namespace tsq::chat
