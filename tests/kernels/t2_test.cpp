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
TSQ_FOR_EVERY_ISA(T2);

}  // namespace
}  // namespace tsq::kernels::test
