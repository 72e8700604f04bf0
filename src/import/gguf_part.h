// One GGUF file, checked: its metadata and its tensors as spans.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/checkpoint.h"

namespace tsq::importer {

// Tensors of types that tsq does not read.
struct UnreadTensors {
  std::size_t count = 0;
  std::string_view first_name;
  std::uint32_t first_type = 0;
};

struct GgufPart {
  Metadata metadata;
  std::vector<Tensor> tensors;
  UnreadTensors unread;

  // Of a split file: this part's number from 0, how many there are, tensors in all of them.
  std::uint32_t number = 0;
  std::uint32_t n_parts = 1;
  std::optional<std::uint64_t> n_tensors;
};

Result<GgufPart> parse_gguf_part(std::span<const std::byte> bytes, const AssumedLayouts& assumed);

}  // namespace tsq::importer
