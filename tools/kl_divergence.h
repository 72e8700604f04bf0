// How far a run's predictions are from another's, of the same tokens.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "logits_file.h"

namespace tsq::tool {

// log(sum(exp(logits))) in double: a token's log-probability is its logit less this.
double log_sum_exp(std::span<const float> logits);

class KlDivergence {
 public:
  // The logits after a position, the base's log-probabilities there and the token that follows.
  // Tokens whose probability the base has at e^-16 or less are left out of the sum, as llama.cpp
  // does: its file does not tell them apart.
  void add(std::span<const float> logits, const LogitsFile::Row& base, Token next);

  double mean() const;
  // Lines of "label  value". Requires a position at least.
  std::string report() const;

 private:
  std::vector<double> divergences_;
  std::vector<double> nll_base_;
  std::vector<double> nll_differences_;          // this run's less the base's
  std::vector<double> probability_differences_;  // of the token that follows
  std::size_t same_top_ = 0;
};

}  // namespace tsq::tool
