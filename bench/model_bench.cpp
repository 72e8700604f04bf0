// A whole model against what its matrices alone reach.
//
//   model_bench MODEL.tsq [--prompt=N] [--generate=N] [--rounds=N] [--benchmark_...]
//
// model/decode/LEVEL/threads:N decodes --generate [8] tokens one by one; before, between and after
// the rounds every matrix of the mapped file is multiplied by one column as many times, and the
// mapped file is read. model/prefill/... reads a prompt of --prompt [512] tokens at once; of its
// matrices the head has one column. The matrices run on rows shared out beforehand, one after the
// other without waiting: what is left to reach is all that a model does besides. Time is the time
// on the clock. The level is the one that TSQ_ISA names, or the best.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "arch/binder.h"
#include "backend/kernel_views.h"
#include "base/checked.h"
#include "bench/activations.h"
#include "bench/context.h"
#include "bench/read_bandwidth.h"
#include "bench/split.h"
#include "engine/memory_plan.h"
#include "engine/session_hooks.h"
#include "format/reader.h"
#include "kernels/dispatch.h"
#include "tsq/loader.h"
#include "tsq/session.h"

namespace {

using namespace tsq;
using bench::Clock;
using kernels::Kernels;

constexpr double kNoise = 0.1;

// Every matrix of a file that a pass multiplies by.
class Matrices {
 public:
  explicit Matrices(const format::File& file) {
    const WeightHook none;
    Binder binder(file, none);
    const bool tied = file.find("output.weight") == nullptr;
    for (const format::TensorRecord& t : file.tensors()) {
      if (t.n_dims != 2 || (!tied && t.name == "token_embd.weight")) continue;
      weights_.push_back(binder.matrix(t.name, t.rows(), t.cols()));
      bytes_ += t.body_bytes + t.scale_bytes;
      if (t.name == (tied ? "token_embd.weight" : "output.weight")) head_ = weights_.size() - 1;
    }
  }

  double bytes() const { return static_cast<double>(bytes_); }

  // Seconds of the slowest thread for `times` passes over all of them with n columns.
  double seconds(const Kernels& k, int threads, std::size_t n, std::size_t times) {
    for (auto t = outputs_.size(); t < static_cast<std::size_t>(threads); ++t)
      outputs_.emplace_back();
    for (Buffer<float>& y : outputs_)
      if (y.size() < n * most_rows()) y = Buffer<float>(n * most_rows());
    inputs(k, n);
    inputs(k, 1);
    return bench::slowest_seconds(threads, Clock::wall, [&](int t) {
      float* const y = outputs_[static_cast<std::size_t>(t)].data();
      for (std::size_t i = 0; i < times * weights_.size(); ++i) {
        const std::size_t w = i % weights_.size();
        multiply(k, weights_[w], bench::rows_of(weights_[w].shape.rows, t, threads),
                 inputs_.at(w == head_ ? 1 : n), y);
      }
    });
  }

 private:
  struct Input {
    bench::Q8Columns q8;
    Buffer<float> f32;
  };
  using Inputs = std::map<std::size_t, Input>;  // by their padded width

  static std::size_t padded_cols(const Weight& w) {
    return format::padded_cols(w.shape.encoding, w.shape.cols);
  }

  std::size_t most_rows() const {
    std::size_t most = 0;
    for (const Weight& w : weights_) most = std::max<std::size_t>(most, w.shape.rows);
    return most;
  }

  // Makes what every matrix needs of n columns.
  void inputs(const Kernels& k, std::size_t n) {
    Inputs& made = inputs_[n];
    for (const Weight& w : weights_) {
      const std::size_t cols = padded_cols(w);
      if (made.contains(cols)) continue;
      Input input{{n, round_up(cols, kernels::kGroup), k}, Buffer<float>(n * cols)};
      for (float& x : input.f32.span()) x = 0.5f;
      made.emplace(cols, std::move(input));
    }
  }

  static void multiply(const Kernels& k, const Weight& w, kernels::RowRange rows,
                       const Inputs& inputs, float* y) {
    if (rows.first == rows.last) return;
    const std::size_t cols = padded_cols(w);
    const Input& x = inputs.at(cols);
    const kernels::Outputs to{y, w.shape.rows};
    if (!format::is_ternary(w.shape.encoding)) {
      const std::size_t n = x.f32.size() / cols;
      k.dense_gemm(dense_view(w), rows, {x.f32.data(), cols, n}, to);
      return;
    }
    const auto gemm = w.shape.encoding == format::Encoding::t2   ? k.t2_gemm
                      : w.shape.encoding == format::Encoding::t1 ? k.t1_gemm
                                                                 : k.s34_gemm;
    gemm(ternary_view(w), rows, x.q8.view(w.activation_quant == format::ActivationQuant::per_token),
         to);
  }

