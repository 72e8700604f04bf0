// The place in a template's tokens, as both parsers need it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "chat/budget.h"
#include "chat/lexer.h"

namespace tsq::chat {

class Cursor {
 public:
  explicit Cursor(std::string_view source) : tokens_(tokenize(source)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void back() { --at_; }

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

  // Statements, brackets and expressions within each other, as long as it lives.
  struct Nest {
    explicit Nest(Cursor& c) : cursor(c) {
      if (++cursor.nesting_ > kMaxNesting) {
        cursor.fail_here(stringf("nested more than %d levels deep, expected fewer", kMaxNesting),
                         ErrorCode::unsupported);
      }
    }
    ~Nest() { --cursor.nesting_; }
    Cursor& cursor;
  };

 private:
  static constexpr int kMaxNesting = 100;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace tsq::chat
