// Attention of one layer on one thread, f16 cache: nanoseconds for each position that a token sees
// (all heads together), which longer contexts should not make larger; and in multiply-adds.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/dispatch.h"

namespace {

using namespace tsq::kernels;

struct Shape {
  std::size_t heads, kv_heads, head_dim;
};

// n_tokens end a context of that many positions; they pass in tiles of `tile` tokens.
void attend(benchmark::State& state, AttentionFn* attention, Shape shape, std::size_t n_tokens,
            std::size_t tile) {
  const auto context = static_cast<std::size_t>(state.range(0));
  const auto [heads, kv_heads, head_dim] = shape;
  const std::size_t group = heads / kv_heads, width = heads * head_dim;
  const std::size_t n = kv_heads * context * head_dim;
  std::vector<std::uint16_t> keys(n), values(n);
  for (std::size_t i = 0; i < n; ++i) {  // 1 to 2, of either sign
    const auto bits = static_cast<unsigned>(i * 2654435761U >> 16);
    keys[i] = static_cast<std::uint16_t>(0x3C00U | (bits & 0x83FFU));
    values[i] = static_cast<std::uint16_t>(0x3C00U | (bits * 31 & 0x83FFU));
  }
  const std::vector<float> q(n_tokens * width, 0.01F);
  std::vector<float> out(n_tokens * width);
  double seen = 0;  // positions, over the tokens
  for (std::size_t t = 0; t < n_tokens; ++t) seen += static_cast<double>(context - t);
  for (auto _ : state) {
    for (std::size_t t = 0; t < n_tokens; t += tile) {
      for (std::size_t kv = 0; kv < kv_heads; ++kv) {
        attention({.q = q.data() + t * width + kv * group * head_dim,
                   .q_stride = width,
                   .keys = keys.data() + kv * context * head_dim,
                   .values = values.data() + kv * context * head_dim,
                   .stride = head_dim,
                   .length = context - n_tokens + t + 1,
                   .n_tokens = std::min(tile, n_tokens - t),
                   .n_heads = group,
                   .head_dim = head_dim,
                   .scale = 0.1F,
                   .out = out.data() + t * width + kv * group * head_dim,
                   .out_stride = width});
      }
    }
    benchmark::DoNotOptimize(out.data());
  }
  const double passes = static_cast<double>(state.iterations()) * seen;
  state.counters["per_position"] = {passes,
                                    benchmark::Counter::kIsRate | benchmark::Counter::kInvert};
  state.counters["fma"] = {passes * static_cast<double>(2 * width), benchmark::Counter::kIsRate};
}

}  // namespace

int main(int argc, char** argv) {
  for (const Isa isa : supported_isas()) {
    if (isa == Isa::scalar) continue;  // a reference: nothing to measure
    for (const Shape shape : {Shape{24, 4, 256}, {32, 8, 128}, {8, 8, 64}}) {
      for (const bool prefill : {false, true}) {
        const std::string name = std::string(prefill ? "prefill_64/" : "decode/") +
                                 std::to_string(shape.heads) + "_" +
                                 std::to_string(shape.kv_heads) + "_" +
                                 std::to_string(shape.head_dim) + "/" + std::string(isa_name(isa));
        benchmark::RegisterBenchmark(name.c_str(), attend, table(isa)->attention_f16, shape,
                                     prefill ? 64 : 1, 16)
            ->ArgName("context")
            ->Arg(512)
            ->Arg(4096)
            ->Arg(16384);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
