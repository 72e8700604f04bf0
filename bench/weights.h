// Ternary weights to stream: more of them than any cache holds.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/kernels.h"

namespace tsq::bench {

struct Shape {
  std::size_t rows, cols;  // outputs, inputs
};

// An encoding under one kind of scales, and the kernel that multiplies by it.
struct Form {
  const char* name;
  kernels::TernaryGemmFn* kernels::Kernels::*gemm;
  std::size_t (*row_block_bytes)(std::size_t groups, std::size_t lines);
  kernels::ScaleKind scale_kind;
  bool per_token = false;   // how its activations are quantised
  bool one_column = false;  // a form made in memory (kernels/repack.h); some levels have no kernel
};
std::span<const Form> forms();

// The arena that all weights lie in: at least 1.5 GiB of bytes that are sound in every encoding, on
// huge pages where the system grants them.
std::span<const std::byte> arena();
// How much of it lies on huge pages, in bytes; 0 where the system does not say.
std::size_t arena_huge_bytes();

// A matrix many times over, each time with other weights: 1 GiB of them or more.
class Copies {
 public:
  Copies(const Form& form, Shape shape);

  std::size_t size() const { return size_; }
  kernels::TernaryMatrix operator[](std::size_t copy) const;
  std::size_t bytes() const { return bytes_; }  // of one

 private:
  Form form_;
  Shape shape_;
  std::size_t bytes_, size_;
};

}  // namespace tsq::bench
