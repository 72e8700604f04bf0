// The encoding of a tensor.
#pragma once

#include <cstdint>
#include <optional>

#include "convert/convert.h"
#include "format/encodings.h"
#include "import/checkpoint.h"

namespace tsq::convert {

struct Choice {
  format::Encoding encoding;
  Fate fate;
  std::uint32_t flags = 0;  // of the record
  format::ScaleKind scale_kind = format::ScaleKind::none;
  bool beyond_f16 = false;  // ternary values, but fp16 does not hold their scales
};

// Reads the tensor where its type alone does not decide.
Choice choose(const importer::Tensor& tensor, TernaryEncoding ternary, DenseEncoding dense);

// The dense encoding whose blocks are those of this type.
std::optional<format::Encoding> own_encoding(importer::SourceType type);

}  // namespace tsq::convert
