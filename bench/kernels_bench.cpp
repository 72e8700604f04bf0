// Decode (one column) of t2, t1 and s34 as a share of what the memory can deliver.
//
// Every round times one pass of the kernel over 1 GiB of distinct weights and, before and after it,
// nine readers of the same pages (1, 2 and 4 streams; no prefetch, 2 and 8 KiB ahead) on as many
// threads. `of_read_bandwidth` is the median over the rounds of kernel / reader, for the reader
// that is the hardest to keep up with. Time is the CPU time of the slowest thread, which on an idle
// machine is the time on the clock and on a busy one leaves out the turns of others.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bench/read_bandwidth.h"
#include "kernels/dispatch.h"
#include "kernels/layout.h"

namespace {

using namespace tsq::kernels;
namespace bench = tsq::bench;

constexpr std::size_t kCols = 5120;
constexpr std::size_t kBytes = std::size_t{1} << 30;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kRounds = 15;

// Bytes that are sound weights in every encoding: all four 2-bit planes hold 0, 1 or 2, any byte is
// five base-3 digits, and as fp16 scales they are finite.
class Weights {
 public:
  Weights() : bytes_(static_cast<std::byte*>(std::aligned_alloc(kHugePage, kBytes)), std::free) {
    if (bytes_ == nullptr) std::abort();
    madvise(bytes_.get(), kBytes, MADV_HUGEPAGE);
    std::array<std::byte, 256> valid{};
    std::size_t n = 0;
    for (unsigned b = 0; b < 256; ++b) {
      if ((b & b >> 1 & 0x55U) == 0) valid[n++] = static_cast<std::byte>(b);
    }
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < kBytes; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      bytes_.get()[i] = valid[(state >> 33) % n];
    }
  }
  const std::byte* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte, decltype(&std::free)> bytes_;
};

const Weights& weights() {
  static const Weights w;
  return w;
}

void decode(benchmark::State& state, TernaryGemmFn* gemm, std::size_t row_block_bytes) {
  const int threads = static_cast<int>(state.range(0));
  const std::size_t blocks = kBytes / row_block_bytes;
  const TernaryMatrix w{weights().data(), blocks * kRowBlock, kCols};
  std::vector<std::int8_t> q(kCols);
  std::vector<float> scale(kCols / kGroup, 0.01F);
  std::vector<std::int32_t> sum(kCols / kGroup);
  for (std::size_t i = 0; i < kCols; ++i) {
    q[i] = static_cast<std::int8_t>(static_cast<int>(i * 37 % 255) - 127);
    sum[i / kGroup] += q[i];
  }
  const Q8Matrix x{q.data(), scale.data(), sum.data(), 1, kCols};
  std::vector<float> y(w.rows);
  const double bytes = static_cast<double>(blocks * row_block_bytes);

  std::vector<double> speeds;
  bench::ReadCeiling ceiling(threads, bench::Clock::cpu);
  // A quarter of the pages, another one each round: close in time, and far more than the caches.
  const auto read_quarter = [&] {
    const std::size_t quarter = kBytes / 4;
    ceiling.measure({weights().data() + speeds.size() % 4 * quarter, quarter});
  };
  read_quarter();
  for (auto _ : state) {
    const double s = bench::slowest_seconds(threads, bench::Clock::cpu, [&](int t) {
      const auto at = [&](int i) {
        return blocks * static_cast<std::size_t>(i) / static_cast<std::size_t>(threads) * kRowBlock;
      };
      gemm(w, {at(t), at(t + 1)}, x, {y.data(), w.rows});
    });
    benchmark::DoNotOptimize(y.data());
    state.SetIterationTime(s);
    speeds.push_back(bytes / s / 1e9);
    read_quarter();
  }
  state.counters["GB/s"] = bench::median(speeds);
  state.counters["read_GB/s"] = ceiling.read_speed();
  state.counters["of_read_bandwidth"] = ceiling.share(speeds);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Isa isa : supported_isas()) {
    if (isa == Isa::scalar) continue;  // a reference: nothing to measure
    const Kernels& k = *table(isa);
    const std::string name(isa_name(isa));
    for (const auto& [encoding, gemm, row_block_bytes] :
         {std::tuple("t2", k.t2_gemm, t2_row_block_bytes(kCols / kGroup, 1)),
          std::tuple("t1", k.t1_gemm, t1_row_block_bytes(kCols / kGroup, 1)),
          std::tuple("s34", k.s34_gemm, s34_row_block_bytes(kCols / kGroup, 1))}) {
      benchmark::RegisterBenchmark((std::string(encoding) + "_decode/" + name).c_str(), decode,
                                   gemm, row_block_bytes)
          ->ArgName("threads")
          ->Arg(1)
          ->Arg(2)
          ->Iterations(kRounds)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
