// The Walsh-Hadamard transform and the rotations made of it, the reference.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/isa.h"

namespace tsq::kernels::scalar {
namespace {

bool negative(const std::uint32_t* signs, std::size_t i) {
  return signs != nullptr && (signs[i / 32] >> (i % 32) & 1) != 0;
}

float norm(std::size_t block) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(block)));
}

}  // namespace

void fwht(float* x, std::size_t count, std::size_t n) noexcept {
  for (std::size_t h = 1; h < n; h *= 2) {
    for (std::size_t start = 0; start < count; start += 2 * h) {
      for (std::size_t i = start; i < start + h; ++i) {
        const float a = x[i];
        const float b = x[i + h];
        x[i] = a + b;
        x[i + h] = a - b;
      }
    }
  }
}

void rotate(const float* x, const std::uint32_t* signs, std::size_t count, std::size_t block,
            float* y) noexcept {
  for (std::size_t i = 0; i < count; ++i) y[i] = negative(signs, i) ? -x[i] : x[i];
  fwht(y, count, block);
  const float scale = norm(block);
  for (std::size_t i = 0; i < count; ++i) y[i] *= scale;
}

void unrotate(const float* x, const std::uint32_t* signs, std::size_t count, std::size_t block,
              float* y) noexcept {
  for (std::size_t i = 0; i < count; ++i) y[i] = x[i];
  fwht(y, count, block);
  const float scale = norm(block);
  for (std::size_t i = 0; i < count; ++i)
    y[i] = negative(signs, i) ? -(y[i] * scale) : y[i] * scale;
}

void fwht_matrix(const RowMajorF32& x, std::size_t row_block, std::size_t col_block,
                 Maxima max) noexcept {
  const auto at = [&](std::size_t r, std::size_t c) -> float& { return x.data[r * x.stride + c]; };
  for (std::size_t r = 0; r < x.rows; ++r) fwht(&at(r, 0), x.cols, row_block);
  for (std::size_t h = 1; h < col_block; h *= 2) {
    for (std::size_t r = 0; r < x.rows; ++r) {
      for (std::size_t c = 0; (r & h) == 0 && c < x.cols; ++c) {
        const float a = at(r, c);
        const float b = at(r + h, c);
        at(r, c) = a + b;
        at(r + h, c) = a - b;
      }
    }
  }
  const auto largest = [](std::size_t n, auto value) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < n; ++i) {
      bits = std::max(bits, std::bit_cast<std::uint32_t>(value(i)) & 0x7FFFFFFFU);
    }
    return std::bit_cast<float>(bits);
  };
  for (std::size_t r = 0; max.rows != nullptr && r < x.rows; ++r) {
    max.rows[r] = largest(x.cols, [&](std::size_t c) { return at(r, c); });
  }
  for (std::size_t c = 0; max.cols != nullptr && c < x.cols; ++c) {
    max.cols[c] = largest(x.rows, [&](std::size_t r) { return at(r, c); });
  }
}

}  // namespace tsq::kernels::scalar
