// A backend around another one that watches what the matrices are given: how large it is before and
// after its rotation, what int8 rounds away, and whether the rotation is what its definition says.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu.h"

namespace tsq {

// Of the vectors that a stage saw on one side of its rotation, one a token.
class VectorStatistics {
 public:
  // quant: how the int8 path would round it; none: not at all.
  void add(std::span<const float> x, format::ActivationQuant quant);

  double rms() const;
  double absmax() const { return absmax_; }
  double crest() const;       // absmax / rms of a token, the mean over the tokens
  double int8_error() const;  // rms of what rounding changes / rms

 private:
  double squares_ = 0, errors_ = 0, absmax_ = 0, crests_ = 0;
  std::uint64_t values_ = 0, tokens_ = 0;
};

// The matrices that read one activation in one form, or the embedding, which is read the other way:
// `before` is the stored row, `after` the row without its rotation.
struct TracedStage {
  std::string name;                            // "blk.0.attn_q+attn_k+attn_v"
  const format::Rotation* rotation = nullptr;  // null: none, and `after` is empty
  bool quantised = false;                      // on the int8 path
  VectorStatistics before, after;
  std::uint64_t checked = 0;  // vectors
  double deviation = 0;  // the largest from the definition in double, over what f32 may round away

  bool sound() const { return deviation <= 1; }
};

class ActivationTrace {
 public:
  // In the order in which a pass first came to them.
  std::span<const TracedStage> stages() const { return stages_; }
  bool sound() const;

 private:
  friend class TracingBackend;
  TracedStage& stage(const Weight& first, const char* suffix = "");

  std::vector<TracedStage> stages_;
  std::map<const Weight*, std::size_t> index_;
};

// A CPU backend that fills the trace, which must outlive it. Of each stage and pass the first and
// the last token are checked.
std::unique_ptr<Backend> make_tracing_backend(CpuOptions options, ActivationTrace& trace);

}  // namespace tsq
