// Columns of int8 activations in guarded memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "tests/kernels/guarded.h"

namespace tsq::kernels::test {

struct Q8 {
  std::size_t n;
  std::size_t cols;
  Guarded<std::int8_t> q;
  Guarded<float> scale;
  Guarded<std::int32_t> sum;
  Guarded<std::int32_t> half_sum;
  Guarded<float> token_scale;  // none: per group

  Q8Matrix view() const {
    return {q.data(),
            scale.data(),
            sum.data(),
            n,
            cols,
            half_sum.data(),
            token_scale.size() == 0 ? nullptr : token_scale.data()};
  }
};

}  // namespace tsq::kernels::test
