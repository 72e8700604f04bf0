// Each loop is one asm statement: a compiler would lift out of it what does not change, or keep the
// sums in memory.
#include "bench/int8_peak.h"

#include <array>

namespace tsq::bench {

std::optional<Int8Dot> int8_dot(std::string_view level) {
  if (level == "avx2") return Int8Dot::maddubs;
  if (level == "avxvnni") return Int8Dot::avx_vnni;
  if (level == "avx512") return Int8Dot::avx512_vnni;
  return std::nullopt;
}

#ifdef __x86_64__
namespace {

constexpr std::size_t kDots = std::size_t{1} << 21;  // of a measurement of one way

// Not zeros: how fast a multiplier runs can depend on what it is fed.
struct Operands {
  alignas(64) std::array<std::uint8_t, 64> codes;
  alignas(64) std::array<std::int8_t, 64> x;
};
constexpr Operands kOperands = [] {
  Operands o{};
  for (unsigned i = 0; i < 64; ++i) {
    o.codes[i] = static_cast<std::uint8_t>(i * 5 % 3);
    o.x[i] = static_cast<std::int8_t>(static_cast<int>(i * 37 % 255) - 127);
  }
  return o;
}();

// Registers 14 and 15 hold codes and activations, 13 a product, from 0 on the sums. A sum may wrap.
#define TSQ_MADDUBS                          \
  "vpmaddubsw %%ymm15, %%ymm14, %%ymm13\n\t" \
  "vpaddw %%ymm13, %%ymm\\sum, %%ymm\\sum\n\t"
#define TSQ_AVX_VNNI "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm\\sum\n\t"
#define TSQ_AVX512_VNNI "vpdpbusd %%zmm15, %%zmm14, %%zmm\\sum\n\t"

#define TSQ_LOOP(name, isa, registers, dot, sums)                                                  \
  [[gnu::target(isa)]] void name(std::size_t steps) {                                              \
    asm volatile("vmovups (%[codes]), %%" registers                                                \
                 "14\n\t"                                                                          \
                 "vmovups (%[x]), %%" registers                                                    \
                 "15\n\t"                                                                          \
                 ".p2align 6\n"                                                                    \
                 "1:\n\t"                                                                          \
                 ".irp sum, " sums "\n\t" dot                                                      \
                 ".endr\n\t"                                                                       \
                 "dec %[steps]\n\t"                                                                \
                 "jnz 1b\n\t"                                                                      \
                 "vzeroupper"                                                                      \
                 : [steps] "+r"(steps)                                                             \
                 : [codes] "r"(kOperands.codes.data()), [x] "r"(kOperands.x.data())                \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
                   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");          \
  }
#define TSQ_SUMS_6 "0, 1, 2, 3, 4, 5"
#define TSQ_SUMS_8 TSQ_SUMS_6 ", 6, 7"
#define TSQ_SUMS_12 TSQ_SUMS_8 ", 8, 9, 10, 11"
#define TSQ_LOOPS(name, isa, registers, dot)          \
  TSQ_LOOP(name##_6, isa, registers, dot, TSQ_SUMS_6) \
  TSQ_LOOP(name##_8, isa, registers, dot, TSQ_SUMS_8) \
  TSQ_LOOP(name##_12, isa, registers, dot, TSQ_SUMS_12)

TSQ_LOOPS(maddubs, "avx2", "ymm", TSQ_MADDUBS)
TSQ_LOOPS(avx_vnni, "avxvnni", "ymm", TSQ_AVX_VNNI)
TSQ_LOOPS(avx512_vnni, "avx512f,avx512vnni", "zmm", TSQ_AVX512_VNNI)

#undef TSQ_LOOPS
#undef TSQ_LOOP

struct Way {
  void (*loop)(std::size_t steps);
  std::size_t sums;
};
struct Ways {
  double bytes;  // of a register
  std::array<Way, 3> all;
};

const Ways& ways_of(Int8Dot dot) {
  static constexpr Ways maddubs = {32, {{{maddubs_6, 6}, {maddubs_8, 8}, {maddubs_12, 12}}}};
  static constexpr Ways avx_vnni = {32, {{{avx_vnni_6, 6}, {avx_vnni_8, 8}, {avx_vnni_12, 12}}}};
  static constexpr Ways avx512_vnni = {
      64, {{{avx512_vnni_6, 6}, {avx512_vnni_8, 8}, {avx512_vnni_12, 12}}}};
  switch (dot) {
    case Int8Dot::maddubs:
      return maddubs;
    case Int8Dot::avx_vnni:
      return avx_vnni;
    case Int8Dot::avx512_vnni:
      break;
  }
  return avx512_vnni;
}

}  // namespace

void Int8Peak::measure() {
  const Ways& ways = ways_of(dot_);
  std::array<double, kWays> speeds{};
  for (std::size_t way = 0; way < kWays; ++way) {
    const std::size_t steps = kDots / ways.all[way].sums;
    const double seconds =
        slowest_seconds(threads_, clock_, [&](int) { ways.all[way].loop(steps); });
    const auto dots = static_cast<double>(steps * ways.all[way].sums) * threads_;
    speeds[way] = 2 * ways.bytes * dots / seconds / 1e9;
  }
  add(speeds);
}
#else
void Int8Peak::measure() {}
#endif

}  // namespace tsq::bench
