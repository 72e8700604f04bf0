// Decode (1 column), small batches and prefill of the ternary kernels, at every CPU level but
// scalar, which is a reference.
//
// Names: decode/ENCODING/LEVEL/SHAPE/threads:N, batch/.../columns:N/threads:N, prefill/...; a shape
// is outputs x inputs. The usual set takes a few minutes a level on two cores; --full has every
// shape for everything, and the large head's prefill alone takes minutes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "bench/context.h"
#include "bench/split.h"
#include "bench/ternary_bench.h"
#include "kernels/dispatch.h"

namespace {

using namespace tsq::bench;
namespace kernels = tsq::kernels;

constexpr Shape kShapes[] = {
    {4096, 4096}, {5120, 17408}, {17408, 5120}, {2560, 6912}, {248320, 5120}};
constexpr Shape kSquare = kShapes[0], kLarge = kShapes[2];

// A use of the kernels, and the shapes that the usual set has of it.
struct Use {
  const char* name;
  std::size_t columns;
  std::vector<Shape> shapes;
};
const Use kUses[] = {{"decode", 1, {kSquare, kLarge}},
                     {"batch", 2, {kLarge}},
                     {"batch", 4, {kLarge}},
                     {"batch", 8, {kLarge}},
                     {"prefill", 512, {kSquare, kLarge}}};

void add(const Use& use, const Case& c) {
  std::string name = std::string(use.name) + "/" + c.form.name + "/" +
                     std::string(kernels::isa_name(c.kernels->isa)) + "/" +
                     std::to_string(c.shape.rows) + "x" + std::to_string(c.shape.cols);
  if (std::string_view(use.name) == "batch") name += "/columns:" + std::to_string(c.columns);
  name += "/threads:" + std::to_string(c.threads);
  benchmark::RegisterBenchmark(name.c_str(), measure, c)
      ->Iterations(kRounds)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

void add_all(bool full) {
  for (const kernels::Isa isa : kernels::supported_isas()) {
    if (isa == kernels::Isa::scalar) continue;
    for (const Use& use : kUses) {
      const std::span<const Shape> shapes = full ? std::span(kShapes) : std::span(use.shapes);
      for (const Form& form : forms()) {
        if (kernels::table(isa)->*form.gemm == nullptr) continue;
        if (form.one_column && use.columns > 1) continue;
        for (const Shape& shape : shapes) {
          for (const int threads : thread_counts())
            add(use, {form, kernels::table(isa), shape, use.columns, threads});
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  add_context(argc, argv);
  benchmark::Initialize(&argc, argv);
  bool full = false;
  argc = static_cast<int>(std::remove_if(argv + 1, argv + argc,
                                         [&](std::string_view argument) {
                                           if (argument != "--full") return false;
                                           return full = true;
                                         }) -
                          argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  add_all(full);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
