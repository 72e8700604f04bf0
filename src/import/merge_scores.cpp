#include "import/merge_scores.h"

#include <cstddef>

#include "base/errorf.h"
#include "base/hash.h"
#include "import/index_table.h"

namespace tsq::importer {
namespace {

constexpr std::size_t kMaxPieceBytes = 256;  // counting its splits takes the square

// The first token of each text.
class Pieces {
 public:
  explicit Pieces(std::span<const std::string_view> tokens)
      : tokens_(tokens), table_(tokens.size()) {}
  void add(std::uint32_t id) {
    std::uint32_t& slot = find(tokens_[id]);
    if (slot == IndexTable::kNone) slot = id;
  }
  // IndexTable::kNone: there is none.
  std::uint32_t& find(std::string_view text) {
    return table_.find(xxh3(std::as_bytes(std::span(text))),
                       [&](std::uint32_t id) { return tokens_[id] == text; });
  }
  bool contains(std::string_view text) { return find(text) != IndexTable::kNone; }

 private:
  std::span<const std::string_view> tokens_;
  IndexTable table_;
};

std::size_t count_splits(std::string_view token, Pieces& pieces) {
  std::size_t n = 0;
  for (std::size_t i = 1; i < token.size(); ++i) {
    if (pieces.contains(token.substr(0, i)) && pieces.contains(token.substr(i))) ++n;
  }
  return n;
}

}  // namespace

std::string scores_from_merges(std::span<const std::string_view> tokens,
                               const std::vector<bool>& is_piece, const HfMerges& merges,
                               std::vector<float>& scores) {
  Pieces pieces(tokens);
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    if (is_piece[i] && tokens[i].size() > kMaxPieceBytes) {
      return stringf("token %u has %zu bytes, at most %zu are supported", i, tokens[i].size(),
                     kMaxPieceBytes);
    }
    if (is_piece[i]) pieces.add(i);
  }
  scores.assign(tokens.size(), 0);
  std::vector<std::uint32_t> pairs(tokens.size());
  std::uint32_t group = 0;
  std::string merged;
  const std::string_view* last = nullptr;  // the token of the merge before
  for (const auto& [left, right] : merges) {
    merged = left;
    merged += right;
    const std::uint32_t id = pieces.find(merged);
    if (id == IndexTable::kNone || !pieces.contains(left) || !pieces.contains(right)) continue;
    if (last != &tokens[id]) {
      if (pairs[id] != 0) {
        return stringf("the merges that make '%s' do not follow each other, as SentencePiece's do",
                       printable(merged).c_str());
      }
      scores[id] = -static_cast<float>(++group);
      last = &tokens[id];
    }
    ++pairs[id];
  }
  for (std::uint32_t id = 0; id < tokens.size(); ++id) {
    if (!is_piece[id] || pieces.find(tokens[id]) != id) continue;
    const std::size_t splits = count_splits(tokens[id], pieces);
    if (pairs[id] == splits) continue;
    return stringf("%u merges make '%s', SentencePiece would have %zu", pairs[id],
                   printable(tokens[id]).c_str(), splits);
  }
  return {};
}

}  // namespace tsq::importer
