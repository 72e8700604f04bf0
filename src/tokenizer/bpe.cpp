#include "tokenizer/bpe.h"

namespace tsq {

using format::kNoToken;

std::array<std::uint32_t, 256> byte_tokens(const format::TokenizerView& view) {
  // A stray byte must not turn into a control token, such as the end of the text.
  const std::uint32_t unknown = view.unknown();
  const bool usable = unknown != kNoToken && view.type(unknown) != format::TokenType::control;
  std::array<std::uint32_t, 256> tokens;
  tokens.fill(usable ? unknown : kNoToken);
  if (view.model() == format::TokenizerModel::byte_bpe) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char text = static_cast<char>(byte);
      if (const auto id = view.find({&text, 1})) tokens[byte] = *id;
    }
    return tokens;
  }
  for (std::uint32_t id = 0; id < view.size(); ++id) {
    const bool is_byte = view.type(id) == format::TokenType::byte && view.token(id).size() == 1;
    if (is_byte) tokens[static_cast<unsigned char>(view.token(id)[0])] = id;
  }
  return tokens;
}

Bpe::Bpe(const format::TokenizerView& view) : view_(view), byte_tokens_(byte_tokens(view)) {}

void Bpe::encode(std::string_view piece, MergeList& list, std::vector<Token>& tokens) const {
  if (view_.whole_pieces()) {
    const auto whole = view_.find(piece);
    if (whole && !format::is_special(view_.type(*whole))) {
      tokens.push_back(static_cast<Token>(*whole));
      return;
    }
  }
  list.clear();
  for (const char byte : piece) {
    const std::uint32_t token = byte_tokens_[static_cast<unsigned char>(byte)];
    if (token != kNoToken) list.push_back(token);
  }
  if (list.empty()) return;
  list.merge([&](std::uint32_t left, std::uint32_t right) -> std::optional<MergeList::Pair> {
    const auto merged = view_.merge(list.token(left), list.token(right));
    if (!merged) return std::nullopt;
    return MergeList::Pair{merged->rank, merged->result};
  });
  for (std::uint32_t i = 0; i != MergeList::kEnd; i = list.next(i)) {
    tokens.push_back(static_cast<Token>(list.token(i)));
  }
}

}  // namespace tsq
