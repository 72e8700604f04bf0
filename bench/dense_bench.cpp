// Dense rows of 5120 inputs. Few columns: as a share of what the memory can deliver, measured as in
// kernels_bench.cpp. 512 columns, of a matrix that is read once: in multiply-adds.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bench/read_bandwidth.h"
#include "kernels/dispatch.h"

namespace {

using namespace tsq::kernels;
namespace bench = tsq::bench;

constexpr std::size_t kCols = 5120;
constexpr std::size_t kBytes = std::size_t{1} << 30;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kRounds = 9;

// No byte has two bits side by side: what is read as a float of any type is finite.
class Weights {
 public:
  Weights() : bytes_(static_cast<std::byte*>(std::aligned_alloc(kHugePage, kBytes)), std::free) {
    if (bytes_ == nullptr) std::abort();
    madvise(bytes_.get(), kBytes, MADV_HUGEPAGE);
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < kBytes; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const auto bits = static_cast<unsigned>(state >> 33);
      bytes_.get()[i] = static_cast<std::byte>(bits & ~(bits >> 1) & 0x55U);
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

// One pass over the rows on that many threads, in seconds.
double multiply(DenseGemmFn* gemm, const DenseMatrix& w, const F32Matrix& x, Outputs y,
                int threads) {
  return bench::slowest_seconds(threads, bench::Clock::cpu, [&](int t) {
    const auto at = [&](int i) {
      return w.rows * static_cast<std::size_t>(i) / static_cast<std::size_t>(threads);
    };
    gemm(w, {at(t), at(t + 1)}, x, y);
  });
}

void few_columns(benchmark::State& state, DenseGemmFn* gemm, DenseType type,
                 std::size_t row_bytes) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const int threads = static_cast<int>(state.range(1));
  const DenseMatrix w{type, weights().data(), row_bytes, kBytes / row_bytes, kCols};
  const std::vector<float> x(n * kCols, 0.5F);
  std::vector<float> y(n * w.rows);
  const auto bytes = static_cast<double>(w.rows * row_bytes);

  std::vector<double> speeds;
  bench::ReadCeiling ceiling(threads, bench::Clock::cpu);
  const auto read_quarter = [&] {
    const std::size_t quarter = kBytes / 4;
    ceiling.measure({weights().data() + speeds.size() % 4 * quarter, quarter});
  };
  read_quarter();
  for (auto _ : state) {
    const double s = multiply(gemm, w, {x.data(), kCols, n}, {y.data(), w.rows}, threads);
    benchmark::DoNotOptimize(y.data());
    state.SetIterationTime(s);
    speeds.push_back(bytes / s / 1e9);
    read_quarter();
  }
  state.counters["GB/s"] = bench::median(speeds);
  state.counters["read_GB/s"] = ceiling.speed();
  state.counters["of_read_bandwidth"] = ceiling.share(speeds).median;
}

void many_columns(benchmark::State& state, DenseGemmFn* gemm, DenseType type,
                  std::size_t row_bytes) {
  const std::size_t n = 512;
  const int threads = static_cast<int>(state.range(0));
  const DenseMatrix w{type, weights().data(), row_bytes, 1024, kCols};
  const std::vector<float> x(n * kCols, 0.5F);
  std::vector<float> y(n * w.rows);
  std::vector<double> speeds;
  for (auto _ : state) {
    const double s = multiply(gemm, w, {x.data(), kCols, n}, {y.data(), w.rows}, threads);
    benchmark::DoNotOptimize(y.data());
    state.SetIterationTime(s);
    speeds.push_back(static_cast<double>(n * kCols * w.rows) / s / 1e9);
  }
  state.counters["GFMA/s"] = bench::median(speeds);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Isa isa : supported_isas()) {
    if (isa == Isa::scalar) continue;  // a reference: nothing to measure
    DenseGemmFn* const gemm = table(isa)->dense_gemm;
    for (const auto& [name, type, row_bytes] : {std::tuple("q8", DenseType::q8, kCols / 32 * 34),
                                                std::tuple("q4", DenseType::q4, kCols / 32 * 18),
                                                std::tuple("q4m", DenseType::q4m, kCols / 32 * 20),
                                                std::tuple("f16", DenseType::f16, kCols * 2),
                                                std::tuple("bf16", DenseType::bf16, kCols * 2),
                                                std::tuple("f32", DenseType::f32, kCols * 4)}) {
      const std::string suffix = std::string(name) + "/" + std::string(isa_name(isa));
      benchmark::RegisterBenchmark(("few/" + suffix).c_str(), few_columns, gemm, type, row_bytes)
          ->ArgNames({"columns", "threads"})
          ->ArgsProduct({{1, 2, 4, 8}, {1, 2}})
          ->Iterations(kRounds)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(("many/" + suffix).c_str(), many_columns, gemm, type, row_bytes)
          ->ArgName("threads")
          ->Arg(1)
          ->Arg(2)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
