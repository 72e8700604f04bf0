// SentencePiece's scores from the merges that a tokenizer.json has in their place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/hf_merges.h"

namespace tsq::importer {

// SentencePiece merges any two neighbours whose text is a token, the one of the highest score
// first; a tokenizer.json lists the pairs by rank. The two do the same where the pairs of a token
// follow each other and none is left out. Then scores gains one a token, falling with the rank, and
// the answer is empty; else it says why not. is_piece: of each token, whether merging can make it.
std::string scores_from_merges(std::span<const std::string_view> tokens,
                               const std::vector<bool>& is_piece, const HfMerges& merges,
                               std::vector<float>& scores);

}  // namespace tsq::importer
