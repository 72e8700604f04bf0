// Every kernel's signature and contract, once; struct Kernels is one CPU level's table of them.
//
// A result is the same bits at every level (src/format/FORMAT.md has the layouts, the order of
// every sum is said here): `fma` stands for one fused multiply-add rounded once; everything else
// rounds after each operation. Pointers never overlap unless a contract says "in place".
// Sizes are elements unless a name says _bytes. No kernel allocates, throws or keeps a pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tsq::kernels {

inline constexpr std::size_t kGroup = 128;    // inputs that share a scale and an activation scale
inline constexpr std::size_t kRowBlock = 32;  // rows that lie interleaved in a ternary body
inline constexpr std::size_t kLanes = 16;     // lanes of a float sum
inline constexpr std::size_t kSoftmaxBlock = 64;

// What a weight scale rules, and where it lies.
enum class ScaleKind : std::uint8_t {
  per_group,       // fp16, a line of the body before each group
  per_half_group,  // t2 only: two lines, of inputs 0 to 63 and of inputs 64 to 127
  per_row,         // f32, an array beside the body; the body has no lines
  per_tensor,      // f32, one
};

// Ternary weights in the R32 layout (t2, t1 or s34: the kernel knows which).
struct TernaryMatrix {
  const std::byte* body;  // at a 64-byte boundary; whole row blocks of 32 rows
  std::size_t rows;       // outputs; the last block is padded to 32 rows, never written to y
  std::size_t cols;       // inputs, a multiple of kGroup (padded)
  bool stride16 = false;  // s34: a quad's inputs lie 16 apart, not side by side
  ScaleKind scale_kind = ScaleKind::per_group;
  const float* scales = nullptr;  // per row: one for each row of whole row blocks; per tensor: one
};

// n columns of activations quantised to int8; column c starts at q + c * cols, scale + c * groups,
// sum + c * groups, half_sum + c * groups with groups = cols / kGroup.
struct Q8Matrix {
  const std::int8_t* q;     // |q| <= 127
  const float* scale;       // one a group; per token all of a column's are 1 / token_scale
  const std::int32_t* sum;  // one a group: the sum of its q
  std::size_t n;
  std::size_t cols;                        // a multiple of kGroup
  const std::int32_t* half_sum = nullptr;  // of a group's first 64 q: for scales per half group
  const float* token_scale = nullptr;      // one a column: quantised per token; null: per group
  // The same q as Kernels::interleave made it, or null: kernels that want it so make copies then.
  const std::int8_t* tiles = nullptr;
  const std::int8_t* tables = nullptr;  // of one column, by S34TablesFn: for s34_lut_gemv
};

// n columns of f32 activations; column c starts at data + c * stride. A kernel reads each column up
// to the padded width of the weights; the padding holds zeros.
struct F32Matrix {
  const float* data;
  std::size_t stride;
  std::size_t n;
};

// Where outputs go: y of row r, column c is data[c * stride + r].
struct Outputs {
  float* data;
  std::size_t stride;
};

// Row-major dense weights. q8: blocks of 32 inputs, fp16 d | 32 int8: value code * d. q4: fp16 d |
// 16 bytes, low nibbles inputs 0-15, high nibbles 16-31: value (code - 8) * d. q4m: fp16 d, fp16 m
// | 16 bytes: value code * d + m.
enum class DenseType : std::uint8_t { f32, f16, bf16, q8, q4, q4m };

struct DenseMatrix {
  DenseType type;
  const std::byte* data;
  std::size_t row_bytes;
  std::size_t rows;
  std::size_t cols;  // a multiple of 32 (padded)
};

// Rows [first, last) of a matrix. For ternary kernels `first` is a multiple of kRowBlock, and
// `last` is one too or equals rows.
struct RowRange {
  std::size_t first;
  std::size_t last;
};

// Columns in the order that a level's ternary kernels read many of them in: each tile of
// Kernels::tile_columns columns as [input / 4][column][4]; columns that fill no tile are left out.
// to: n * cols bytes, of which tile t has those from t * tile_columns * cols on.
using InterleaveFn = void(const std::int8_t* q, std::size_t n, std::size_t cols,
                          std::int8_t* to) noexcept;

