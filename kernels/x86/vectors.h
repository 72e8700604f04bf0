// Loops over vectors of floats, for any vector (kernels/avx2/floats.h, avx512/floats.h).
#pragma once

namespace tsq::kernels {
namespace {

template <std::size_t n>
struct Constant {
  static constexpr std::size_t value = n;
};

// f(Constant<0>()), ..., written out: GCC 12 leaves the arrays of a loop in memory.
template <std::size_t n, class F>
[[gnu::always_inline]] inline void unroll(F f) {
  if constexpr (n > 0) {
    unroll<n - 1>(f);
    f(Constant<n - 1>());
  }
}

// f(c, lanes) for each vector of a row of n elements; lanes: kWidth as a constant, or the rest.
template <class F>
void for_vectors(std::size_t n, F f) {
  std::size_t c = 0;
  for (; c + kWidth <= n; c += kWidth) f(c, Constant<kWidth>());
  if (c < n) f(c, n - c);
}
inline Vec load(const float* x, Constant<kWidth>) { return load(x); }
inline Vec load(const float* x, std::size_t lanes) { return load_first(x, lanes); }
inline void store(float* x, Constant<kWidth>, Vec v) { store(x, v); }
inline void store(float* x, std::size_t lanes, Vec v) { store_first(x, lanes, v); }

}  // namespace
}  // namespace tsq::kernels