  std::vector<Weight> weights_;
  std::size_t head_ = static_cast<std::size_t>(-1);
  std::uint64_t bytes_ = 0;
  std::map<std::size_t, Inputs> inputs_;  // by the number of columns
  std::vector<Buffer<float>> outputs_;    // one a thread: they do not wait for each other
};

struct Setup {
  const Model& model;
  const format::File& file;
  Matrices& matrices;
  std::size_t prompt = 512, generate = 8;
  int rounds = 5;
};

template <class T>
T value_of(Result<T> result) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "model_bench: %s\n", result.error().message().c_str());
  std::exit(1);
}

// `columns` tokens at a time, `times` times.
void measure(benchmark::State& state, const Setup& setup, int threads, std::size_t columns,
             std::size_t times) {
  const Kernels& k = *kernels::chosen().kernels;
  const bool decode = columns == 1;
  const std::size_t tokens = columns * times;
  SessionHooks hooks;
  hooks.kernels = &k;
  hooks.threads = threads;
  const SessionOptions options{.context = static_cast<std::int32_t>(tokens)};
  Session session = value_of(create_session(setup.model, options, hooks));
  std::vector<Token> prompt(columns);
  for (std::size_t i = 0; i < columns; ++i)
    prompt[i] = static_cast<Token>(i * 7919 % static_cast<std::size_t>(setup.model.vocab_size()));
  const auto whole = [&] {
    if (const auto done = session.rewind(0); !done) std::abort();
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < times; ++i) value_of(session.append(prompt));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };

  bench::Ceiling alone(1);
  bench::ReadCeiling read(threads, Clock::wall);
  const auto measure_ceilings = [&] {
    const double s = setup.matrices.seconds(k, threads, columns, times);
    alone.add(std::array{static_cast<double>(tokens) / s});
    if (decode) read.measure(setup.file.data());
  };
  whole();  // the first passes take memory and map pages
  setup.matrices.seconds(k, threads, columns, times);
  std::vector<double> speeds, gb_s;
  measure_ceilings();
  for ([[maybe_unused]] auto _ : state) {
    const double s = whole();
    state.SetIterationTime(s);
    speeds.push_back(static_cast<double>(tokens) / s);
    gb_s.push_back(speeds.back() * setup.matrices.bytes() / 1e9);
    measure_ceilings();
  }
  const bench::Ceiling::Share of_matrices = alone.share(speeds);
  state.counters["tokens/s"] = bench::median(speeds);
  state.counters["matrices_tokens/s"] = alone.speed();
  state.counters["of_matrices"] = of_matrices.median;
  state.counters["of_matrices_best"] = of_matrices.best;
  double moved = alone.moved();
  if (decode) {
    const bench::Ceiling::Share of_read = read.share(gb_s);
    state.counters["GB/s"] = bench::median(gb_s);
    state.counters["read_GB/s"] = read.speed();
    state.counters["of_read_bandwidth"] = of_read.median;
    state.counters["of_read_bandwidth_best"] = of_read.best;
    moved = std::max(moved, read.moved());
  }
  state.counters["ceiling_moved"] = moved;
  state.counters["noisy"] = moved > kNoise ? 1 : 0;
  state.SetLabel(std::string(setup.model.name()));
}

void add(const Setup& setup) {
  const std::string level(kernels::isa_name(kernels::chosen().kernels->isa));
  const auto add_one = [&](const std::string& name, std::size_t columns, std::size_t times) {
    for (const int threads : bench::thread_counts()) {
      const std::string full =
          "model/" + name + "/" + level + "/threads:" + std::to_string(threads);
      benchmark::RegisterBenchmark(full.c_str(), measure, std::cref(setup), threads, columns, times)
          ->Iterations(setup.rounds)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  };
  add_one("decode", 1, setup.generate);
  add_one("prefill", setup.prompt, 1);
}

// "--name=N" with 1 <= N <= most.
bool take(std::string_view argument, std::string_view name, long most, auto& value) {
  if (!argument.starts_with(name)) return false;
  char* end = nullptr;
  const long n = std::strtol(argument.data() + name.size(), &end, 10);
  if (*end != '\0' || n < 1 || n > most) return false;
  value = static_cast<std::remove_reference_t<decltype(value)>>(n);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bench::add_context(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: model_bench MODEL.tsq [--prompt=N] [--generate=N] [--rounds=N]\n");
    return 2;
  }
  const kernels::Choice& choice = kernels::chosen();
  if (choice.kernels == nullptr) {
    std::fprintf(stderr, "model_bench: %s\n", choice.error.c_str());
    return 1;
  }
  const Model model = value_of(Loader().load(argv[1]));
  const format::OpenedFile opened = value_of(format::open(argv[1]));
  Matrices matrices(opened.file);
  Setup setup{model, opened.file, matrices};
  for (int i = 2; i < argc; ++i) {
    if (take(argv[i], "--prompt=", kMaxBatch, setup.prompt) ||
        take(argv[i], "--generate=", 1 << 20, setup.generate) ||
        take(argv[i], "--rounds=", 1000, setup.rounds))
      continue;
    std::fprintf(stderr,
                 "model_bench: '%s': expected --prompt=N (to %zu), --generate=N or --rounds=N\n",
                 argv[i], kMaxBatch);
    return 2;
  }
  add(setup);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
