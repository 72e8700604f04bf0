// What an importer promises of a checkpoint: every byte can be read, every index exists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "import/blocks.h"
#include "import/checkpoint.h"

namespace tsq::fuzz {

// Decodes the first and the last row.
inline void decode_some(const importer::Tensor& tensor) {
  const std::uint64_t bytes = importer::row_bytes(tensor.type, tensor.cols());
  if (tensor.data.size() != bytes * tensor.rows()) std::abort();
  std::vector<float> values(tensor.cols());
  for (const std::uint64_t row : {std::uint64_t{0}, tensor.rows() - 1}) {
    importer::decode_row(tensor, row, values.data());
    importer::row_is_finite(tensor, row);
  }
}

inline void check_rotation(const importer::Checkpoint& checkpoint, const importer::Tensor& tensor) {
  if (tensor.rotation == format::kNoRotation) return;
  if (tensor.rotation >= checkpoint.rotations.size()) std::abort();
  const format::Rotation& rotation = checkpoint.rotations[tensor.rotation];
  if (rotation.width != tensor.cols() || rotation.width % rotation.block != 0) std::abort();
  if (!rotation.signs.empty() && rotation.signs.size() != (rotation.width + 31) / 32) std::abort();
}

// The section builder relies on what the importer promises.
inline void check_vocabulary(const format::Vocabulary& vocabulary) {
  if (vocabulary.types.size() != vocabulary.tokens.size()) std::abort();
  const auto exists = [&](std::uint32_t id) { return id < vocabulary.tokens.size(); };
  for (const auto& merge : vocabulary.merges) {
    if (!exists(merge.left) || !exists(merge.right) || !exists(merge.result)) std::abort();
  }
  if (!std::all_of(vocabulary.end_tokens.begin(), vocabulary.end_tokens.end(), exists)) {
    std::abort();
  }
  const auto section = format::build_tokenizer_section(vocabulary);
  if (!section) return;
  const auto size = static_cast<std::uint32_t>(vocabulary.tokens.size());
  if (!format::TokenizerView::parse(*section, size)) std::abort();
}

inline void check_checkpoint(const importer::Checkpoint& checkpoint) {
  for (const importer::Tensor& tensor : checkpoint.tensors) {
    decode_some(tensor);
    check_rotation(checkpoint, tensor);
  }
  if (checkpoint.vocabulary) check_vocabulary(*checkpoint.vocabulary);
}

}  // namespace tsq::fuzz
