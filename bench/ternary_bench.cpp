#include "bench/ternary_bench.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "bench/activations.h"
#include "bench/int8_peak.h"
#include "bench/read_bandwidth.h"
#include "bench/split.h"
#include "kernels/dispatch.h"

namespace tsq::bench {
namespace {

using namespace tsq::kernels;

// The CPU time of the slowest thread, for kernels and ceilings alike: on an idle machine it is the
// time on the clock, and on a busy one it leaves out the turns of others.
constexpr Clock kClock = Clock::cpu;
constexpr double kNoise = 0.1;

// A matrix that takes long is multiplied piece by piece, with the ceilings between: some machines
// change their speed within a tenth of a second.
constexpr std::size_t kPieces = 8;

void count(benchmark::State& state, const char* name, const Ceiling& ceiling,
           std::span<const double> speeds, std::size_t pieces) {
  const Ceiling::Share share = ceiling.share(speeds, pieces);
  state.counters[name] = share.median;
  state.counters[std::string(name) + "_best"] = share.best;
}

class Kernel {
 public:
  explicit Kernel(const Case& c)
      : case_(c),
        gemm_(c.kernels->*c.form.gemm),
        copies_(c.form, c.shape),
        x_(c.columns, c.shape.cols, *c.kernels),
        y_(c.columns * c.shape.rows) {}

  const Copies& copies() const { return copies_; }

  // For piece `piece` of `pieces` of the rows of copies [first, last) of the weights.
  double seconds(std::size_t first, std::size_t last, std::size_t piece, std::size_t pieces) {
    const RowRange part =
        rows_of(case_.shape.rows, static_cast<int>(piece), static_cast<int>(pieces));
    const double s = slowest_seconds(case_.threads, kClock, [&](int t) {
      const RowRange own = rows_of(part.last - part.first, t, case_.threads);
      const RowRange rows = {part.first + own.first, part.first + own.last};
      if (rows.first == rows.last) return;
      for (std::size_t i = first; i < last; ++i)
        gemm_(copies_[i], rows, x_.view(case_.form.per_token), {y_.data(), case_.shape.rows});
    });
    benchmark::DoNotOptimize(y_.data());
    return s;
  }

 private:
  const Case& case_;
  TernaryGemmFn* gemm_;
  Copies copies_;
  Q8Columns x_;
  Buffer<float> y_;
};

// Windows of the arena, another one each time: close in time, and far more than the caches.
class Window {
 public:
  std::span<const std::byte> next() {
    const std::size_t bytes = arena().size() / kWindows;
    return arena().subspan(at_++ % kWindows * bytes, bytes);
  }

 private:
  static constexpr std::size_t kWindows = 6;
  std::size_t at_ = 0;
};

}  // namespace

void measure(benchmark::State& state, const Case& c) {
  Kernel kernel(c);
  const bool streamed = c.columns <= kMostStreamed;
  const std::size_t copies = streamed ? kernel.copies().size() : 1;
  const auto of_round = [&](double of_copy) { return of_copy * static_cast<double>(copies); };
  const double bytes = of_round(static_cast<double>(kernel.copies().bytes()));
  const double weights = of_round(static_cast<double>(c.shape.rows * c.shape.cols));
  const double operations = 2 * weights * static_cast<double>(c.columns);

  ReadCeiling read(c.threads, kClock);
  Int8Peak peak(*int8_dot(isa_name(c.kernels->isa)), c.threads, kClock);
  Window window;
  const auto measure_ceilings = [&] {
    if (streamed) read.measure(window.next());
    peak.measure();
  };
  kernel.seconds(0, 1, 0, 1);  // makes the arena, takes the memory of the outputs
  const std::size_t pieces = streamed ? 1 : kPieces;
  std::vector<double> gb_s, gop_s, rounds_s;  // speeds of pieces, seconds of rounds
  measure_ceilings();
  for ([[maybe_unused]] auto _ : state) {
    const std::size_t first = streamed ? 0 : rounds_s.size() % kernel.copies().size();
    double s = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const double of_piece = kernel.seconds(first, first + copies, piece, pieces);
      const double n = of_piece * static_cast<double>(pieces) * 1e9;
      gb_s.push_back(bytes / n);
      gop_s.push_back(operations / n);
      measure_ceilings();
      s += of_piece;
    }
    state.SetIterationTime(s);
    rounds_s.push_back(s);
  }
  const double giga = median(rounds_s) * 1e9;
  state.counters["Gweights/s"] = weights / giga;
  state.counters["GOP/s"] = operations / giga;
  state.counters["int8_peak_GOP/s"] = peak.speed();
  count(state, "of_int8_peak", peak, gop_s, pieces);
  double moved = peak.moved();
  if (streamed) {
    state.counters["GB/s"] = bytes / giga;
    state.counters["read_GB/s"] = read.speed();
    count(state, "of_read_bandwidth", read, gb_s, pieces);
    moved = std::max(moved, read.moved());
  }
  state.counters["huge_pages"] =
      static_cast<double>(arena_huge_bytes()) / static_cast<double>(arena().size());
  state.counters["ceiling_moved"] = moved;
  state.counters["noisy"] = moved > kNoise ? 1 : 0;
}

}  // namespace tsq::bench
