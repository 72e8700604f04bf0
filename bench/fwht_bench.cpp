// The Walsh-Hadamard transform of a 4096 x 4096 matrix against an in-place touch of the same bytes,
// and a column of activations made ready: rotated and quantised.
//
// Every round times one transform and, before and after it, two ways to change the sign of every
// float: one stream, and two with prefetch. `of_touch` is the median over the rounds of transform /
// touch, for the touch that is the harder to keep up with. Time is the CPU time of the slowest
// thread; bench/read_bandwidth.h says why.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/read_bandwidth.h"
#include "kernels/dispatch.h"

namespace {

using namespace tsq::kernels;
namespace bench = tsq::bench;

constexpr std::size_t kSide = 4096;
constexpr std::size_t kFloats = kSide * kSide;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kRounds = 21;

class Matrix {
 public:
  Matrix() : x_(static_cast<float*>(std::aligned_alloc(kHugePage, kBytes)), std::free) {
    if (x_ == nullptr) std::abort();
    madvise(x_.get(), kBytes, MADV_HUGEPAGE);
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < kFloats; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      x_.get()[i] = static_cast<float>(state >> 33) * 0x1p-31F - 0.5F;
    }
  }
  float* data() { return x_.get(); }

 private:
  static constexpr std::size_t kBytes = kFloats * sizeof(float);
  std::unique_ptr<float, decltype(&std::free)> x_;
};

Matrix& matrix() {
  static Matrix m;
  return m;
}

using Line [[gnu::vector_size(64)]] = float;  // some registers, as many as a level needs

template <std::size_t kStreams, std::size_t kAhead>
[[gnu::always_inline]] inline void negate(float* x, std::size_t n) {
  constexpr std::size_t kLine = 16;
  for (std::size_t i = 0; i < n / kStreams; i += kLine) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      float* const at = x + s * (n / kStreams) + i;
      if (kAhead != 0) __builtin_prefetch(at + kAhead, 1);
      Line line;
      std::memcpy(&line, at, sizeof line);
      line = -line;
      std::memcpy(at, &line, sizeof line);
    }
  }
}

using Touch = void(float*, std::size_t);
#ifdef __x86_64__
[[gnu::target("avx2")]] void touch_plain(float* x, std::size_t n) { negate<1, 0>(x, n); }
[[gnu::target("avx2")]] void touch_ahead(float* x, std::size_t n) { negate<2, 512>(x, n); }
#else
void touch_plain(float* x, std::size_t n) { negate<1, 0>(x, n); }
void touch_ahead(float* x, std::size_t n) { negate<2, 512>(x, n); }
#endif
constexpr std::array<Touch*, 2> kTouches{touch_plain, touch_ahead};

// f(first, last) of the rows (or columns) of each thread.
template <class F>
double seconds(int threads, F f) {
  const auto at = [&](int t) {
    return kSide * static_cast<std::size_t>(t) / static_cast<std::size_t>(threads) / 16 * 16;
  };
  return bench::slowest_seconds(threads, bench::Clock::cpu, [&](int t) { f(at(t), at(t + 1)); });
}

// One side of the matrix or, on one thread after the other's rows, both.
enum class Sides : std::uint8_t { rows, columns, both };

void transform(benchmark::State& state, FwhtMatrixFn* fwht, Sides sides, bool maxima) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const int threads = static_cast<int>(state.range(1));
  float* const x = matrix().data();
  std::vector<float> row_max(kSide), col_max(kSide * static_cast<std::size_t>(threads));
  const auto max_of = [&](std::size_t first) {
    return maxima ? Maxima{row_max.data() + first, col_max.data() + (first == 0 ? 0 : kSide)}
                  : Maxima{nullptr, nullptr};
  };
  const auto run = [&] {
    return seconds(threads, [&](std::size_t first, std::size_t last) {
      if (sides == Sides::columns) {
        return fwht({x + first, kSide, last - first, kSide}, 1, n, {nullptr, nullptr});
      }
      fwht({x + first * kSide, last - first, kSide, kSide}, n, sides == Sides::both ? n : 1,
           max_of(first));
    });
  };
  std::array<std::vector<double>, kTouches.size()> touches;
  const auto touch = [&] {
    for (std::size_t i = 0; i < kTouches.size(); ++i) {
      touches[i].push_back(seconds(threads, [&](std::size_t first, std::size_t last) {
        kTouches[i](x + first * kSide, (last - first) * kSide);
      }));
    }
  };
  // So that the values stay what they were; not timed.
  const float back = 1 / std::sqrt(static_cast<float>(sides == Sides::both ? n * n : n));

  std::vector<double> times;
  touch();
  for (auto _ : state) {
    const double s = run();
    state.SetIterationTime(s);
    times.push_back(s);
    touch();
    for (std::size_t i = 0; i < kFloats; ++i) x[i] *= back;
  }
  double of_touch = 0;
  double fastest = 1e9;
  for (const auto& t : touches) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < times.size(); ++i)
      ratios.push_back(2 * times[i] / (t[i] + t[i + 1]));
    of_touch = std::max(of_touch, bench::median(ratios));
    fastest = std::min(fastest, bench::median(t));
  }
  state.counters["touch_ms"] = 1e3 * fastest;
  state.counters["of_touch"] = of_touch;
}

void prepare(benchmark::State& state, RotateQuantizeFn* rotate_quantize, bool per_token) {
  const auto cols = static_cast<std::size_t>(state.range(0));
  const auto block = static_cast<std::size_t>(state.range(1));
  std::vector<float> x(matrix().data(), matrix().data() + cols), y(cols), scale(cols / kGroup);
  std::vector<std::uint32_t> signs(cols / 32, 0x5A17C3E9U);
  std::vector<std::int8_t> q(cols);
  std::vector<std::int32_t> sum(cols / kGroup);
  float token_scale = 0;
  const Q8Column out = {q.data(), scale.data(), sum.data(), nullptr,
                        per_token ? &token_scale : nullptr};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        rotate_quantize(x.data(), signs.data(), cols, block, y.data(), cols, out));
    benchmark::ClobberMemory();
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const Isa isa : supported_isas()) {
    if (isa == Isa::scalar) continue;  // a reference: nothing to measure
    const Kernels& k = *table(isa);
    std::string level = "/";
    level += isa_name(isa);
    const auto add = [&](const char* name, Sides sides, bool maxima,
                         std::initializer_list<std::int64_t> sizes,
                         std::initializer_list<std::int64_t> threads) {
      benchmark::RegisterBenchmark((name + level).c_str(), transform, k.fwht_matrix, sides, maxima)
          ->ArgNames({"n", "threads"})
          ->ArgsProduct({sizes, threads})
          ->Iterations(kRounds)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    };
    add("fwht_rows", Sides::rows, false, {16, 128, 1024, 4096}, {1, 2});
    add("fwht_rows_maxima", Sides::rows, true, {128, 4096}, {1, 2});
    add("fwht_columns", Sides::columns, false, {16, 128, 1024, 4096}, {1, 2});
    add("fwht_both", Sides::both, false, {16, 128}, {1, 2});
    add("fwht_both", Sides::both, false, {4096}, {1});  // its columns need all rows
    for (const bool per_token : {false, true}) {
      const std::string name = (per_token ? "rotate_quantize_token" : "rotate_quantize") + level;
      benchmark::RegisterBenchmark(name.c_str(), prepare, k.rotate_quantize, per_token)
          ->ArgNames({"cols", "block"})
          ->ArgsProduct({{5120, 17408}, {128, 1024}})
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
