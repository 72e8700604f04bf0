// Where things lie in a ternary body (src/format/FORMAT.md draws it), for every CPU level.
// Everything is constexpr in an unnamed namespace: a file compiled for AVX-512 must not lend its
// copy of a function to the rest of the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace tsq::kernels {
namespace {

constexpr std::size_t kScaleLine = 64;         // 32 fp16, row order
constexpr std::size_t kPlane = 4 * kRowBlock;  // one dword of each of the 32 rows
constexpr std::size_t kT2Chunks = 8;           // dwords per row and group, 16 inputs each
constexpr std::size_t kT2GroupBytes = kScaleLine + kT2Chunks * kPlane;
constexpr std::size_t kT1Super = 5;               // groups of a full super-block
constexpr std::size_t kT1Chunks = 6;              // body dwords per row and group, 20 inputs each
constexpr std::size_t kT1BodyInputs = 120;        // inputs of a group in its body dwords
constexpr std::size_t kT1TailBytes = 2 * kPlane;  // the last 8 inputs of up to five groups

constexpr std::size_t t1_super_bytes(std::size_t groups) {
  return groups == 0 ? 0 : kT1TailBytes + groups * (kScaleLine + kT1Chunks * kPlane);
}

constexpr std::size_t t2_row_block_bytes(std::size_t groups) { return groups * kT2GroupBytes; }
constexpr std::size_t t1_row_block_bytes(std::size_t groups) {
  return groups / kT1Super * t1_super_bytes(kT1Super) + t1_super_bytes(groups % kT1Super);
}

constexpr std::size_t min_size(std::size_t a, std::size_t b) { return a < b ? a : b; }

// The t1 super-block that holds a group.
struct T1Super {
  std::size_t offset;  // from the row block's start
  std::size_t groups;  // 1 to 5: r scale lines | 2 tail planes | 6 r body planes
};
constexpr T1Super t1_super(std::size_t groups, std::size_t group) {
  const std::size_t index = group / kT1Super;
  return {index * t1_super_bytes(kT1Super), min_size(kT1Super, groups - index * kT1Super)};
}

}  // namespace
}  // namespace tsq::kernels
