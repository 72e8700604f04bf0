#include <algorithm>

#include "tests/kernels/support.h"

namespace tsq::kernels::test {
namespace {

CpuFeatures everything() {
  return {.avx2 = true,
          .fma = true,
          .f16c = true,
          .avx_vnni = true,
          .avx512f = true,
          .avx512bw = true,
          .avx512dq = true,
          .avx512vl = true,
          .avx512_vnni = true,
          .avx512_vbmi = true};
}

// Every level that the CPU has is built and offered: a forgotten one fails here, it is not skipped.
TEST(Dispatch, OffersEveryLevelOfTheCpu) {
  const auto isas = supported_isas();
  EXPECT_TRUE(std::is_sorted(isas.begin(), isas.end()));
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avxvnni, Isa::avx512}) {
    const bool here = supports(detect_cpu(), isa);
    EXPECT_EQ(std::find(isas.begin(), isas.end(), isa) != isas.end(), here) << isa_name(isa);
    ASSERT_EQ(table(isa) != nullptr, here) << isa_name(isa);
    if (here) {
      EXPECT_EQ(table(isa)->isa, isa);
    }
  }
}

#ifdef __x86_64__
// The compiler's run-time library asks CPUID and XGETBV too.
TEST(Dispatch, DetectsWhatTheCompilerDetects) {
  const CpuFeatures cpu = detect_cpu();
  EXPECT_EQ(cpu.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpu.fma, __builtin_cpu_supports("fma") != 0);
#ifndef __clang__  // clang 14 does not know the name
  EXPECT_EQ(cpu.avx_vnni, __builtin_cpu_supports("avxvnni") != 0);
#endif
  EXPECT_EQ(cpu.avx512f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(cpu.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(cpu.avx512dq, __builtin_cpu_supports("avx512dq") != 0);
  EXPECT_EQ(cpu.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(cpu.avx512_vnni, __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(cpu.avx512_vbmi, __builtin_cpu_supports("avx512vbmi") != 0);
}

TEST(Dispatch, TakesTheHighestLevel) {
  EXPECT_EQ(choose({}, nullptr).kernels->isa, Isa::scalar);
  EXPECT_EQ(choose({.avx2 = true, .fma = true, .f16c = true}, nullptr).kernels->isa, Isa::avx2);
  EXPECT_EQ(choose(everything(), nullptr).kernels->isa, Isa::avx512);
  EXPECT_EQ(choose(everything(), "").kernels->isa, Isa::avx512);
}

TEST(Dispatch, ALevelNeedsAllItsFeatures) {
  bool CpuFeatures::*const avx2[] = {&CpuFeatures::avx2, &CpuFeatures::fma, &CpuFeatures::f16c};
  bool CpuFeatures::*const avx512[] = {&CpuFeatures::avx512f,     &CpuFeatures::avx512bw,
                                       &CpuFeatures::avx512dq,    &CpuFeatures::avx512vl,
                                       &CpuFeatures::avx512_vnni, &CpuFeatures::avx512_vbmi};
  for (const auto feature : avx2) {
    CpuFeatures cpu = everything();
    cpu.*feature = false;
    EXPECT_EQ(choose(cpu, nullptr).kernels->isa, Isa::scalar);
  }
  for (const auto feature : avx512) {
    CpuFeatures cpu = everything();
    cpu.*feature = false;
    EXPECT_EQ(choose(cpu, nullptr).kernels->isa, Isa::avxvnni);
    cpu.avx_vnni = false;
    EXPECT_EQ(choose(cpu, nullptr).kernels->isa, Isa::avx2);
  }
}

TEST(Dispatch, TheVariableOverrides) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avxvnni, Isa::avx512}) {
    const Choice choice = choose(everything(), std::string(isa_name(isa)).c_str());
    ASSERT_NE(choice.kernels, nullptr) << choice.error;
    EXPECT_EQ(choice.kernels->isa, isa);
    EXPECT_EQ(choice.error, "");
  }
}

TEST(Dispatch, RefusesWhatIsNotThere) {
  const CpuFeatures avx2{.avx2 = true, .fma = true, .f16c = true};
  EXPECT_EQ(choose(avx2, "avx512").kernels, nullptr);
  EXPECT_EQ(choose(avx2, "avx512").error,
            "TSQ_ISA=avx512: this CPU lacks it; this machine has scalar, avx2");
  EXPECT_EQ(choose(avx2, "AVX2").kernels, nullptr);
  EXPECT_EQ(choose(avx2, "AVX2").error,
            "TSQ_ISA=AVX2: no such level; this machine has scalar, avx2");
}
#endif

TEST(Dispatch, NamesRoundTrip) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avxvnni, Isa::avx512}) {
    EXPECT_EQ(isa_from_name(isa_name(isa)), isa);
  }
  EXPECT_EQ(isa_from_name("sse2"), std::nullopt);
  EXPECT_EQ(isa_from_name(""), std::nullopt);
}

// A table is complete: no level leaves a pointer empty.
TEST(Dispatch, TablesAreComplete) {
  for (const Isa isa : supported_isas()) {
    const Kernels& k = *table(isa);
    const bool complete = k.t2_gemm && k.t1_gemm && k.s34_gemm && k.t2_gemm_f32 && k.t1_gemm_f32 &&
                          k.s34_gemm_f32 && k.t2_row && k.t1_row && k.s34_row && k.dense_gemm &&
                          k.dense_row && k.fwht && k.rotate && k.unrotate && k.quantize &&
                          k.rms_norm && k.rope && k.silu_mul && k.add && k.to_f16 && k.from_f16 &&
                          k.attention_f16 && k.attention_f32 && k.exp;
    EXPECT_TRUE(complete) << isa_name(isa);
  }
}

}  // namespace
}  // namespace tsq::kernels::test
