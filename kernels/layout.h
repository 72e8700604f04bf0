// Where things lie in a ternary body (src/format/FORMAT.md draws it), for every CPU level.
// Everything is constexpr in an unnamed namespace: a file compiled for AVX-512 must not lend its
// copy of a function to the rest of the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace tsq::kernels {
namespace {

constexpr std::size_t kScaleLine = 64;            // 32 fp16, row order
constexpr std::size_t kPlane = 4 * kRowBlock;     // one dword of each of the 32 rows
constexpr std::size_t kT2Chunks = 8;              // dwords per row and group, 16 inputs each
constexpr std::size_t kT1Super = 5;               // groups of a full super-block
constexpr std::size_t kT1Chunks = 6;              // body dwords per row and group, 20 inputs each
constexpr std::size_t kT1BodyInputs = 120;        // inputs of a group in its body dwords
constexpr std::size_t kT1TailBytes = 2 * kPlane;  // the last 8 inputs of up to five groups

constexpr std::size_t kS34Chunks = 8;      // of four quads, a 4-byte dword of codes each
constexpr std::size_t kS34SignBytes = 16;  // of a chunk: a bit for each of its quads and 32 rows
constexpr std::size_t kS34NibbleBytes = kS34Chunks / 2 * kPlane;

// Scale lines before (t1: of) each group.
constexpr std::size_t scale_lines(ScaleKind kind) {
  return kind == ScaleKind::per_group ? 1 : kind == ScaleKind::per_half_group ? 2 : 0;
}

constexpr std::size_t t2_group_bytes(std::size_t lines) {
  return lines * kScaleLine + kT2Chunks * kPlane;
}
constexpr std::size_t s34_group_bytes(std::size_t lines) {
  return lines * kScaleLine + kS34NibbleBytes + kS34Chunks * kS34SignBytes;
}
constexpr std::size_t t1_super_bytes(std::size_t groups, std::size_t lines) {
  return groups == 0 ? 0 : kT1TailBytes + groups * (lines * kScaleLine + kT1Chunks * kPlane);
}

constexpr std::size_t t2_row_block_bytes(std::size_t groups, std::size_t lines) {
  return groups * t2_group_bytes(lines);
}
constexpr std::size_t t1_row_block_bytes(std::size_t groups, std::size_t lines) {
  return groups / kT1Super * t1_super_bytes(kT1Super, lines) +
         t1_super_bytes(groups % kT1Super, lines);
}
constexpr std::size_t s34_row_block_bytes(std::size_t groups, std::size_t lines) {
  return groups * s34_group_bytes(lines);
}

// The four codes (0, 1, 2) of each nibble of s34, sign 0: lane p in bits 2 p and 2 p + 1. Sign 1
// makes 2 - code of all four: kS34Negate - byte.
struct S34Table {
  alignas(16) std::uint8_t codes[16];
};
constexpr S34Table kS34Table = [] {
  S34Table t{};
  for (unsigned nibble = 0; nibble < 16; ++nibble) {
    const unsigned others[3] = {2, (nibble & 1) != 0 ? 0U : 2U, (nibble & 2) != 0 ? 0U : 2U};
    unsigned byte = 0;
    for (unsigned p = 0, i = 0; p < 4; ++p) {
      byte |= (p == nibble >> 2 ? 1U : others[i++]) << (2 * p);
    }
    t.codes[nibble] = static_cast<std::uint8_t>(byte);
  }
  return t;
}();
constexpr std::uint8_t kS34Negate = 0xAA;

constexpr std::size_t min_size(std::size_t a, std::size_t b) { return a < b ? a : b; }

// The t1 super-block that holds a group.
struct T1Super {
  std::size_t offset;  // from the row block's start
  std::size_t groups;  // 1 to 5: r scale lines, if any | 2 tail planes | 6 r body planes
};
constexpr T1Super t1_super(std::size_t groups, std::size_t group, std::size_t lines) {
  const std::size_t index = group / kT1Super;
  return {index * t1_super_bytes(kT1Super, lines), min_size(kT1Super, groups - index * kT1Super)};
}

// The sum of a part's activations, of a group's one part or of its two halves.
template <std::size_t kParts>
std::int32_t part_sum(const Q8Matrix& x, std::size_t group, std::size_t part) {
  if constexpr (kParts == 1) return x.sum[group];
  return part == 0 ? x.half_sum[group] : x.sum[group] - x.half_sum[group];
}

}  // namespace
}  // namespace tsq::kernels
