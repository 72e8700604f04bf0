// A safetensors file: u64 length of a JSON header, the header, the tensors' bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "import/checkpoint.h"

namespace tsq::importer {

struct SafeTensor {
  std::string_view name;
  std::string_view dtype;                   // as the format calls it: "BF16"
  std::uint32_t n_dims = 0;                 // 0: one value
  std::array<std::uint64_t, 8> shape = {};  // of its dims, outermost first; any may be 0
  std::span<const std::byte> data;          // at any alignment

  std::uint64_t values() const {
    std::uint64_t n = 1;
    for (std::uint32_t i = 0; i < n_dims; ++i) n *= shape[i];
    return n;
  }
};

struct Safetensors {
  JsonDocument header;              // holds the names that are not views of the file
  std::vector<SafeTensor> tensors;  // in the order of their data, names unique
};

// Whatever the bytes, the answer is a list whose every span is readable, or an Error: damaged
// where the file is cut or contradicts itself (the ranges have to cover the data without a gap or
// an overlap, and to be as long as shape and dtype say); unsupported for a dtype that the format
// did not have by 2026, more than 8 dims, or a header over 100 MB.
Result<Safetensors> parse_safetensors(std::span<const std::byte> file);

}  // namespace tsq::importer
