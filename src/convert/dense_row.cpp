#include "convert/dense_row.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "convert/choose.h"
#include "convert/quantize.h"
#include "import/blocks.h"

namespace tsq::convert {
namespace {

bool pack_f16(std::span<const float> values, std::byte* out) {
  for (const float value : values) {
    const std::uint16_t bits = f32_to_f16(value);
    if (std::isinf(f16_to_f32(bits))) return false;
    std::memcpy(out, &bits, sizeof bits);
    out += sizeof bits;
  }
  return true;
}

// A ternary code c is the weight c - 1, which in q4 has the code c + 7.
void pack_ternary_as_q4(const importer::Tensor& tensor, std::uint64_t row, std::byte* out) {
  const auto cols = static_cast<std::size_t>(tensor.cols());
  const std::size_t group = importer::scale_group(tensor);
  std::vector<std::uint8_t> codes(cols);
  std::vector<std::uint16_t> scales(importer::scales_a_row(tensor));
  importer::decode_ternary_row(tensor, row, codes.data(), scales.data());
  for (std::size_t at = 0; at < cols; at += format::kDenseBlock, out += 18) {
    std::memcpy(out, &scales[at / group], 2);
    for (std::size_t i = 0; i < 16; ++i) {
      out[2 + i] = static_cast<std::byte>((codes[at + i] + 7) | (codes[at + i + 16] + 7) << 4);
    }
  }
}

}  // namespace

bool pack_dense_row(const importer::Tensor& tensor, std::uint64_t row,
                    const format::TensorRecord& record, std::span<std::byte> out) {
  if (own_encoding(tensor.type) == record.encoding) {
    importer::copy_row(tensor, row, out.data());
    return true;
  }
  if (importer::is_ternary(tensor.type) && record.encoding == format::Encoding::q4) {
    pack_ternary_as_q4(tensor, row, out.data());
    return true;
  }
  std::vector<float> values(static_cast<std::size_t>(tensor.cols()));
  importer::decode_row(tensor, row, values.data());
  switch (record.encoding) {
    case format::Encoding::f16:
      return pack_f16(values, out.data());
    case format::Encoding::q8:
      return quantize_q8(values, out.data());
    case format::Encoding::q4:
      return quantize_q4(values, out.data());
    default:
      std::memcpy(out.data(), values.data(), values.size() * sizeof(float));
      return true;
  }
}

}  // namespace tsq::convert
