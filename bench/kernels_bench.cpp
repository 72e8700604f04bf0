// Decode (one column) of t2, t1 and s34 as a share of what the memory can deliver.
//
// Every round times one pass of the kernel over 1 GiB of distinct weights and, right after it, nine
// readers of the same pages (1, 2 and 4 streams; no prefetch, 2 and 8 KiB ahead) on as many
// threads. `of_read_bandwidth` is the median over the rounds of kernel / reader, for the reader
// that is the hardest to keep up with. Time is the CPU time of the slowest thread, which on an idle
// machine is the time on the clock and on a busy one leaves out the turns of others.
#include <benchmark/benchmark.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/layout.h"

namespace {

using namespace tsq::kernels;

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

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Runs f(thread) on `threads` threads; CPU seconds of the slowest.
template <class F>
double seconds(int threads, F f) {
  std::vector<double> used(static_cast<std::size_t>(threads));
  const auto timed = [&](int t) {
    const double start = cpu_seconds();
    f(t);
    used[static_cast<std::size_t>(t)] = cpu_seconds() - start;
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(timed, t);
  timed(0);
  for (std::thread& t : others) t.join();
  return *std::max_element(used.begin(), used.end());
}

#ifdef __x86_64__
#define TSQ_READER __attribute__((target("avx2")))
#else
#define TSQ_READER
#endif

// One line of 64 bytes, folded into sum.
#ifdef __x86_64__
using Sum = __m256i;
TSQ_READER inline void read_line(const std::byte* at, Sum& sum) {
  const auto* v = reinterpret_cast<const __m256i*>(at);
  sum = _mm256_xor_si256(sum, _mm256_xor_si256(_mm256_load_si256(v), _mm256_load_si256(v + 1)));
}
#else
using Sum = std::uint64_t;
inline void read_line(const std::byte* at, Sum& sum) {
  std::uint64_t words[8];
  std::memcpy(words, at, sizeof words);
  for (const std::uint64_t w : words) sum ^= w;
}
#endif

template <int kStreams, int kAhead>
TSQ_READER void read(const std::byte* from, std::size_t bytes) {
  const std::size_t step = bytes / kStreams / 64 * 64;
  Sum sums[kStreams] = {};
  for (std::size_t i = 0; i < step; i += 64) {
    for (int s = 0; s < kStreams; ++s) {
      const std::byte* at = from + s * step + i;
      if (kAhead != 0) __builtin_prefetch(at + kAhead);
      read_line(at, sums[s]);
    }
  }
  for (Sum& sum : sums) benchmark::DoNotOptimize(sum);
}

using Reader = void(const std::byte*, std::size_t);
constexpr Reader* kReaders[] = {read<1, 0>,    read<2, 0>,    read<4, 0>,
                                read<1, 2048>, read<2, 2048>, read<4, 2048>,
                                read<1, 8192>, read<2, 8192>, read<4, 8192>};

// GB/s of a reader over `bytes` from `from` on.
double read_bandwidth(Reader* reader, int threads, const std::byte* from, std::size_t bytes) {
  const std::size_t share = bytes / static_cast<std::size_t>(threads) / 64 * 64;
  const double s =
      seconds(threads, [=](int t) { reader(from + static_cast<std::size_t>(t) * share, share); });
  return static_cast<double>(share) * threads / s / 1e9;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
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
  std::array<std::vector<double>, std::size(kReaders)> ceilings;
  std::array<std::vector<double>, std::size(kReaders)> ratios;
  for (auto _ : state) {
    const double s = seconds(threads, [&](int t) {
      const auto at = [&](int i) {
        return blocks * static_cast<std::size_t>(i) / static_cast<std::size_t>(threads) * kRowBlock;
      };
      gemm(w, {at(t), at(t + 1)}, x, {y.data(), w.rows});
    });
    benchmark::DoNotOptimize(y.data());
    state.SetIterationTime(s);
    // A quarter of the pages, another one each round: close in time, and far more than the caches.
    const std::size_t quarter = kBytes / 4;
    const std::byte* pages = weights().data() + speeds.size() % 4 * quarter;
    speeds.push_back(bytes / s / 1e9);
    for (std::size_t r = 0; r < std::size(kReaders); ++r) {
      ceilings[r].push_back(read_bandwidth(kReaders[r], threads, pages, quarter));
      ratios[r].push_back(speeds.back() / ceilings[r].back());
    }
  }
  double ceiling = 0;
  double share = 1e9;
  for (std::size_t r = 0; r < std::size(kReaders); ++r) {
    ceiling = std::max(ceiling, median(ceilings[r]));
    share = std::min(share, median(ratios[r]));
  }
  state.counters["GB/s"] = median(speeds);
  state.counters["read_GB/s"] = ceiling;
  state.counters["of_read_bandwidth"] = share;
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
