// A projection's input in the forms that its weights read: as it is, rotated, quantised.
#pragma once

#include "backend/weight.h"
#include "base/buffer.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace tsq {

// The tables of s34 in LUT order, by how a quad's inputs lie.
enum class QuadTables : std::uint8_t { none, consecutive, stride16 };

// One form of one input. Weights of a group with equal forms share it.
struct ActivationForm {
  const format::Rotation* rotation;
  format::ActivationQuant quant;
  bool half_sums;     // for weights with a scale for each half group
  QuadTables tables;  // of one column; of several there are none

  bool operator==(const ActivationForm&) const = default;
};

// Scratch that grows to what is asked for; prepare() fills it.
class Activations {
 public:
  explicit Activations(const kernels::Kernels& kernels) : kernels_(kernels) {}

  void reserve(std::size_t n, std::size_t padded_cols, ActivationForm form);

  // x: n columns of `cols` values at `stride`, zeros between cols and stride, which is at least
  // padded_cols. The index of the first column that is not finite, or n.
  std::size_t prepare(ThreadPool& pool, const float* x, std::size_t stride, std::size_t n,
                      std::size_t cols, std::size_t padded_cols, ActivationForm form);

  // What prepare() made; f32() is x itself where there is no rotation.
  kernels::F32Matrix f32() const { return f32_; }
  kernels::Q8Matrix q8() const { return q8_; }
  std::uint64_t memory_bytes() const;

 private:
  const kernels::Kernels& kernels_;
  kernels::Q8Column q8_column(std::size_t t, std::size_t cols, ActivationForm form);
  bool prepare_column(const float* x, std::size_t t, std::size_t cols, std::size_t padded_cols,
                      ActivationForm form);
  bool interleaves(std::size_t n, ActivationForm form) const;

  Buffer<float> rotated_, scale_, token_scale_;
  Buffer<std::int8_t> q_, tiles_, tables_;
  Buffer<std::int32_t> sum_, half_sum_;
  kernels::F32Matrix f32_{};
  kernels::Q8Matrix q8_{};
};

}  // namespace tsq
