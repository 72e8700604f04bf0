// A template as tokens, with the white-space rules of trim_blocks and lstrip_blocks: a newline
// after a block tag goes, and so does the white space before it on its line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tsq::chat {

enum class TokenKind {
  data,
  output_begin,  // {{
  output_end,
  block_begin,  // {%
  block_end,
  name,
  string,
  integer,
  real,
  symbol,
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  int line = 1;
  std::string text;  // of a string: its value
  std::int64_t integer = 0;
  double real = 0;

  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
  bool is_symbol(std::string_view s) const { return kind == TokenKind::symbol && text == s; }
};

// The last token is an end. Throws Failure.
std::vector<Token> tokenize(std::string_view source);

}  // namespace tsq::chat
