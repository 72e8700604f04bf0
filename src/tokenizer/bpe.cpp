// The symbols of a piece form a linked list, at first one a byte; a heap holds the merges that two
// neighbours could make. A merge changes the list and leaves stale candidates in the heap. They are
// known by asking for a result that the pair at their position no longer has: what starts at one
// position only ever grows.
#include "tokenizer/bpe.h"

#include <algorithm>
#include <functional>

namespace tsq {

using format::kNoToken;

constexpr std::uint32_t kEnd = 0xffffffff;  // no neighbour on this side

Bpe::Bpe(const format::TokenizerView& view) : view_(view) {
  // A stray byte must not turn into a control token, such as the end of the text.
  const std::uint32_t unknown = view_.unknown();
  const bool usable = unknown != kNoToken && view_.type(unknown) != format::TokenType::control;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    byte_tokens_[byte] = view_.find({&text, 1}).value_or(usable ? unknown : kNoToken);
  }
}

bool Bpe::add_candidate(Scratch& scratch, std::uint32_t position) const {
  Scratch::Symbol& symbol = scratch.symbols[position];
  symbol.pair = kNoToken;
  if (symbol.next == kEnd) return false;
  const auto merged = view_.merge(symbol.token, scratch.symbols[symbol.next].token);
  if (!merged) return false;
  symbol.pair = merged->result;
  scratch.heap.push_back({std::uint64_t{merged->rank} << 32 | position, merged->result});
  return true;
}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<Token>& tokens) const {
  if (view_.whole_pieces()) {
    const auto whole = view_.find(piece);
    if (whole && !format::is_special(view_.type(*whole))) {
      tokens.push_back(static_cast<Token>(*whole));
      return;
    }
  }
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  symbols.clear();
  heap.clear();
  for (const char byte : piece) {
    const std::uint32_t token = byte_tokens_[static_cast<unsigned char>(byte)];
    if (token == kNoToken) continue;
    const auto i = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back({token, kNoToken, i - 1, i + 1});  // i - 1 is kEnd at 0
  }
  const auto n = static_cast<std::uint32_t>(symbols.size());
  if (n != 0) symbols.back().next = kEnd;
  for (std::uint32_t i = 0; i < n; ++i) add_candidate(scratch, i);
  std::ranges::make_heap(heap, std::greater{});

  while (!heap.empty()) {
    const Scratch::Candidate best = heap.front();
    std::ranges::pop_heap(heap, std::greater{});
    heap.pop_back();
    const auto position = static_cast<std::uint32_t>(best.order);
    Scratch::Symbol& left = symbols[position];
    if (left.pair != best.pair) continue;
    Scratch::Symbol& right = symbols[left.next];
    right.pair = kNoToken;
    left.token = best.pair;
    left.next = right.next;
    if (left.next != kEnd) symbols[left.next].previous = position;
    for (const std::uint32_t changed : {left.previous, position}) {
      if (changed == kEnd) continue;
      if (add_candidate(scratch, changed)) std::ranges::push_heap(heap, std::greater{});
    }
  }
  for (std::uint32_t i = n == 0 ? kEnd : 0; i != kEnd; i = symbols[i].next) {
    tokens.push_back(static_cast<Token>(symbols[i].token));
  }
}

}  // namespace tsq
