// Choosing the next token from logits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tsq/error.h"
#include "tsq/export.h"
#include "tsq/tokenizer.h"

namespace tsq {

struct SamplerOptions {
  float temperature = 0.8f;  // 0: greedy, the lowest id among equals
  std::int32_t top_k = 40;   // 0: all
  float top_p = 0.95f;       // 1: all
  float min_p = 0.05f;       // 0: all
  float repeat_penalty = 1.0f;
  std::int32_t repeat_last_n = 64;  // tokens that the penalty looks back on
  std::uint64_t seed = 0;
};

// Penalty, then top-k, top-p, min-p, temperature, one draw. Generator and distributions are the
// project's own: a seed means the same text on every machine and standard library.
class TSQ_API Sampler {
 public:
  // For a model's vocabulary. Errors: invalid_argument (an option, with what was given and what it
  // may be), out_of_memory, unsupported (TSQ_ISA names a level this CPU lacks).
  static Result<Sampler> create(std::int32_t vocab_size, const SamplerOptions& options = {});

  // The next token for these logits: vocab_size floats, none of them NaN, not changed. It is not
  // remembered: accept() does that, also for a prompt's tokens. Ids outside the vocabulary are
  // ignored.
  Token sample(std::span<const float> logits) noexcept;
  void accept(Token token) noexcept;

  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

 private:
  struct State;
  explicit Sampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tsq