// y = W x. Per group (or half group, where each has a scale) the dot is an exact int32; then per
// output, groups ascending from 0: acc = fma(float(dot), float(w_scale) * x_scale, acc), starting
// at +0. But scales per row or tensor and activations per token: the dot of the whole row is one
// int32 and y = float(dot) * (w_scale / token_scale); cols is at most 2^24, 127 * 2^24 < 2^31.
using TernaryGemmFn = void(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x,
                           Outputs y) noexcept;

// What s34_lut_gemv looks up of a column: 8 bytes for each of its q, at a 64-byte boundary; how
// they lie is the level's own. count is a multiple of kGroup.
using S34TablesFn = void(const std::int8_t* q, std::size_t count, bool stride16,
                         std::int8_t* tables) noexcept;

// y = W x with f32 activations. Per output, per group or half group (ascending): dot =
// fma(float(w), x, dot) over the group's inputs in ascending order from +0, wherever an encoding
// keeps them (s34 with either stride too); then acc = fma(dot, w_scale, acc), whatever the scale
// rules.
using TernaryGemmF32Fn = void(const TernaryMatrix& w, RowRange rows, const F32Matrix& x,
                              Outputs y) noexcept;

// The row's values, weight * scale, cols of them. The padding columns of s34 hold weights, which
// only ever meet activations of 0: they come out as they are.
using TernaryRowFn = void(const TernaryMatrix& w, std::size_t row, float* values) noexcept;

// y = W x for dense rows: input i goes to lane i mod 16 by lane = fma(value, x, lane), ascending,
// from +0; then reduce_lanes' tree: 16 lanes fold as l[i] += l[i + 8], then + 4, + 2, + 1.
using DenseGemmFn = void(const DenseMatrix& w, RowRange rows, const F32Matrix& x,
                         Outputs y) noexcept;
using DenseRowFn = void(const DenseMatrix& w, std::size_t row, float* values) noexcept;

// y = H (s * x) per block: signs first, then the transform (stages h = 1, 2, 4, ... ascending, sums
// and differences only), then one multiply by float(1 / sqrt(block)). count is a multiple of block,
// block a power of two from 1 on. Bit i mod 32 of signs[i / 32] set: s_i = -1; signs may be null.
// May be in place (y == x).
using RotateFn = void(const float* x, const std::uint32_t* signs, std::size_t count,
                      std::size_t block, float* y) noexcept;
// y = s * (H x): transform, 1/sqrt(block), then signs. May be in place.
using UnrotateFn = RotateFn;

// In-place, unnormalised Walsh-Hadamard transform of each run of n floats, n a power of two that
// divides count.
using FwhtFn = void(float* x, std::size_t count, std::size_t n) noexcept;

// A row-major matrix of f32: row r starts at data + r * stride.
struct RowMajorF32 {
  float* data;
  std::size_t rows;
  std::size_t cols;
  std::size_t stride;
};
// Where the largest magnitudes go, one a row and one a column; either may be null. Magnitudes
// compare by their bits: NaN is above infinity, infinity above all numbers.
struct Maxima {
  float* rows;
  float* cols;
};
// In-place, unnormalised Walsh-Hadamard transform of each run of row_block elements of a row, then
// of each run of col_block elements of a column; a block of 1 leaves that side alone. row_block
// divides cols, col_block divides rows, both are powers of two. `max` tells of the result.
using FwhtMatrixFn = void(const RowMajorF32& x, std::size_t row_block, std::size_t col_block,
                          Maxima max) noexcept;

// Where a quantised column goes; as in Q8Matrix.
struct Q8Column {
  std::int8_t* q;
  float* scale;
  std::int32_t* sum;
  std::int32_t* half_sum = nullptr;  // may be null
  float* token_scale = nullptr;      // null: quantise per group
};
// Per group of 128: a = max |x|; a < 1e-30: zeros and scale 0; else inv = 127 / a, q =
// round-to-nearest-even(x * inv), scale = a / 127. Per token: a = max |x| over all of x, s = 127 /
// max(a, 1e-5), q = round-to-nearest-even(x * s), token_scale = s, each group's scale = 1 / s.
// count is a multiple of kGroup. Returns false, with the outputs unspecified, if any x is infinite
// or not a number.
using QuantizeFn = bool(const float* x, std::size_t count, const Q8Column& out) noexcept;

