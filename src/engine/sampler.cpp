#include "tsq/sampler.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <cmath>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "base/errorf.h"
#include "kernels/dispatch.h"

namespace tsq {
namespace {

// xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      std::uint64_t z = (seed += 0x9e3779b97f4a7c15u);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }

  // Uniform in [0, 1), a multiple of 2^-53.
  double uniform() {
    const std::uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return static_cast<double>(result >> 11) * 0x1p-53;
  }

 private:
  static std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t state_[4];
};

struct Candidate {
  float logit;
  Token token;

  // Likeliest first; the lower id among equals.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  }
};

}  // namespace

struct Sampler::State {
  SamplerOptions options;
  const kernels::Kernels& kernels;
  Random random;
  std::size_t vocab_size;
  // All of these have their full capacity from the start: sampling allocates nothing.
  std::vector<Token> recent;          // a ring of the last repeat_last_n tokens
  std::size_t oldest = 0;             // where the ring goes on once it is full
  std::vector<Candidate> candidates;  // sorted once top_k has been taken
  std::vector<float> shifted, weights;
  std::vector<bool> penalised;

  void penalise() {
    penalised.assign(vocab_size, false);
    for (const Token token : recent) {
      const auto id = static_cast<std::size_t>(token);
      if (penalised[id]) continue;  // once for each different token
      penalised[id] = true;
      float& logit = candidates[id].logit;
      logit = logit > 0 ? logit / options.repeat_penalty : logit * options.repeat_penalty;
    }
  }

  void keep_top_k() {
    const std::size_t n = candidates.size();
    const std::size_t k =
        options.top_k == 0 ? n : std::min(n, static_cast<std::size_t>(options.top_k));
    const auto middle = candidates.begin() + static_cast<std::ptrdiff_t>(k);
    std::partial_sort(candidates.begin(), middle, candidates.end());
    candidates.resize(k);
  }

  // exp((logit - the largest) / temperature) of every candidate.
  void weigh(float temperature) {
    shifted.resize(candidates.size());
    weights.resize(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      shifted[i] = (candidates[i].logit - candidates[0].logit) / temperature;
    }
    kernels.exp(shifted.data(), shifted.size(), weights.data());
  }

  // The fewest likeliest candidates that hold top_p of the probability.
  void keep_top_p() {
    if (options.top_p >= 1) return;
    weigh(1);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    double held = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      held += static_cast<double>(weights[i]);
      if (held >= static_cast<double>(options.top_p) * total) {
        candidates.resize(i + 1);
        return;
      }
    }
  }

  // Those at least min_p as likely as the likeliest.
  void keep_min_p() {
    if (options.min_p <= 0) return;
    weigh(1);
    std::size_t kept = 1;
    while (kept < candidates.size() && weights[kept] >= options.min_p) ++kept;
    candidates.resize(kept);
  }

  Token draw() {
    weigh(options.temperature);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    double left = random.uniform() * total;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      left -= static_cast<double>(weights[i]);
      if (left < 0) return candidates[i].token;
    }
    return candidates.back().token;
  }
};

Result<Sampler> Sampler::create(std::int32_t vocab_size, const SamplerOptions& o) {
  const auto refuse = [](const char* name, double value, const char* expected) {
    return errorf(ErrorCode::invalid_argument, "%s is %g, expected %s", name, value, expected);
  };
  if (!(o.temperature >= 0 && o.temperature <= 100)) {
    return refuse("temperature", o.temperature, "0 (greedy) to 100");
  }
  if (o.top_k < 0) return refuse("top-k", o.top_k, "1 or more (0: all)");
  if (!(o.top_p > 0 && o.top_p <= 1)) return refuse("top-p", o.top_p, "above 0, up to 1 (all)");
  if (!(o.min_p >= 0 && o.min_p <= 1)) return refuse("min-p", o.min_p, "0 (all) to 1");
  if (!(o.repeat_penalty > 0 && o.repeat_penalty <= 100)) {
    return refuse("repeat-penalty", o.repeat_penalty, "above 0, up to 100 (1: none)");
  }
  if (o.repeat_last_n < 0 || o.repeat_last_n > 1 << 24) {
    return refuse("repeat-last-n", o.repeat_last_n, "0 to 2^24");
  }
  if (vocab_size < 1) return refuse("the vocabulary's size", vocab_size, "1 or more");
  const kernels::Choice& choice = kernels::chosen();
  if (choice.kernels == nullptr) return Error(ErrorCode::unsupported, choice.error);
  try {
    const auto n = static_cast<std::size_t>(vocab_size);
    auto state = std::make_unique<State>(State{.options = o,
                                               .kernels = *choice.kernels,
                                               .random = Random(o.seed),
                                               .vocab_size = n,
                                               .recent = {},
                                               .candidates = {},
                                               .shifted = {},
                                               .weights = {},
                                               .penalised = std::vector<bool>(n)});
    state->recent.reserve(static_cast<std::size_t>(o.repeat_last_n));
    state->candidates.reserve(n);
    state->shifted.reserve(n);
    state->weights.reserve(n);
    return Sampler(std::move(state));
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::out_of_memory, "no memory for a sampler");
  }
}

Token Sampler::sample(std::span<const float> logits) noexcept {
  State& s = *state_;
  assert(logits.size() == s.vocab_size);
  s.candidates.clear();
  for (std::size_t i = 0; i < s.vocab_size; ++i) {
    s.candidates.push_back({logits[i], static_cast<Token>(i)});
  }
  if (s.options.repeat_penalty != 1) s.penalise();
  if (s.options.temperature == 0) {
    return std::min_element(s.candidates.begin(), s.candidates.end())->token;
  }
  s.keep_top_k();
  s.keep_top_p();
  s.keep_min_p();
  return s.draw();
}

void Sampler::accept(Token token) noexcept {
  State& s = *state_;
  if (token < 0 || static_cast<std::size_t>(token) >= s.vocab_size) return;
  const auto limit = static_cast<std::size_t>(s.options.repeat_last_n);
  if (limit == 0) return;
  if (s.recent.size() < limit) {
    s.recent.push_back(token);
  } else {
    s.recent[s.oldest] = token;
    s.oldest = (s.oldest + 1) % limit;
  }
}

Sampler::Sampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

}  // namespace tsq
