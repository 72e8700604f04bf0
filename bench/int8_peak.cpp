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

constexpr std::size_t kDots = std::size_t{1} << 23;  // of a measurement of one way

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

// Registers 14 and 15 hold codes and activations; a sum may wrap.
#define TSQ_LOOP(name, isa, registers, dots)                                                       \
  [[gnu::target(isa)]] void name(std::size_t steps) {                                              \
    asm volatile("vmovups (%[codes]), %%" registers                                                \
                 "14\n\t"                                                                          \
                 "vmovups (%[x]), %%" registers                                                    \
                 "15\n\t"                                                                          \
                 ".p2align 6\n"                                                                    \
                 "1:\n\t" dots                                                                     \
                 "dec %[steps]\n\t"                                                                \
                 "jnz 1b\n\t"                                                                      \
                 "vzeroupper"                                                                      \
                 : [steps] "+r"(steps)                                                             \
                 : [codes] "r"(kOperands.codes.data()), [x] "r"(kOperands.x.data())                \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
                   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");          \
  }

// How well two instructions share the ports depends on their order: each product just before its
// sum, six products before their sums, or pairs of sums behind the next pair of products.
#define MUL(product) "vpmaddubsw %%ymm15, %%ymm14, %%ymm" #product "\n\t"
#define ADD(product, sum) "vpaddw %%ymm" #product ", %%ymm" #sum ", %%ymm" #sum "\n\t"
#define DOT(sum) MUL(13) ADD(13, sum)
TSQ_LOOP(maddubs_mixed, "avx2", "ymm",
         DOT(0) DOT(1) DOT(2) DOT(3) DOT(4) DOT(5) DOT(6) DOT(7) DOT(8) DOT(9) DOT(10) DOT(11))
TSQ_LOOP(maddubs_sixes, "avx2", "ymm",
         MUL(8) MUL(9) MUL(10) MUL(11) MUL(12) MUL(13) ADD(8, 0) ADD(9, 1) ADD(10, 2) ADD(11, 3)
             ADD(12, 4) ADD(13, 5))
TSQ_LOOP(maddubs_pairs, "avx2", "ymm",
         MUL(8) MUL(9) ADD(10, 0) ADD(11, 1) MUL(10) MUL(11) ADD(12, 2) ADD(13, 3) MUL(12) MUL(13)
             ADD(8, 4) ADD(9, 5))
#undef DOT
#undef ADD
#undef MUL

#define DOT(sum) "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" #sum "\n\t"
TSQ_LOOP(avx_vnni_6, "avxvnni", "ymm", DOT(0) DOT(1) DOT(2) DOT(3) DOT(4) DOT(5))
TSQ_LOOP(avx_vnni_8, "avxvnni", "ymm", DOT(0) DOT(1) DOT(2) DOT(3) DOT(4) DOT(5) DOT(6) DOT(7))
TSQ_LOOP(avx_vnni_12, "avxvnni", "ymm",
         DOT(0) DOT(1) DOT(2) DOT(3) DOT(4) DOT(5) DOT(6) DOT(7) DOT(8) DOT(9) DOT(10) DOT(11))
#undef DOT

#define DOT(sum) "vpdpbusd %%zmm15, %%zmm14, %%zmm" #sum "\n\t"
TSQ_LOOP(avx512_vnni_6, "avx512f,avx512vnni", "zmm", DOT(0) DOT(1) DOT(2) DOT(3) DOT(4) DOT(5))
TSQ_LOOP(avx512_vnni_8, "avx512f,avx512vnni", "zmm",
         DOT(0) DOT(1) DOT(2) DOT(3) DOT(4) DOT(5) DOT(6) DOT(7))
TSQ_LOOP(avx512_vnni_12, "avx512f,avx512vnni", "zmm",
         DOT(0) DOT(1) DOT(2) DOT(3) DOT(4) DOT(5) DOT(6) DOT(7) DOT(8) DOT(9) DOT(10) DOT(11))
#undef DOT
#undef TSQ_LOOP

struct Way {
  void (*loop)(std::size_t steps);
  std::size_t dots;  // of a step
};
struct Ways {
  double bytes;  // of a register
  std::array<Way, 3> all;
};

const Ways& ways_of(Int8Dot dot) {
  static constexpr Ways maddubs = {32,
                                   {{{maddubs_mixed, 12}, {maddubs_sixes, 6}, {maddubs_pairs, 6}}}};
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
    const std::size_t steps = kDots / ways.all[way].dots;
    const double seconds =
        slowest_seconds(threads_, clock_, [&](int) { ways.all[way].loop(steps); });
    const auto done = static_cast<double>(steps * ways.all[way].dots) * threads_;
    speeds[way] = 2 * ways.bytes * done / seconds / 1e9;
  }
  add(speeds);
}
#else
void Int8Peak::measure() {}
#endif

}  // namespace tsq::bench
