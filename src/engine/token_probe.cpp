#include "engine/token_probe.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "arch/graph.h"
#include "base/errorf.h"
#include "engine/model_state.h"
#include "format/reader.h"
#include "kernels/dispatch.h"
#include "tsq/loader.h"
#include "tsq/session.h"

namespace tsq {
namespace {

using format::TokenProbe;
using format::TokenProbeState;

// More than 32 tokens in any vocabulary.
constexpr std::string_view kText =
    "Once upon a time there was a king who had three daughters. The eldest was proud, the second "
    "was idle, and the youngest was as kind as she was fair. One day the king said to them: "
    "whoever "
    "brings me the water of life shall have the kingdom when I am gone.";

// Sums and the logarithm are in double; only log() could differ between two libms, by one unit.
double negative_log_likelihood(std::span<const float> logits, std::size_t token) {
  const float largest = *std::ranges::max_element(logits);
  std::vector<float> weights(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) weights[i] = logits[i] - largest;
  const double chosen = static_cast<double>(weights[token]);
  kernels::chosen().kernels->exp(weights.data(), weights.size(), weights.data());
  double sum = 0;
  for (const float w : weights) sum += static_cast<double>(w);
  return std::log(sum) - chosen;
}

// Fills mean_nll and `n_greedy` greedy tokens for probe.tokens.
Result<void> replay(const Model& model, std::size_t n_greedy, TokenProbe& probe,
                    const ProbeProgress& progress) {
  const std::size_t n = probe.tokens.size();
  const int total = static_cast<int>(1 + n_greedy);
  const auto go_on = [&](std::size_t done) {
    return !progress || progress(static_cast<int>(done), total);
  };
  const Error cancelled(ErrorCode::cancelled, "cancelled during the token probe");

  auto session = Session::create(model, {.context = static_cast<std::int32_t>(n + n_greedy)});
  if (!session) return session.error();
  if (!go_on(0)) return cancelled;
  const std::vector<Token> tokens(probe.tokens.begin(), probe.tokens.end());
  auto logits = session->append(tokens, Logits::all);
  if (!logits) return logits.error();
  const auto vocab = static_cast<std::size_t>(model.vocab_size());
  double sum = 0;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    sum += negative_log_likelihood(logits->subspan(i * vocab, vocab), probe.tokens[i + 1]);
  }
  probe.mean_nll = sum / static_cast<double>(n - 1);

  probe.greedy.clear();
  std::span<const float> last = logits->last(vocab);
  while (probe.greedy.size() < n_greedy) {
    if (!go_on(1 + probe.greedy.size())) return cancelled;
    const auto next = static_cast<Token>(std::ranges::max_element(last) - last.begin());
    probe.greedy.push_back(static_cast<std::uint32_t>(next));
    if (probe.greedy.size() == n_greedy) break;
    auto more = session->append({&next, 1});
    if (!more) return more.error();
    last = *more;
  }
  return {};
}

// That the probe's tokens are those of the text, so that the tokenizer is part of what is replayed.
Result<void> check_tokens(const Model& model, const TokenProbe& probe) {
  if (model.tokenizer() == nullptr)
    return Error(ErrorCode::damaged, "its text has no tokens: the file has no tokenizer");
  const auto tokens = model.tokenizer()->encode(kText);
  if (!tokens) return tokens.error();
  for (std::size_t i = 0; i < probe.tokens.size(); ++i) {
    const auto token = static_cast<Token>(probe.tokens[i]);
    if (i >= tokens->size()) {
      return errorf(ErrorCode::damaged, "it has %zu tokens, expected the %zu of its text",
                    probe.tokens.size(), tokens->size());
    }
    if (token != (*tokens)[i]) {
      return errorf(ErrorCode::damaged, "token %zu is %d, expected %d, as its text begins", i,
                    token, (*tokens)[i]);
    }
  }
  return {};
}

}  // namespace

Result<TokenProbe> compute_token_probe(const std::filesystem::path& path,
                                       const ProbeProgress& progress) {
  TokenProbe probe;
  {
    const auto opened = format::open(path);
    if (!opened) return opened.error();
    const auto architecture = opened->file.metadata().require_string("general.architecture");
    if (!architecture || !has_graph(*architecture)) {
      probe.state = TokenProbeState::no_graph;
      return probe;
    }
    if (opened->file.tokenizer_section().empty()) {
      probe.state = TokenProbeState::no_tokenizer;
      return probe;
    }
  }
  const auto model = Loader().load(path);
  if (!model) return model.error();
  auto tokens = model->tokenizer()->encode(kText);
  if (!tokens) return tokens.error();
  // Half of a short context is left for the greedy tokens.
  const auto context = static_cast<std::size_t>(model->context_length());
  const std::size_t n = std::min({TokenProbe::kMaxTokens, tokens->size(), (context + 1) / 2});
  if (n < 2) {
    return errorf(
        ErrorCode::unsupported,
        "the token probe needs a context of 3 tokens, the model has %zu (leave the probe out)",
        context);
  }
  probe.tokens.assign(tokens->begin(), tokens->begin() + static_cast<std::ptrdiff_t>(n));
  const std::size_t n_greedy = std::min(TokenProbe::kMaxGreedy, context - n);
  if (auto made = replay(*model, n_greedy, probe, progress); !made) return made.error();
  probe.state = TokenProbeState::present;
  return probe;
}

Result<void> check_token_probe(const std::filesystem::path& path, const TokenProbe& probe,
                               const ProbeProgress& progress) {
  const auto model = Loader().load(path);
  if (!model) return model.error();
  if (const auto same = check_tokens(*model, probe); !same) return same.error();
  TokenProbe found = probe;
  const auto made = replay(*model, probe.greedy.size(), found, progress);
  if (!made) return made.error();
  // The logits are the same bits on every CPU; the allowance is for the libm's logarithm.
  if (!(std::abs(found.mean_nll - probe.mean_nll) <= 1e-12 * std::abs(probe.mean_nll))) {
    return errorf(ErrorCode::damaged, "mean negative log-likelihood is %.9f, expected %.9f",
                  found.mean_nll, probe.mean_nll);
  }
  for (std::size_t i = 0; i < probe.greedy.size(); ++i) {
    if (found.greedy[i] != probe.greedy[i]) {
      return errorf(ErrorCode::damaged, "greedy token %zu is %u, expected %u", i, found.greedy[i],
                    probe.greedy[i]);
    }
  }
  return {};
}

}  // namespace tsq
