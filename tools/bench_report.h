// What `tsq bench` measured, as text: llama-bench's columns, and what the memory gave.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tsq::tool {

struct BenchRow {
  std::string model, path;
  std::uint64_t model_bytes = 0, parameters = 0;
  std::string cpu, activations;
  int threads = 0;
  std::int32_t prompt = 0, generate = 0, depth = 0;  // one of the first two is 0
  std::vector<double> seconds;                       // of each repetition
  // Of decoding alone.
  struct Memory {
    std::uint64_t bytes_per_token = 0;
    double read_speed = 0;  // GB/s
    double share = 0;       // of the read speed
  };
  std::optional<Memory> memory;

  std::string test() const;            // "pp512", "tg128 @ d4096"
  std::vector<double> speeds() const;  // tokens/s of each repetition
};

enum class BenchFormat : std::uint8_t { markdown, csv, json };

// The text of a table: its beginning, a row (the first of them or a later one), its end.
std::string bench_begin(BenchFormat format);
std::string bench_row(BenchFormat format, const BenchRow& row, bool first);
std::string bench_end(BenchFormat format);

}  // namespace tsq::tool
