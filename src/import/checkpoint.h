// A checkpoint of another program as named spans: what every importer produces and all that the
// converter knows. (`import` is a keyword of C++20, so the namespace is `importer`.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/metadata.h"
#include "format/file.h"
#include "format/tokenizer_section.h"

namespace tsq::importer {

using Bytes = std::span<const std::byte>;

enum class SourceType : std::uint8_t {
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q4_k,
  q5_k,
  q6_k,
  pq2_0,  // also what older files call Q2_0, with groups of 128
  ptq1_0,
  tq1_0,
  tq2_0,
  q1_0,
  q2_0,
  stq1_0,              // the lanes of a quad are 16 weights apart
  stq1_0_consecutive,  // they are neighbours
  i2_s,                // blocks of 128 weights
  i2_s_64,
  iq1_bn,
  iq2_bn,
  t2,  // of a .tsq file, as FORMAT.md draws them
  t1,
  s34,
  packed_u8,  // BitNet in safetensors: a byte holds one column of four rows
};

// What a file does not say about its bytes.
struct AssumedLayouts {
  bool i2s_64 = false;           // I2_S as BitNet's ARM builds write it since late 2025
  bool stq_consecutive = false;  // STQ1_0 as its first writers did
};

// The heads of a gated DeltaNet as GGUF has them: the first of every group, then the second of
// every group. They are used group by group: head g * per_group + r lies in data as head r * groups
// + g.
struct TiledHeads {
  std::uint64_t first = 0;                  // the row or column where they begin
  std::uint64_t size = 0;                   // rows or columns of one
  std::uint64_t groups = 0, per_group = 0;  // 0: there are none

  explicit operator bool() const { return groups != 0; }
  // Where row or column i lies in data.
  std::uint64_t stored(std::uint64_t i) const {
    if (groups == 0 || i < first) return i;
    const std::uint64_t head = (i - first) / size;
    return first + (head % per_group * groups + head / per_group) * size + (i - first) % size;
  }
};

// Rows follow each other without gaps; each is a whole number of the type's blocks, in IQ1_BN and
// IQ2_BN behind a scale. Those of a .tsq file are padded, and of its ternary types 32 rows share a
// block. Of packed_u8, row r lies in the byte row r mod R, R = rows() / 4, in bits 2 (r div R) and
// 2 (r div R) + 1. The importer has checked that data holds exactly rows() rows.
struct Tensor {
  std::string_view name;
  SourceType type = SourceType::f32;
  std::uint32_t n_dims = 0;
  std::array<std::uint64_t, 4> dims = {1, 1, 1, 1};  // dims[0] is the input side
  std::span<const std::byte> data;
  float scale = 1;  // I2_S, packed_u8: of all weights, which have none in their blocks
  std::uint32_t rotation = format::kNoRotation;  // of the input side, index into the rotations
  std::uint64_t row_stride = 0;  // bytes from a row to the next, where that is not row_bytes

  // t2, t1, s34: of their record. The scales are its side array: one for all weights, or one for
  // each padded row; empty where they lie in data.
  std::uint32_t flags = 0;
  std::span<const float> scales;
  std::optional<format::ActivationQuant> activation_quant;  // also of packed_u8

  // Not 0: the tensor's rows are heads of so many, in which row 2j + p lies in data as row
  // j + p * head_rows / 2: stored for rotary positions on halves, used for those on pairs.
  std::uint32_t head_rows = 0;
  // Columns only of types whose blocks, or groups of a scale, are whole parts of a head.
  TiledHeads tiled_rows, tiled_cols;

  std::uint64_t cols() const { return dims[0]; }
  std::uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
};

// Everything here views the bytes of the files it was read from, which must outlive it, or `owned`.
struct Checkpoint {
  std::vector<std::shared_ptr<const void>> owned;
  Metadata metadata;
  std::vector<Tensor> tensors;              // in the order of the files, names unique
  std::vector<format::Rotation> rotations;  // each is used by at least one tensor
  // Rotated ssm_out reads value heads in their grouped order (see rotation.h).
  bool gdn_v_grouped = false;

  std::optional<format::Vocabulary> vocabulary;
  std::string no_vocabulary;  // why there is none
  // Merges that repeat a pair, or whose parts or result are not tokens.
  std::size_t dropped_merges = 0;

  // Of a .tsq file, which says itself what else follows from the metadata and from a run.
  std::optional<format::Header> header;
  std::optional<format::TokenProbe> token_probe;

  std::vector<std::string> warnings;
};

// The files stay mapped as long as the checkpoint that views them.
struct OpenedCheckpoint {
  std::vector<std::filesystem::path> paths;
  std::vector<MappedFile> maps;
  Checkpoint checkpoint;
};

}  // namespace tsq::importer
