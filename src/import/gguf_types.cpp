#include "import/gguf_types.h"

#include <algorithm>
#include <iterator>

#include "base/errorf.h"

namespace tsq::importer {
namespace {

struct ForeignType {
  std::uint32_t id;
  const char* name;
  BlockShape shape;  // {0, 0}: the id alone does not say
};

constexpr ForeignType kForeign[] = {
    {9, "Q8_1", {32, 36}},
    {10, "Q2_K", {256, 84}},
    {11, "Q3_K", {256, 110}},
    {15, "Q8_K", {256, 292}},
    {16, "IQ2_XXS", {256, 66}},
    {17, "IQ2_XS", {256, 74}},
    {18, "IQ3_XXS", {256, 98}},
    {19, "IQ1_S", {256, 50}},
    {20, "IQ4_NL", {32, 18}},
    {21, "IQ3_S", {256, 110}},
    {22, "IQ2_S", {256, 82}},
    {23, "IQ4_XS", {256, 136}},
    {24, "I8", {1, 1}},
    {25, "I16", {1, 2}},
    {26, "I32", {1, 4}},
    {27, "I64", {1, 8}},
    {28, "F64", {1, 8}},
    {29, "IQ1_M", {256, 56}},
    {38, "TL1 (BitNet)", {0, 0}},
    {39, "MXFP4 or TL2 (BitNet)", {0, 0}},
    {40, "NVFP4 or a type of another fork", {0, 0}},
};

const ForeignType* find_foreign(std::uint32_t id) {
  const auto* found = std::find_if(std::begin(kForeign), std::end(kForeign),
                                   [id](const ForeignType& type) { return type.id == id; });
  return found == std::end(kForeign) ? nullptr : found;
}

}  // namespace

std::optional<SourceType> source_type(std::uint32_t id) {
  switch (id) {
    case 0:
      return SourceType::f32;
    case 1:
      return SourceType::f16;
    case 2:
      return SourceType::q4_0;
    case 3:
      return SourceType::q4_1;
    case 6:
      return SourceType::q5_0;
    case 7:
      return SourceType::q5_1;
    case 8:
      return SourceType::q8_0;
    case 12:
      return SourceType::q4_k;
    case 13:
      return SourceType::q5_k;
    case 14:
      return SourceType::q6_k;
    case 30:
      return SourceType::bf16;
    case 34:
      return SourceType::tq1_0;
    case 35:
      return SourceType::tq2_0;
    case 41:
      return SourceType::q1_0;
    case 134:
      return SourceType::iq1_bn;
    case 135:
      return SourceType::iq2_bn;
    case 142:
      return SourceType::pq2_0;
    case 143:
      return SourceType::ptq1_0;
    default:
      return std::nullopt;
  }
}

std::string describe_type(std::uint32_t id) {
  const ForeignType* type = find_foreign(id);
  return stringf("type %s, id %u", type ? type->name : "without a public name", id);
}

std::optional<BlockShape> foreign_block_shape(std::uint32_t id) {
  const ForeignType* type = find_foreign(id);
  if (!type || type->shape.weights == 0) return std::nullopt;
  return type->shape;
}

}  // namespace tsq::importer
