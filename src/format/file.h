// What a .tsq file holds, as values. FORMAT.md says where each of these lies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/encodings.h"

namespace tsq::format {

enum class QuantType : std::uint32_t {
  dense = 0,
  ternary_hadamard = 1,
  ternary = 2,
  sparse_ternary = 3,
  mixed = 4,
};

struct Header {
  std::uint32_t hidden_size = 0;
  std::uint32_t num_layers = 0;
  std::uint32_t vocab_size = 0;
  QuantType quant_type = QuantType::dense;
  std::uint32_t hadamard_order = 0;  // log2 of the block of the model's main rotation; 0 none
  std::string model_name;            // at most 32 bytes of UTF-8
  std::uint64_t critical_features = 0;
  std::uint64_t optional_features = 0;
};

inline constexpr std::uint32_t kNoRotation = 0xffffffff;

// y = H (s * x) per block of `block` inputs, H orthonormal and symmetric; see FORMAT.md.
struct Rotation {
  std::uint32_t block = 1;           // a power of two that divides width
  std::uint32_t width = 0;           // length of the vectors it applies to
  std::vector<std::uint32_t> signs;  // bit i mod 32 of word i / 32 set: s_i = -1; empty: all +1
};

struct TensorRecord {
  std::string name;
  Encoding encoding = Encoding::f32;
  StorageEncoding storage = StorageEncoding::plain;
  std::uint32_t flags = 0;
  std::uint32_t n_dims = 0;
  std::array<std::uint64_t, 4> dims = {1, 1, 1, 1};  // GGUF order: dims[0] is the input side
  std::uint32_t group_size = 0;
  ScaleKind scale_kind = ScaleKind::none;
  ActivationQuant activation_quant = ActivationQuant::none;
  std::uint32_t input_rotation = kNoRotation;  // index into the rotations
  std::uint32_t output_rotation = kNoRotation;
  std::uint64_t zero_count = 0;                   // ternary: zeros among the named weights
  std::uint64_t body_offset = 0, body_bytes = 0;  // from the start of the data section
  std::uint64_t scale_offset = 0, scale_bytes = 0;
  std::uint64_t digest = 0;  // XXH3-64 of body and scales
  std::uint64_t residual_offset = 0, residual_bytes = 0;

  std::uint64_t cols() const { return dims[0]; }
  std::uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }  // checked by the reader
  Shape shape() const { return {encoding, flags, scale_kind, rows(), cols()}; }
};

// Values of W, the weight before its rotation, at chosen places: computed from the definition of H.
struct RotationProbe {
  // What keeps opening short: of one rotation, and inputs of the blocks of all probes of a file.
  static constexpr std::uint32_t kMaxOfRotation = 16;
  static constexpr std::uint64_t kMaxInputs = std::uint64_t{1} << 26;
  std::uint32_t rotation = 0;  // both are indices into the file's records
  std::uint32_t tensor = 0;
  std::uint64_t row = 0, col = 0;
  double value = 0;
};

enum class TokenProbeState : std::uint32_t {
  empty = 0,  // the slot of a file that is still being made
  present = 1,
  not_asked = 2,     // --no-probe
  no_graph = 3,      // tsq has no graph for the architecture
  no_tokenizer = 4,  // or none for its tokenizer
};

struct TokenProbe {
  static constexpr std::size_t kMaxTokens = 32, kMaxGreedy = 16;
  TokenProbeState state = TokenProbeState::empty;
  std::vector<std::uint32_t> tokens;  // at most kMaxTokens
  double mean_nll = 0;                // over tokens 1 .. n-1, natural log
  std::vector<std::uint32_t> greedy;  // at most kMaxGreedy, after the tokens
};

}  // namespace tsq::format
