// Dense rows, the reference: 32 inputs of a row are turned into floats, and element i of a row goes
// to lane i mod 16 of its column's sum.
#include <cmath>
#include <cstring>

#include "kernels/isa.h"
#include "kernels/scalar/math.h"

namespace tsq::kernels::scalar {
namespace {

constexpr std::size_t kBlock = 32;      // inputs of a q8 or q4 block
constexpr std::size_t kColumnTile = 8;  // columns that share one decoding of the weights

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Values of block b of a row.
void decode(DenseType type, const std::byte* row, std::size_t b, float* values) {
  switch (type) {
    case DenseType::f32:
      std::memcpy(values, row + b * kBlock * 4, kBlock * 4);
      return;
    case DenseType::f16:
      for (std::size_t i = 0; i < kBlock; ++i) {
        values[i] = f16_to_f32(load<std::uint16_t>(row + 2 * (b * kBlock + i)));
      }
      return;
    case DenseType::bf16:
      for (std::size_t i = 0; i < kBlock; ++i) {
        values[i] = std::bit_cast<float>(
            std::uint32_t{load<std::uint16_t>(row + 2 * (b * kBlock + i))} << 16);
      }
      return;
    case DenseType::q8: {
      const std::byte* block = row + b * (2 + kBlock);
      const float d = f16_to_f32(load<std::uint16_t>(block));
      for (std::size_t i = 0; i < kBlock; ++i) {
        values[i] = static_cast<float>(load<std::int8_t>(block + 2 + i)) * d;
      }
      return;
    }
    case DenseType::q4:
    case DenseType::q4m: {
      const bool has_min = type == DenseType::q4m;
      const std::size_t header = has_min ? 4 : 2;
      const std::byte* block = row + b * (header + kBlock / 2);
      const float d = f16_to_f32(load<std::uint16_t>(block));
      const float m = has_min ? f16_to_f32(load<std::uint16_t>(block + 2)) : 0.0F;
      for (std::size_t i = 0; i < kBlock; ++i) {
        const auto pair = load<std::uint8_t>(block + header + i % (kBlock / 2));
        const int code = i < kBlock / 2 ? pair & 15 : pair >> 4;
        values[i] = has_min ? static_cast<float>(code) * d + m : static_cast<float>(code - 8) * d;
      }
      return;
    }
  }
}

}  // namespace

void dense_gemm(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    const std::byte* data = w.data + row * w.row_bytes;
    for (std::size_t first = 0; first < x.n; first += kColumnTile) {
      const std::size_t columns = std::min(kColumnTile, x.n - first);
      float lanes[kColumnTile][kLanes] = {};
      for (std::size_t b = 0; b < w.cols / kBlock; ++b) {
        float values[kBlock];
        decode(w.type, data, b, values);
        for (std::size_t c = 0; c < columns; ++c) {
          const float* in = x.data + (first + c) * x.stride + b * kBlock;
          for (std::size_t i = 0; i < kBlock; ++i) {
            float& lane = lanes[c][i % kLanes];
            lane = std::fma(values[i], in[i], lane);
          }
        }
      }
      for (std::size_t c = 0; c < columns; ++c) {
        y.data[(first + c) * y.stride + row] = reduce_lanes(lanes[c]);
      }
    }
  }
}

void dense_row(const DenseMatrix& w, std::size_t row, float* values) noexcept {
  for (std::size_t b = 0; b < w.cols / kBlock; ++b) {
    decode(w.type, w.data + row * w.row_bytes, b, values + b * kBlock);
  }
}

}  // namespace tsq::kernels::scalar
