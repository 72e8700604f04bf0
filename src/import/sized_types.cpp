#include "import/sized_types.h"

#include <algorithm>
#include <cinttypes>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/errorf.h"
#include "import/blocks.h"

namespace tsq::importer {
namespace {

std::vector<SourceType> candidates(std::uint32_t id, const AssumedLayouts& assumed) {
  const SourceType stq1_0 =
      assumed.stq_consecutive ? SourceType::stq1_0_consecutive : SourceType::stq1_0;
  switch (id) {
    case 36:
      return {assumed.i2s_64 ? SourceType::i2_s_64 : SourceType::i2_s};
    case 42:
      return {SourceType::q2_0, SourceType::pq2_0, stq1_0};
    case 43:
      return {stq1_0};
    default:
      return {};
  }
}

// Writers pad each tensor to the alignment, some the last one too.
bool fits(SourceType type, const SizedTensor& tensor, std::uint64_t alignment) {
  if (tensor.cols % block_shape(type).weights != 0) return false;
  const std::uint64_t bytes = stored_bytes(type, tensor.weights);
  return bytes <= tensor.room && (bytes + alignment - 1) / alignment ==
                                     tensor.room / alignment + (tensor.room % alignment != 0);
}

std::string sizes_of(std::span<const SourceType> types, const SizedTensor& tensor) {
  std::string text;
  for (const SourceType type : types) {
    text += (text.empty() ? "" : ", ") + std::string(source_type_name(type));
    const BlockShape shape = block_shape(type);
    if (tensor.cols % shape.weights == 0) {
      text += stringf(" takes %" PRIu64, stored_bytes(type, tensor.weights));
    } else {
      text += stringf(" has blocks of %u", shape.weights);
    }
  }
  return text;
}

// Fewer bytes than a type takes: the file may be cut. Else they are of a type that tsq does not
// know.
Error no_type_fits(std::uint32_t id, std::span<const SourceType> types, const SizedTensor& tensor) {
  const bool cut = std::ranges::any_of(
      types, [&](SourceType type) { return stored_bytes(type, tensor.weights) > tensor.room; });
  return errorf(cut ? ErrorCode::damaged : ErrorCode::unsupported,
                "tensor '%s': %" PRIu64 " weights, %" PRIu64 " a row, in %" PRIu64
                " bytes fit no type of id %u that tsq reads: %s",
                printable(tensor.name).c_str(), tensor.weights, tensor.cols, tensor.room, id,
                sizes_of(types, tensor).c_str());
}

}  // namespace

std::uint64_t stored_bytes(SourceType type, std::uint64_t weights) {
  const bool i2_s = type == SourceType::i2_s || type == SourceType::i2_s_64;
  return row_bytes(type, weights) + (i2_s ? 32 : 0);
}

Result<SourceType> type_of_size(std::uint32_t id, std::span<const SizedTensor> tensors,
                                std::uint64_t alignment, const AssumedLayouts& assumed) {
  const auto& largest = *std::ranges::max_element(
      tensors, {}, [](const SizedTensor& tensor) { return tensor.weights; });
  const auto types = candidates(id, assumed);
  std::vector<SourceType> fitting = types;
  std::erase_if(fitting, [&](SourceType type) { return !fits(type, largest, alignment); });
  if (fitting.empty()) return no_type_fits(id, types, largest);
  for (const SizedTensor& tensor : tensors) {
    const auto before = fitting;
    std::erase_if(fitting, [&](SourceType type) { return !fits(type, tensor, alignment); });
    if (fitting.empty()) return no_type_fits(id, before, tensor);
  }
  if (fitting.size() == 1) return fitting[0];
  return errorf(ErrorCode::unsupported,
                "type id %u has several meanings, and the tensors of this file fit more than one: "
                "the largest, '%s', lies in %" PRIu64 " bytes, padding to %" PRIu64
                " included; %s; a tensor of 4096 weights would tell them apart",
                id, printable(largest.name).c_str(), largest.room, alignment,
                sizes_of(fitting, largest).c_str());
}

}  // namespace tsq::importer
