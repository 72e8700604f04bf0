// The Walsh-Hadamard transform and the rotations made of it, the reference.
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

}  // namespace tsq::kernels::scalar
