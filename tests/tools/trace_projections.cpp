// trace_projections MODEL.tsq FOLDER: runs nine tokens on the int8 path and writes what every
// ternary matrix was given and gave, as tests/reference/int8_oracle.py reads it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/session_hooks.h"
#include "tsq/loader.h"

namespace {

using tsq::ProjectionTrace;

// The row's weights as -1, 0, 1: its values without their scale.
std::vector<std::int8_t> codes_of(const tsq::Weight& w) {
  namespace format = tsq::format;
  const std::size_t rows = w.shape.rows, cols = w.shape.cols;
  const std::size_t padded = format::padded_cols(w.shape.encoding, cols);
  const std::size_t block_bytes = format::row_block_bytes(w.shape);
  std::vector<std::uint8_t> block(format::kRowBlock * padded);
  std::vector<std::uint16_t> scales(format::kRowBlock * padded / format::kGroup *
                                    format::scale_lines(w.shape));
  std::vector<std::int8_t> codes;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t in_block = row % format::kRowBlock;
    if (in_block == 0) {
      format::unpack_row_block(w.shape, w.body + row / format::kRowBlock * block_bytes,
                               block.data(), scales.data());
    }
    for (std::size_t i = 0; i < cols; ++i) {
      codes.push_back(static_cast<std::int8_t>(block[in_block * padded + i] - 1));
    }
  }
  return codes;
}

class TraceWriter {
 public:
  explicit TraceWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void write(const ProjectionTrace& trace) {
    if (trace.q.empty()) return;  // a dense matrix
    const std::size_t rows = trace.weight->shape.rows, cols = trace.weight->shape.cols;
    const std::string stem = (folder_ / std::to_string(count_++)).string();
    const std::size_t group = tsq::format::scale_lines(trace.weight->shape) == 2 ? 64 : 128;
    std::ofstream(stem + ".json") << "{\"name\": \"" << trace.weight->name
                                  << "\", \"rows\": " << rows << ", \"cols\": " << cols
                                  << ", \"n_columns\": " << trace.n << ", \"group\": " << group
                                  << ", \"per_token\": "
                                  << (trace.token_scale.empty() ? "false" : "true") << "}\n";
    const auto codes = codes_of(*trace.weight);
    std::vector<std::int32_t> dots;
    for (std::size_t t = 0; t < trace.n; ++t) {
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t g = 0; g < trace.padded_cols; g += group) {
          std::int32_t dot = 0;
          for (std::size_t i = g; i < std::min(g + group, cols); ++i) {
            dot += codes[r * cols + i] * trace.q[t * trace.padded_cols + i];
          }
          dots.push_back(dot);
        }
      }
    }
    put(stem + ".x.f32", trace.rotated);
    put(stem + ".q.i8", trace.q);
    put(stem + ".xscale.f32", trace.scale);
    put(stem + ".codes.i8", std::span<const std::int8_t>(codes));
    put(stem + ".dot.i32", std::span<const std::int32_t>(dots));
    put(stem + ".y.f32", trace.y);
  }

  std::size_t count() const { return count_; }

 private:
  template <class T>
  static void put(const std::string& path, std::span<const T> values) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
  }

  std::filesystem::path folder_;
  std::size_t count_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: trace_projections MODEL.tsq FOLDER\n", stderr);
    return 2;
  }
  std::filesystem::create_directories(argv[2]);
  TraceWriter writer(argv[2]);
  const auto fail = [](const tsq::Error& error) {
    std::fprintf(stderr, "trace_projections: %s\n", error.message().c_str());
    return 1;
  };
  const auto model = tsq::Loader().load(argv[1]);
  if (!model) return fail(model.error());
  tsq::SessionHooks hooks;
  hooks.observer = [&](const ProjectionTrace& trace) { writer.write(trace); };
  auto session = tsq::create_session(*model, {}, hooks);
  if (!session) return fail(session.error());
  const std::vector<tsq::Token> tokens = {5, 17, 101, 3, 260, 44, 199, 12, 300};
  const auto logits = session->append(tokens);
  if (!logits) return fail(logits.error());
  std::printf("%zu projections written\n", writer.count());
  return writer.count() == 0 ? 1 : 0;
}
