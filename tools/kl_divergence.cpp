#include "kl_divergence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/errorf.h"

namespace tsq::tool {
namespace {

constexpr double kLeastLogProbability = -16;

struct Estimate {
  double mean, error;  // one standard error of the mean
};

Estimate estimate(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return {mean, n > 1 ? std::sqrt(squares / n / (n - 1)) : 0};
}

// Between the two nearest, linearly.
double quantile(std::span<const double> sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const double largest = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

void KlDivergence::add(std::span<const float> logits, const LogitsFile::Row& base, Token next) {
  const auto top = std::ranges::max_element(logits);
  const double total = log_sum_exp(logits);
  double divergence = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = base.log_probability(i);
    if (expected <= kLeastLogProbability) continue;
    divergence += std::exp(expected) * (expected - (static_cast<double>(logits[i]) - total));
  }
  divergences_.push_back(divergence);
  const auto base_top = std::ranges::max_element(base.codes) - base.codes.begin();
  if (top - logits.begin() == base_top) ++same_top_;
  const auto token = static_cast<std::size_t>(next);
  const double ours = static_cast<double>(logits[token]) - total;
  const double theirs = base.nll ? -*base.nll : base.log_probability(token);
  nll_base_.push_back(-theirs);
  nll_differences_.push_back(theirs - ours);
  probability_differences_.push_back(std::exp(ours) - std::exp(theirs));
}

double KlDivergence::mean() const { return estimate(divergences_).mean; }

std::string KlDivergence::report() const {
  const auto n = static_cast<double>(divergences_.size());
  const Estimate base = estimate(nll_base_), ratio = estimate(nll_differences_);
  const Estimate kld = estimate(divergences_), change = estimate(probability_differences_);
  std::vector<double> squares;
  for (const double d : probability_differences_) squares.push_back(d * d);
  const Estimate square = estimate(squares);
  const double rms = std::sqrt(square.mean);
  const double top = static_cast<double>(same_top_) / n;
  std::vector<double> sorted = divergences_;
  std::ranges::sort(sorted);
  const double base_ppl = std::exp(base.mean), ppl_ratio = std::exp(ratio.mean);

  std::string text = stringf("base PPL        %.4f +- %.5f\n", base_ppl, base_ppl * base.error) +
                     stringf("PPL / base PPL  %.6f +- %.6f\n", ppl_ratio, ppl_ratio * ratio.error) +
                     stringf("mean KLD        %.6f +- %.6f\n", kld.mean, kld.error) +
                     stringf("maximum KLD     %.6f\n", sorted.back());
  for (const int percent : {99, 95, 90})
    text += stringf("%d %% KLD        %.6f\n", percent, quantile(sorted, percent / 100.0));
  // dp: this run's probability of the token that follows, less the base's.
  return text + stringf("median KLD      %.6f\n", quantile(sorted, 0.5)) +
         stringf("mean dp         %.4f +- %.4f %%\n", 100 * change.mean, 100 * change.error) +
         stringf("RMS dp          %.4f +- %.4f %%\n", 100 * rms,
                 rms > 0 ? 100 * square.error / (2 * rms) : 0) +
         stringf("same top        %.3f +- %.3f %%\n", 100 * top,
                 n > 1 ? 100 * std::sqrt(top * (1 - top) / (n - 1)) : 0);
}

}  // namespace tsq::tool