// y = rotate(x), with zeros from count to padded, a multiple of kGroup; then quantize(y, padded).
// y holds padded values.
using RotateQuantizeFn = bool(const float* x, const std::uint32_t* signs, std::size_t count,
                              std::size_t block, float* y, std::size_t padded,
                              const Q8Column& out) noexcept;

// y = (x * inv) * w with inv = 1 / sqrt(sum / n + eps); the sum of squares as in a dense dot: x_i
// goes to lane i mod 16 by fma. May be in place. n is any size from 1 on.
using RmsNormFn = void(const float* x, const float* w, std::size_t n, float eps, float* y) noexcept;

// Rotates pairs of one head's first 2 * pairs values by the angles whose cosines and sines are
// given: (a, b) -> (a * c - b * s, a * s + b * c), each product rounded, then the sum.
// neox pairs (i, i + pairs), else (2 i, 2 i + 1). In place.
using RopeFn = void(float* x, const float* cos, const float* sin, std::size_t pairs,
                    bool neox) noexcept;

// y = silu(gate) * up, silu(v) = v / (1 + exp(-v)) with the project's exp. May be in place on
// either input.
using SiluMulFn = void(const float* gate, const float* up, std::size_t n, float* y) noexcept;

// y = x * sigmoid(gate) = x / (1 + exp(-gate)). May be in place on either input.
using SigmoidMulFn = void(const float* gate, const float* x, std::size_t n, float* y) noexcept;

// y += x.
using AddFn = void(const float* x, std::size_t n, float* y) noexcept;

// IEEE fp16, round to nearest even, overflow to infinity.
using ToF16Fn = void(const float* x, std::size_t n, std::uint16_t* y) noexcept;
using FromF16Fn = void(const std::uint16_t* x, std::size_t n, float* y) noexcept;

// Query heads that share a key/value head, of tokens that follow each other: token t sees positions
// 0 .. length + t - 1. Position p's key is head_dim elements from keys + p * stride, its value
// likewise; f16 or f32 by which table entry. Head h of token t is head_dim floats from q + t *
// q_stride + h * head_dim, its output likewise.
// Each by itself: scores are the 16-lane dots of q and key, then times scale. Softmax in blocks of
// 64 positions from position 0, merged in ascending order: m' = max(m, block max); acc and sum *=
// exp(m - m'); then for each position ascending p = exp(score - m'), sum += p, acc = fma(p, value,
// acc). At the end out = acc / sum. length >= 1. head_dim is a multiple of 16, at most 1024.
struct AttentionTile {
  const float* q;
  std::size_t q_stride;
  const void* keys;
  const void* values;
  std::size_t stride;  // elements between positions
  std::size_t length;
  std::size_t n_tokens;
  std::size_t n_heads;  // n_tokens * n_heads is at most kTileQueries
  std::size_t head_dim;
  float scale;
  float* out;
  std::size_t out_stride;
};
inline constexpr std::size_t kTileQueries = 128;
using AttentionFn = void(const AttentionTile& tile) noexcept;

// y = (x * inv) * scale with inv = 1 / sqrt(sum + eps), the sum of squares as in RmsNormFn. May be
// in place. n is a multiple of 16.
using L2NormFn = void(const float* x, std::size_t n, float eps, float scale, float* y) noexcept;

// n tokens of one sequence through a causal depthwise convolution of 4 taps, then SiLU. Token t of
// channel c is x[t * stride + c], in place: silu(fma(w3, x[t], fma(w2, x[t - 1], fma(w1, x[t - 2],
// w0 * x[t - 3])))). history: the three inputs before the first token, the newest last; those
// before the next run take their place.
inline constexpr std::size_t kConvTaps = 4;
struct CausalConv {
  const float* weights;  // tap j of channel c: weights[j * weight_stride + c]
  std::size_t weight_stride;
  float* history;  // [3][history_stride]
  std::size_t history_stride;
  float* x;
  std::size_t stride;
  std::size_t n;
};
// Channels [first, last).
using CausalConvFn = void(const CausalConv& conv, std::size_t first, std::size_t last) noexcept;

