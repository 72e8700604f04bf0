#include "import/merge_scores.h"

#include <unordered_map>

#include "base/errorf.h"

namespace tsq::importer {
namespace {

constexpr std::size_t kMaxPieceBytes = 256;  // counting its splits takes the square

using IdsByText = std::unordered_map<std::string_view, std::uint32_t>;

std::size_t count_splits(std::string_view token, const IdsByText& pieces) {
  std::size_t n = 0;
  for (std::size_t i = 1; i < token.size(); ++i) {
    if (pieces.contains(token.substr(0, i)) && pieces.contains(token.substr(i))) ++n;
  }
  return n;
}

}  // namespace

std::string scores_from_merges(std::span<const std::string_view> tokens,
                               const std::vector<bool>& is_piece, std::span<const TextPair> merges,
                               std::vector<float>& scores) {
  IdsByText pieces;
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    if (is_piece[i] && tokens[i].size() > kMaxPieceBytes) {
      return stringf("token %u has %zu bytes, at most %zu are supported", i, tokens[i].size(),
                     kMaxPieceBytes);
    }
    if (is_piece[i]) pieces.emplace(tokens[i], i);
  }
  scores.assign(tokens.size(), 0);
  std::vector<std::size_t> pairs(tokens.size());
  std::uint32_t group = 0;
  std::string merged;
  const std::string_view* last = nullptr;  // the token of the merge before
  for (const auto& [left, right] : merges) {
    merged = left;
    merged += right;
    const auto found = pieces.find(merged);
    if (found == pieces.end() || !pieces.contains(left) || !pieces.contains(right)) continue;
    const std::uint32_t id = found->second;
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
  for (const auto& [text, id] : pieces) {
    if (pairs[id] == count_splits(text, pieces)) continue;
    return stringf("%zu merges make '%s', SentencePiece would have %zu", pairs[id],
                   printable(text).c_str(), count_splits(text, pieces));
  }
  return {};
}

}  // namespace tsq::importer
