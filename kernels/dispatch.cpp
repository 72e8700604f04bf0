#include "kernels/dispatch.h"

#include <array>
#include <cstdint>
#include <cstdlib>

#include "kernels/isa.h"

#ifdef TSQ_KERNELS_X86
#include <cpuid.h>
#endif

namespace tsq::kernels {
namespace {

constexpr Kernels kScalar{.isa = Isa::scalar,
                          .t2_gemm = scalar::t2_gemm,
                          .t1_gemm = scalar::t1_gemm,
                          .s34_gemm = scalar::s34_gemm,
                          .t1_escape_gemv = nullptr,
                          .s34_lut_gemv = nullptr,
                          .s34_tables = nullptr,
                          .t1_best = PackedForm::none,
                          .s34_best = PackedForm::none,
                          .t2_gemm_f32 = scalar::t2_gemm_f32,
                          .t1_gemm_f32 = scalar::t1_gemm_f32,
                          .s34_gemm_f32 = scalar::s34_gemm_f32,
                          .tile_columns = 0,
                          .interleave = nullptr,
                          .t2_row = scalar::t2_row,
                          .t1_row = scalar::t1_row,
                          .s34_row = scalar::s34_row,
                          .dense_gemm = scalar::dense_gemm,
                          .dense_row = scalar::dense_row,
                          .fwht = scalar::fwht,
                          .rotate = scalar::rotate,
                          .unrotate = scalar::unrotate,
                          .fwht_matrix = scalar::fwht_matrix,
                          .quantize = scalar::quantize,
                          .rotate_quantize = scalar::rotate_quantize,
                          .rms_norm = scalar::rms_norm,
                          .rope = scalar::rope,
                          .silu_mul = scalar::silu_mul,
                          .sigmoid_mul = scalar::sigmoid_mul,
                          .add = scalar::add,
                          .to_f16 = scalar::to_f16,
                          .from_f16 = scalar::from_f16,
                          .attention_f16 = scalar::attention_f16,
                          .attention_f32 = scalar::attention_f32,
                          .exp = scalar::exp,
                          .l2_norm = scalar::l2_norm,
                          .causal_conv = scalar::causal_conv,
                          .delta_gates = scalar::delta_gates,
                          .delta_net = scalar::delta_net};

#ifdef TSQ_KERNELS_X86
constexpr Kernels kAvx2 = [] {
  Kernels k = kScalar;  // what is not named below stays scalar
  k.isa = Isa::avx2;
  k.t2_gemm = avx2::t2_gemm;
  k.t1_gemm = avx2::t1_gemm;
  k.s34_gemm = avx2::s34_gemm;
  k.s34_lut_gemv = avx2::s34_lut_gemv;
  k.s34_tables = avx2::s34_tables;
  k.t1_best = PackedForm::t2;
  k.s34_best = PackedForm::s34_lut;
  k.t2_gemm_f32 = avx2::t2_gemm_f32;
  k.t1_gemm_f32 = avx2::t1_gemm_f32;
  k.s34_gemm_f32 = avx2::s34_gemm_f32;
  k.tile_columns = avx2::kTileColumns;
  k.interleave = avx2::interleave;
  k.dense_gemm = avx2::dense_gemm;
  k.fwht = avx2::fwht;
  k.rotate = avx2::rotate;
  k.unrotate = avx2::unrotate;
  k.fwht_matrix = avx2::fwht_matrix;
  k.quantize = avx2::quantize;
  k.rotate_quantize = avx2::rotate_quantize;
  k.rms_norm = avx2::rms_norm;
  k.rope = avx2::rope;
  k.silu_mul = avx2::silu_mul;
  k.sigmoid_mul = avx2::sigmoid_mul;
  k.add = avx2::add;
  k.to_f16 = avx2::to_f16;
  k.from_f16 = avx2::from_f16;
  k.attention_f16 = avx2::attention_f16;
  k.attention_f32 = avx2::attention_f32;
  k.exp = avx2::exp;
  k.l2_norm = avx2::l2_norm;
  k.causal_conv = avx2::causal_conv;
  k.delta_net = avx2::delta_net;
  return k;
}();

constexpr Kernels kAvxVnni = [] {
  Kernels k = kAvx2;
  k.isa = Isa::avxvnni;
  k.t2_gemm = avxvnni::t2_gemm;
  k.t1_gemm = avxvnni::t1_gemm;
  k.s34_gemm = avxvnni::s34_gemm;
  return k;
}();

constexpr Kernels kAvx512 = [] {
  Kernels k = kAvx2;
  k.isa = Isa::avx512;
  k.t2_gemm = avx512::t2_gemm;
  k.t1_gemm = avx512::t1_gemm;
  k.s34_gemm = avx512::s34_gemm;
  k.t1_escape_gemv = avx512::t1_escape_gemv;
  k.t1_best = PackedForm::t1_escape;
  k.s34_best = PackedForm::none;
  k.t2_gemm_f32 = avx512::t2_gemm_f32;
  k.t1_gemm_f32 = avx512::t1_gemm_f32;
  k.s34_gemm_f32 = avx512::s34_gemm_f32;
  k.tile_columns = avx512::kTileColumns;
  k.interleave = avx512::interleave;
  k.dense_gemm = avx512::dense_gemm;
  k.fwht = avx512::fwht;
  k.rotate = avx512::rotate;
  k.unrotate = avx512::unrotate;
  k.fwht_matrix = avx512::fwht_matrix;
  k.quantize = avx512::quantize;
  k.rotate_quantize = avx512::rotate_quantize;
  k.rms_norm = avx512::rms_norm;
  k.silu_mul = avx512::silu_mul;
  k.sigmoid_mul = avx512::sigmoid_mul;
  k.attention_f16 = avx512::attention_f16;
  k.attention_f32 = avx512::attention_f32;
  k.exp = avx512::exp;
  k.l2_norm = avx512::l2_norm;
  k.causal_conv = avx512::causal_conv;
  k.delta_net = avx512::delta_net;
  return k;
}();

// The levels of this build, lowest first.
constexpr std::array kBuilt{&kScalar, &kAvx2, &kAvxVnni, &kAvx512};
#else
constexpr std::array kBuilt{&kScalar};
#endif

constexpr std::array kNames{std::string_view("scalar"), std::string_view("avx2"),
                            std::string_view("avxvnni"), std::string_view("avx512")};

const Kernels* built(Isa isa) noexcept {
  for (const Kernels* k : kBuilt) {
    if (k->isa == isa) return k;
  }
  return nullptr;
}

}  // namespace

CpuFeatures detect_cpu() noexcept {
  CpuFeatures cpu;
#ifdef TSQ_KERNELS_X86
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const auto bit = [](unsigned word, int n) { return (word >> n & 1U) != 0; };
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || !bit(c, 27)) return cpu;  // 27: OSXSAVE
  const bool fma = bit(c, 12);
  const bool f16c = bit(c, 29);
  unsigned xcr0 = 0;
  unsigned xcr0_high = 0;
  __asm__("xgetbv" : "=a"(xcr0), "=d"(xcr0_high) : "c"(0));
  if ((xcr0 & 0x06U) != 0x06U || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return cpu;
  cpu.fma = fma;
  cpu.f16c = f16c;
  cpu.avx2 = bit(b, 5);
  const bool has_subleaf = a >= 1;
  const unsigned words[2] = {b, c};
  if (has_subleaf && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) cpu.avx_vnni = bit(a, 4);
  b = words[0];
  c = words[1];
  if ((xcr0 & 0xE0U) != 0xE0U) return cpu;  // mask registers and the upper halves
  cpu.avx512f = bit(b, 16);
  cpu.avx512dq = bit(b, 17);
  cpu.avx512bw = bit(b, 30);
  cpu.avx512vl = bit(b, 31);
  cpu.avx512_vbmi = bit(c, 1);
  cpu.avx512_vnni = bit(c, 11);
#endif
  return cpu;
}

bool supports(const CpuFeatures& cpu, Isa isa) noexcept {
  const bool avx2 = cpu.avx2 && cpu.fma && cpu.f16c;
  switch (isa) {
    case Isa::scalar:
      return true;
    case Isa::avx2:
      return avx2;
    case Isa::avxvnni:
      return avx2 && cpu.avx_vnni;
    case Isa::avx512:
      return avx2 && cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl &&
             cpu.avx512_vnni && cpu.avx512_vbmi;
  }
  return false;
}

std::string_view isa_name(Isa isa) noexcept { return kNames[static_cast<std::size_t>(isa)]; }

std::optional<Isa> isa_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

std::span<const Isa> built_isas() noexcept {
  static constexpr auto isas = [] {
    std::array<Isa, kBuilt.size()> all{};
    for (std::size_t i = 0; i < kBuilt.size(); ++i) all[i] = kBuilt[i]->isa;
    return all;
  }();
  return isas;
}

std::span<const Isa> supported_isas() noexcept {
  struct List {
    std::array<Isa, kBuilt.size()> isas;
    std::size_t n = 0;
  };
  static const List list = [] {
    List l{};
    const CpuFeatures cpu = detect_cpu();
    for (const Kernels* k : kBuilt) {
      if (supports(cpu, k->isa)) l.isas[l.n++] = k->isa;
    }
    return l;
  }();
  return {list.isas.data(), list.n};
}

const Kernels* table(Isa isa) noexcept {
  for (const Isa supported : supported_isas()) {
    if (supported == isa) return built(isa);
  }
  return nullptr;
}

Choice choose(const CpuFeatures& cpu, const char* tsq_isa) {
  const Kernels* best = &kScalar;
  std::string levels;
  for (const Kernels* k : kBuilt) {
    if (!supports(cpu, k->isa)) continue;
    best = k;
    levels += levels.empty() ? "" : ", ";
    levels += isa_name(k->isa);
  }
  if (tsq_isa == nullptr || *tsq_isa == '\0') return {best, {}};

  const std::string prefix = std::string("TSQ_ISA=") + tsq_isa;
  const std::optional<Isa> isa = isa_from_name(tsq_isa);
  if (!isa) return {nullptr, prefix + ": no such level; this machine has " + levels};
  const Kernels* k = built(*isa);
  if (k == nullptr) return {nullptr, prefix + ": not in this build; this machine has " + levels};
  if (!supports(cpu, *isa)) {
    return {nullptr, prefix + ": this CPU lacks it; this machine has " + levels};
  }
  return {k, {}};
}

const Choice& chosen() {
  static const Choice choice = choose(detect_cpu(), std::getenv("TSQ_ISA"));
  return choice;
}

}  // namespace tsq::kernels