// decay = exp(rate * softplus(a + bias)), beta = sigmoid(b) = 1 / (1 + exp(-b)), for n heads.
// softplus(v) = max(v, 0) + log1p(exp(-|v|)) by the project's exp and log1p.
using DeltaGatesFn = void(const float* a, const float* b, const float* rate, const float* bias,
                          std::size_t n, float* decay, float* beta) noexcept;

// The gated delta rule on one head's state, n tokens of one sequence. Row i, tokens ascending: s *=
// decay; d = beta * (v_i - s . k); s = fma(d, k, s); out_i = s . q. The dots have 16 lanes. key_dim
// is a multiple of 16.
struct DeltaHead {
  float* state;  // [rows][key_dim]
  std::size_t key_dim;
  std::size_t n;
  const float *q, *k;  // of token t: q + t * stride, k + t * stride
  const float* v;      // v_i of token t: v[t * stride + i]
  std::size_t stride;
  const float *decay, *beta;  // of token t: decay[t * gate_stride]
  std::size_t gate_stride;
  float* out;  // out_i of token t: out[t * out_stride + i]
  std::size_t out_stride;
};
using DeltaNetFn = void(const DeltaHead& head, RowRange rows) noexcept;

// The project's exp on n values (softmax of a sampler); relative error under 2e-7, exp(-inf) = 0,
// results under the smallest normal are 0. May be in place.
using ExpFn = void(const float* x, std::size_t n, float* y) noexcept;

// A form of a ternary body that suits one CPU level better than the file's (kernels/repack.h). The
// product is the same bits. t2 is an encoding like any other, the others serve one column.
enum class PackedForm : std::uint8_t {
  none,
  t2,         // of t1
  t1_escape,  // of t1: another code of the five digits in a byte
  s34_lut,    // of s34: a quad of 32 rows side by side
};

// The CPU levels, lowest first.
enum class Isa : std::uint8_t { scalar, avx2, avxvnni, avx512 };

struct Kernels {
  Isa isa;
  TernaryGemmFn* t2_gemm;
  TernaryGemmFn* t1_gemm;
  TernaryGemmFn* s34_gemm;
  TernaryGemmFn* t1_escape_gemv;  // of one column; null: not at this level
  TernaryGemmFn* s34_lut_gemv;    // of one column; null: not at this level
  S34TablesFn* s34_tables;        // null where s34_lut_gemv is
  PackedForm t1_best;             // the form of t1 that is fastest at this level with one column
  PackedForm s34_best;
  TernaryGemmF32Fn* t2_gemm_f32;
  TernaryGemmF32Fn* t1_gemm_f32;
  TernaryGemmF32Fn* s34_gemm_f32;
  std::size_t tile_columns;  // 0: the level reads columns as they are, and interleave is null
  InterleaveFn* interleave;
  TernaryRowFn* t2_row;
  TernaryRowFn* t1_row;
  TernaryRowFn* s34_row;
  DenseGemmFn* dense_gemm;
  DenseRowFn* dense_row;
  FwhtFn* fwht;
  RotateFn* rotate;
  UnrotateFn* unrotate;
  FwhtMatrixFn* fwht_matrix;
  QuantizeFn* quantize;
  RotateQuantizeFn* rotate_quantize;
  RmsNormFn* rms_norm;
  RopeFn* rope;
  SiluMulFn* silu_mul;
  SigmoidMulFn* sigmoid_mul;
  AddFn* add;
  ToF16Fn* to_f16;
  FromF16Fn* from_f16;
  AttentionFn* attention_f16;
  AttentionFn* attention_f32;
  ExpFn* exp;
  L2NormFn* l2_norm;
  CausalConvFn* causal_conv;
  DeltaGatesFn* delta_gates;
  DeltaNetFn* delta_net;
};

// Cosines and sines of position * frequency[i], n of them: computed in double by the project's own
// polynomials, rounded once; the same on every machine.
void rope_angles(std::int64_t position, const double* frequency, std::size_t n, float* cos,
                 float* sin) noexcept;
// base^exponent for base > 0 in double by the project's own polynomials (RoPE frequencies).
double rope_power(double base, double exponent) noexcept;

}  // namespace tsq::kernels
