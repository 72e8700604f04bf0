#include "backend/activations.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace tsq {

using format::ActivationQuant;

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

// Whether the kernels want columns in their order, and there are enough of them.
bool Activations::interleaves(std::size_t n, ActivationForm form) const {
  return form.quant != ActivationQuant::none && kernels_.tile_columns != 0 &&
         n >= kernels_.tile_columns;
}

void Activations::reserve(std::size_t n, std::size_t padded_cols, ActivationForm form) {
  if (form.rotation != nullptr) grow(rotated_, n * padded_cols);
  if (form.quant == ActivationQuant::none) return;
  const std::size_t groups = n * (padded_cols / kernels::kGroup);
  grow(q_, n * padded_cols);
  if (interleaves(n, form)) grow(tiles_, n * padded_cols);
  grow(scale_, groups);
  grow(sum_, groups);
  if (form.half_sums) grow(half_sum_, groups);
  if (form.tables != QuadTables::none) grow(tables_, 8 * padded_cols);
  if (form.quant == ActivationQuant::per_token) grow(token_scale_, n);
}

kernels::Q8Column Activations::q8_column(std::size_t t, std::size_t cols, ActivationForm form) {
  const std::size_t group = t * (cols / kernels::kGroup);
  return {q_.data() + t * cols, scale_.data() + group, sum_.data() + group,
          form.half_sums ? half_sum_.data() + group : nullptr,
          form.quant == ActivationQuant::per_token ? token_scale_.data() + t : nullptr};
}

// Of a column that is not finite, false.
bool Activations::prepare_column(const float* x, std::size_t t, std::size_t cols,
                                 std::size_t padded_cols, ActivationForm form) {
  const bool quantise = form.quant != ActivationQuant::none;
  const auto* const r = form.rotation;
  if (r == nullptr) {
    return quantise ? kernels_.quantize(x, padded_cols, q8_column(t, padded_cols, form))
                    : all_finite(x, cols);
  }
  const std::uint32_t* const signs = r->signs.empty() ? nullptr : r->signs.data();
  float* const y = rotated_.data() + t * padded_cols;
  if (quantise) {
    return kernels_.rotate_quantize(x, signs, cols, r->block, y, padded_cols,
                                    q8_column(t, padded_cols, form));
  }
  kernels_.rotate(x, signs, cols, r->block, y);
  std::fill(y + cols, y + padded_cols, 0.0f);
  return all_finite(y, cols);
}

std::size_t Activations::prepare(ThreadPool& pool, const float* x, std::size_t stride,
                                 std::size_t n, std::size_t cols, std::size_t padded_cols,
                                 ActivationForm form) {
  reserve(n, padded_cols, form);
  std::atomic<std::size_t> first_bad{n};
  pool.parallel_for(n, 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last; ++t) {
      if (prepare_column(x + t * stride, t, cols, padded_cols, form)) continue;
      std::size_t seen = first_bad.load();
      while (t < seen && !first_bad.compare_exchange_weak(seen, t)) {
      }
    }
  });
  f32_ = form.rotation != nullptr ? kernels::F32Matrix{rotated_.data(), padded_cols, n}
                                  : kernels::F32Matrix{x, stride, n};
  q8_ = {q_.data(), scale_.data(), sum_.data(), n, padded_cols};
  if (form.half_sums) q8_.half_sum = half_sum_.data();
  if (interleaves(n, form)) {
    const std::size_t tile = kernels_.tile_columns;
    pool.parallel_for(n / tile, 1, [&](std::size_t first, std::size_t last) {
      const std::size_t at = first * tile * padded_cols;
      kernels_.interleave(q_.data() + at, (last - first) * tile, padded_cols, tiles_.data() + at);
    });
    q8_.tiles = tiles_.data();
  }
  if (form.quant == ActivationQuant::per_token) q8_.token_scale = token_scale_.data();
  if (form.tables != QuadTables::none && n == 1) {
    kernels_.s34_tables(q_.data(), padded_cols, form.tables == QuadTables::stride16,
                        tables_.data());
    q8_.tables = tables_.data();
  }
  return first_bad.load();
}

std::uint64_t Activations::memory_bytes() const {
  return (rotated_.size() + scale_.size() + token_scale_.size()) * sizeof(float) + q_.size() +
         tiles_.size() + tables_.size() + (sum_.size() + half_sum_.size()) * sizeof(std::int32_t);
}

}  // namespace tsq
