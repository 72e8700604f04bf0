#include "tokenizer/sentencepiece.h"

#include <bit>

#include "base/utf8.h"
#include "tokenizer/bpe.h"

namespace tsq {
namespace {

using format::TokenType;

// Ascending where scores descend; the two zeros are one score.
std::uint32_t order_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);
  return (bits >> 31) != 0 ? bits : ~bits ^ 0x80000000;
}

}  // namespace

SentencePiece::SentencePiece(const format::TokenizerView& view)
    : view_(view), byte_tokens_(byte_tokens(view)) {}

// The token that text can be merged to.
std::optional<std::uint32_t> SentencePiece::piece(std::string_view text) const {
  const auto id = view_.find(text);
  if (!id) return std::nullopt;
  const TokenType type = view_.type(*id);
  const bool is_piece =
      type == TokenType::normal || type == TokenType::undefined || type == TokenType::unused;
  return is_piece ? id : std::nullopt;
}

void SentencePiece::encode(std::string_view text, Scratch& scratch,
                           std::vector<Token>& tokens) const {
  MergeList& list = scratch.list;
  auto& starts = scratch.starts;
  list.clear();
  starts.clear();
  scratch.unused.clear();
  for (std::size_t i = 0; i < text.size(); i += utf8_sequence_length(text.substr(i))) {
    starts.push_back(static_cast<std::uint32_t>(i));
    list.push_back(format::kNoToken);
  }
  if (list.empty()) return;
  starts.push_back(static_cast<std::uint32_t>(text.size()));
  const auto end_of = [&](std::uint32_t symbol) {
    const std::uint32_t next = list.next(symbol);
    return next == MergeList::kEnd ? starts.back() : starts[next];
  };
  list.merge([&](std::uint32_t left, std::uint32_t right) -> std::optional<MergeList::Pair> {
    const auto id = piece(text.substr(starts[left], end_of(right) - starts[left]));
    if (!id) return std::nullopt;
    if (view_.type(*id) == TokenType::unused) {
      scratch.unused.insert_or_assign(*id, starts[right] - starts[left]);
    }
    return MergeList::Pair{order_of(view_.score(*id)), *id};
  });
  for (std::uint32_t i = 0; i != MergeList::kEnd; i = list.next(i)) {
    append(text.substr(starts[i], end_of(i) - starts[i]), scratch, tokens);
  }
}

// A symbol that is an unused token falls back into those it could be made of.
void SentencePiece::append(std::string_view symbol, Scratch& scratch,
                           std::vector<Token>& tokens) const {
  auto& parts = scratch.parts;
  parts.assign(1, symbol);
  while (!parts.empty()) {
    const std::string_view part = parts.back();
    parts.pop_back();
    const auto id = piece(part);
    if (!id) {
      for (const char byte : part) encode_byte(static_cast<unsigned char>(byte), tokens);
      continue;
    }
    const auto split = scratch.unused.find(*id);
    if (split == scratch.unused.end()) {
      tokens.push_back(static_cast<Token>(*id));
      continue;
    }
    parts.push_back(part.substr(split->second));
    parts.push_back(part.substr(0, split->second));
  }
}

void SentencePiece::encode_byte(unsigned char byte, std::vector<Token>& tokens) const {
  const std::uint32_t token = byte_tokens_[byte];
  if (token != format::kNoToken) tokens.push_back(static_cast<Token>(token));
}

std::string replace_space_marks(std::string_view text) {
  constexpr std::string_view kMark = "\u2581";
  std::string replaced;
  replaced.reserve(text.size());
  for (std::size_t start = 0;;) {
    const std::size_t mark = text.find(kMark, start);
    replaced += text.substr(start, mark - start);
    if (mark == std::string_view::npos) return replaced;
    replaced += ' ';
    start = mark + kMark.size();
  }
}

}  // namespace tsq
