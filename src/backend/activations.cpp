#include "backend/activations.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace tsq {
namespace {

bool all_finite(const float* x, std::size_t n) {
  std::uint32_t special = 0;  // whether any exponent is all ones; no branch, so that it vectorises
  for (std::size_t i = 0; i < n; ++i) {
    special |= (std::bit_cast<std::uint32_t>(x[i]) & 0x7f800000u) == 0x7f800000u;
  }
  return special == 0;
}

template <class T>
void grow(Buffer<T>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer = Buffer<T>(size);
}

}  // namespace

void Activations::reserve(std::size_t n, std::size_t padded_cols, ActivationForm form) {
  if (form.rotation != nullptr) grow(rotated_, n * padded_cols);
  if (form.quantised) {
    grow(q_, n * padded_cols);
    grow(scale_, n * (padded_cols / kernels::kGroup));
    grow(sum_, n * (padded_cols / kernels::kGroup));
  }
}

std::size_t Activations::prepare(ThreadPool& pool, const float* x, std::size_t stride,
                                 std::size_t n, std::size_t cols, std::size_t padded_cols,
                                 ActivationForm form) {
  reserve(n, padded_cols, form);
  const std::size_t groups = padded_cols / kernels::kGroup;
  const bool rotate = form.rotation != nullptr;
  std::atomic<std::size_t> first_bad{n};
  pool.parallel_for(n, 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last; ++t) {
      const float* column = x + t * stride;
      if (rotate) {
        float* const y = rotated_.data() + t * padded_cols;
        const auto& signs = form.rotation->signs;
        kernels_.rotate(column, signs.empty() ? nullptr : signs.data(), cols, form.rotation->block,
                        y);
        std::fill(y + cols, y + padded_cols, 0.0f);
        column = y;
      }
      const bool finite =
          form.quantised ? kernels_.quantize(column, padded_cols, q_.data() + t * padded_cols,
                                             scale_.data() + t * groups, sum_.data() + t * groups)
                         : all_finite(column, cols);
      if (!finite) {
        std::size_t seen = first_bad.load();
        while (t < seen && !first_bad.compare_exchange_weak(seen, t)) {
        }
      }
    }
  });
  f32_ = rotate ? kernels::F32Matrix{rotated_.data(), padded_cols, n}
                : kernels::F32Matrix{x, stride, n};
  q8_ = {q_.data(), scale_.data(), sum_.data(), n, padded_cols};
  return first_bad.load();
}

std::uint64_t Activations::memory_bytes() const {
  return rotated_.size() * sizeof(float) + scale_.size() * sizeof(float) + q_.size() +
         sum_.size() * sizeof(std::int32_t);
}

}  // namespace tsq
