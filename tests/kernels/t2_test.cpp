#include "tests/kernels/ternary_checks.h"

namespace tsq::kernels::test {
namespace {

constexpr Encoding kT2{encode_t2, &Kernels::t2_gemm, &Kernels::t2_gemm_f32, &Kernels::t2_row};

TEST(T2Scalar, IsTheDefinition) { check_gemm_against_definition(kT2); }

class T2 : public EveryIsa {};
TEST_P(T2, EqualsScalarForEveryShape) { check_gemm_shapes(kT2, *k_); }
TEST_P(T2, EqualsScalarForEveryScaling) { check_gemm_scalings(kT2, *k_); }
TEST_P(T2, EqualsScalarAtTheLimits) { check_gemm_extremes(kT2, *k_); }
TEST_P(T2, WritesItsRangeOnly) { check_gemm_ranges(kT2, *k_); }
TEST_P(T2, EqualsScalarWithFloatActivations) { check_gemm_f32_shapes(kT2, *k_); }
TEST_P(T2, InterleavesWholeTilesOfColumns) {
  const std::size_t tile = k_->tile_columns;
  ASSERT_NE(tile, 0);
  for (const std::size_t n : {tile - 1, tile, 3 * tile + 1}) {
    const Q8 x = make_q8(n, 3 * kGroup, n);
    Guarded<std::int8_t> tiles(n / tile * tile * x.cols);
    k_->interleave(x.q.data(), n, x.cols, tiles.data());
    for (std::size_t c = 0; c < n / tile * tile; ++c) {
      for (std::size_t i = 0; i < x.cols; ++i) {
        const std::size_t place = i / 4 * tile * 4 + c % tile * 4 + i % 4;
        ASSERT_EQ(tiles[c / tile * tile * x.cols + place], x.q[c * x.cols + i]);
      }
    }
  }
}
TSQ_FOR_EVERY_ISA(T2);

}  // namespace
}  // namespace tsq::kernels::test
