#include "chat/parser.h"

#include <algorithm>
#include <initializer_list>

#include "chat/expressions.h"

namespace tsq::chat {
namespace {

class Parser : ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body run() { return body({}); }

 private:
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
      back();
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

  int loops_ = 0;  // around this place, within the macro
};

}  // namespace

Body parse_template(std::string_view source) { return Parser(source).run(); }

}  // namespace tsq::chat
