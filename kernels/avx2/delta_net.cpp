// Gated DeltaNet on 256 bits.
#include "kernels/avx2/simd.h"

namespace tsq::kernels {
namespace {

using Vector = __m256;
constexpr std::size_t kDeltaRows = 4;

inline Vector load_floats(const float* from) { return _mm256_loadu_ps(from); }
inline void store_floats(float* to, Vector v) { _mm256_storeu_ps(to, v); }
inline Vector broadcast(float x) { return _mm256_set1_ps(x); }
inline Vector mul(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
inline Vector fmadd(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
inline float reduce(const Vector (&sums)[2]) { return reduce_lanes(sums[0], sums[1]); }
inline Vector silu(Vector x) {
  const __m256 e = exp_f32(_mm256_xor_ps(x, _mm256_set1_ps(-0.0F)));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), e));
}

}  // namespace
}  // namespace tsq::kernels

#include "kernels/x86/delta_net.h"

namespace tsq::kernels::avx2 {

void l2_norm(const float* x, std::size_t n, float eps, float scale, float* y) noexcept {
  l2_norm_of_vectors(x, n, eps, scale, y);
}
void causal_conv(const CausalConv& conv, std::size_t first, std::size_t last) noexcept {
  causal_conv_of_vectors(conv, first, last);
}
void delta_net(const DeltaHead& head, RowRange rows) noexcept { delta_net_of_vectors(head, rows); }

}  // namespace tsq::kernels::avx2
