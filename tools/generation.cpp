#include "generation.h"

#include <algorithm>
#include <chrono>

#include "base/errorf.h"
#include "log.h"
#include "support.h"

namespace tsq::tool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Timing& Timing::operator+=(const Timing& other) {
  tokens += other.tokens;
  computed += other.computed;
  seconds += other.seconds;
  return *this;
}

void Timing::print(const char* what) const {
  const double rate = computed > 0 && seconds > 0 ? static_cast<double>(computed) / seconds : 0;
  info_fact(what,
            stringf("%zu token%s in %.2f s", tokens, tokens == 1 ? "" : "s", seconds) +
                (rate > 0 ? stringf(", %.1f tokens/s", rate) : ""),
            {{"tokens", tokens}, {"seconds", seconds}, {"tokens_per_second", rate}});
}

Result<std::span<const float>> Reader::read(std::span<const Token> prompt, std::size_t lasting) {
  const auto start = Clock::now();
  auto same = static_cast<std::size_t>(
      std::mismatch(prompt.begin(), prompt.end(), held_.begin(), held_.end()).first -
      prompt.begin());
  if (!prompt.empty()) same = std::min(same, prompt.size() - 1);  // logits come of a token
  const std::int32_t back = session_.rewindable(static_cast<std::int32_t>(same));
  if (const auto rewound = session_.rewind(back); !rewound) return rewound.error();
  same = static_cast<std::size_t>(back);
  held_.resize(same);

  const auto rest = prompt.subspan(same);
  const bool marks = session_.is_recurrent() && lasting > same && lasting < prompt.size();
  const auto logits = read_in_pieces(rest, marks ? lasting - same : 0);
  if (!logits) return logits.error().at("prompt");
  timing_ += {rest.size(), rest.size(), seconds_since(start)};
  return logits;
}

Result<std::span<const float>> Reader::read_in_pieces(std::span<const Token> tokens,
                                                      std::size_t mark) {
  constexpr std::size_t kFirst = 32, kMost = 512;
  constexpr double kSeconds = 0.25;
  if (tokens.size() > static_cast<std::size_t>(session_.context() - session_.position()))
    return session_.append(tokens);  // for its error
  ProgressBar bar("prompt", ProgressBar::Unit::tokens);
  std::size_t n = kFirst;
  for (std::size_t done = 0;;) {
    if (interrupted()) return Error(ErrorCode::cancelled, "cancelled while reading the prompt");
    bar.update(done, tokens.size());
    const std::size_t end = done < mark ? mark : tokens.size();
    const auto piece = tokens.subspan(done, std::min(n, end - done));
    const auto start = Clock::now();
    const auto logits = append(piece);
    done += piece.size();
    if (!logits || done == tokens.size()) return logits;
    if (done == mark) {
      if (const auto marked = session_.mark(); !marked)
        warn("%s: the next message will be read with all before it",
             marked.error().message().c_str());
    }
    if (seconds_since(start) < kSeconds) n = std::min(2 * n, kMost);
  }
}

Result<std::span<const float>> Reader::append(std::span<const Token> tokens) {
  const auto logits = session_.append(tokens);
  if (logits) held_.insert(held_.end(), tokens.begin(), tokens.end());
  held_.resize(
      static_cast<std::size_t>(session_.position()));  // less than before after some errors
  return logits;
}

Result<std::span<const float>> Reader::append(Token token) { return append({&token, 1}); }

Generation::Generation(const Tokenizer& tokenizer, Reader& reader, Sampler& sampler,
                       const GenerationOptions& options, Sink& sink)
    : tokenizer_(tokenizer),
      reader_(reader),
      sampler_(sampler),
      options_(options),
      sink_(sink),
      stream_(options.stops) {}

Result<void> Generation::run(std::span<const float> logits) {
  const auto start = Clock::now();
  const auto done = continue_from(logits);
  timing_.seconds = seconds_since(start);
  show(stream_.finish());
  return done;
}

Result<void> Generation::continue_from(std::span<const float> logits) {
  const auto limit = static_cast<std::size_t>(options_.predict);
  while (options_.predict < 0 || timing_.tokens < limit) {
    if (interrupted()) return {};
    const Token token = next(logits);
    if (tokenizer_.is_end(token)) return {};
    ++timing_.tokens;
    if (!tokenizer_.is_control(token) || sink_.shows(token)) {
      if (!show(stream_.push(tokenizer_.bytes(token)))) return {};
    }
    if (stream_.stopped() || timing_.tokens == limit) return {};
    if (reader_.is_full()) {
      context_full_ = true;
      return {};
    }
    const auto appended = reader_.append(token);
    if (!appended) return appended.error();
    ++timing_.computed;
    logits = *appended;
  }
  return {};
}

Token Generation::next(std::span<const float> logits) {
  if (forced_.empty()) {
    forced_ = sink_.forced();
    std::reverse(forced_.begin(), forced_.end());
  }
  Token token;
  if (!forced_.empty()) {
    token = forced_.back();
    forced_.pop_back();
  } else {
    if (options_.ignore_eos) {
      allowed_.assign(logits.begin(), logits.end());
      for (const Token end : tokenizer_.end_tokens())
        allowed_[static_cast<std::size_t>(end)] = -1e30f;
      logits = allowed_;
    }
    token = sampler_.sample(logits);
  }
  sampler_.accept(token);
  return token;
}

bool Generation::show(const std::string& text) { return text.empty() || sink_.show(text); }

}  // namespace tsq::tool
