// Activations to multiply by: made up, quantised as the kernels' contract has it.
#pragma once

#include "base/buffer.h"
#include "kernels/kernels.h"

namespace tsq::bench {

// n columns of int8, with every form of scale and sum that a matrix may ask for.
class Q8Columns {
 public:
  // In the order that k likes too, and with its tables, if it has such.
  Q8Columns(std::size_t n, std::size_t cols, const kernels::Kernels& k)
      : n_(n),
        cols_(cols),
        q_(n * cols),
        scale_(n * cols / kernels::kGroup),
        token_scale_(n),
        sum_(n * cols / kernels::kGroup),
        half_sum_(n * cols / kernels::kGroup) {
    for (std::size_t i = 0; i < q_.size(); ++i) {
      q_[i] = static_cast<std::int8_t>(static_cast<int>(i * 37 % 255) - 127);
      sum_[i / kernels::kGroup] += q_[i];
      if (i % kernels::kGroup < kernels::kGroup / 2) half_sum_[i / kernels::kGroup] += q_[i];
    }
    for (float& scale : scale_.span()) scale = 1 / kTokenScale;
    for (float& scale : token_scale_.span()) scale = kTokenScale;
    if (n == 1 && k.s34_tables != nullptr) {
      tables_ = Buffer<std::int8_t>(8 * cols);
      k.s34_tables(q_.data(), cols, false, tables_.data());
    }
    if (k.tile_columns == 0 || n < k.tile_columns) return;
    tiles_ = Buffer<std::int8_t>(n * cols);
    k.interleave(q_.data(), n, cols, tiles_.data());
  }

  kernels::Q8Matrix view(bool per_token) const {
    return {.q = q_.data(),
            .scale = scale_.data(),
            .sum = sum_.data(),
            .n = n_,
            .cols = cols_,
            .half_sum = half_sum_.data(),
            .token_scale = per_token ? token_scale_.data() : nullptr,
            .tiles = tiles_.size() == 0 ? nullptr : tiles_.data(),
            .tables = tables_.size() == 0 ? nullptr : tables_.data()};
  }

 private:
  static constexpr float kTokenScale = 64;
  std::size_t n_, cols_;
  Buffer<std::int8_t> q_, tiles_, tables_;
  Buffer<float> scale_, token_scale_;
  Buffer<std::int32_t> sum_, half_sum_;
};

}  // namespace tsq::bench
