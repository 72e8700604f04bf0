#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/errorf.h"
#include "base/hash.h"
#include "commands.h"
#include "engine.h"
#include "kl_divergence.h"
#include "log.h"
#include "logits_file.h"
#include "support.h"

namespace tsq::tool {
namespace {

struct Options {
  EngineOptions engine;
  std::string file;
  std::int32_t chunk = 512;
  std::int32_t max_chunks = -1;
  std::string save_logits, kl_base;
};

// The likelihoods of the tokens that were scored.
struct Score {
  std::size_t tokens = 0;
  std::size_t bytes = 0;  // that these tokens stand for
  double sum = 0, sum_of_squares = 0;

  void add(double nll) {
    ++tokens;
    sum += nll;
    sum_of_squares += nll * nll;
  }
  double mean() const { return sum / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(mean()); }
  // One standard error of the mean, carried through exp().
  double error() const {
    const double n = static_cast<double>(tokens);
    const double variance = sum_of_squares / n - mean() * mean();
    return n > 1 && variance > 0 ? std::sqrt(variance / (n - 1)) * perplexity() : 0;
  }
  double bits_per_byte() const { return sum / std::log(2.0) / static_cast<double>(bytes); }
};

double negative_log_likelihood(std::span<const float> logits, Token token) {
  return log_sum_exp(logits) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

// What a run is held against, and where its logits go.
struct Base {
  std::optional<LogitsFile> file;
  std::optional<LogitsWriter> writer;
  KlDivergence divergence;
  std::size_t rows = 0;

  Result<void> add(std::span<const float> logits, Token next, double nll) {
    if (file) divergence.add(logits, file->row(rows), next);
    ++rows;
    return writer ? writer->add(logits, nll) : Result<void>();
  }
};

// Scores the second half of a chunk, each token seen after all before it: llama.cpp's convention,
// so that figures can be compared.
Result<void> score_chunk(Session& session, const Tokenizer& tokenizer,
                         std::span<const Token> tokens, Score& score, Base& base) {
  constexpr std::size_t kPiece = 64;  // tokens whose logits are held at once
  if (const auto rewound = session.rewind(0); !rewound) return rewound.error();
  const std::size_t half = tokens.size() / 2;
  const auto read = session.append(tokens.first(half));
  if (!read) return read.error();
  for (std::size_t at = half; at + 1 < tokens.size();) {
    const std::size_t n = std::min(kPiece, tokens.size() - 1 - at);
    const auto logits = session.append(tokens.subspan(at, n), Logits::all);
    if (!logits) return logits.error();
    const std::size_t vocab = logits->size() / n;
    for (std::size_t i = 0; i < n; ++i) {
      const Token next = tokens[at + i + 1];
      const auto row = logits->subspan(i * vocab, vocab);
      const double nll = negative_log_likelihood(row, next);
      score.add(nll);
      if (const auto added = base.add(row, next, nll); !added) return added;
      score.bytes += tokenizer.bytes(next).size();
    }
    at += n;
  }
  return {};
}

// Opens what the options name; `tokens` are those of the chunks.
Result<void> open_base(const Options& options, const Model& model, std::size_t& chunks,
                       std::span<const Token> tokens, Base& base) {
  const auto chunk = static_cast<std::size_t>(options.chunk);
  const auto vocab = static_cast<std::size_t>(model.vocab_size());
  if (!options.kl_base.empty()) {
    auto file = LogitsFile::open(options.kl_base);
    if (!file) return file.error();
    if (const auto same = file->check(chunk, vocab, tokens); !same) return same;
    chunks = std::min(chunks, file->chunks());
    base.file.emplace(std::move(*file));
  }
  if (!options.save_logits.empty()) {
    std::error_code error;
    const std::filesystem::path target = options.save_logits;
    if (std::filesystem::equivalent(target, options.kl_base, error))
      return errorf(ErrorCode::invalid_argument, "%s: is read as --kl-base: save to another file",
                    target.c_str());
    if (std::filesystem::exists(target, error) && !is_logits_file(target))
      return errorf(ErrorCode::invalid_argument,
                    "%s: exists and holds no saved logits: it is not replaced", target.c_str());
    auto writer =
        LogitsWriter::create(options.save_logits, chunk, vocab, tokens.first(chunks * chunk));
    if (!writer) return writer.error();
    base.writer.emplace(std::move(*writer));
  }
  return {};
}

int measure(const Model& model, Session& session, const Options& options, std::string_view text) {
  const Tokenizer& tokenizer = *model.tokenizer();
  auto tokens = encode_text(tokenizer, text);
  if (!tokens) return fail(tokens.error().at(options.file));
  const auto chunk = static_cast<std::size_t>(options.chunk);
  std::size_t chunks = tokens->size() / chunk;
  if (chunks == 0)
    return fail(errorf(ErrorCode::invalid_argument,
                       "%s: %zu tokens, one chunk needs %zu: give a longer text or a smaller -c",
                       options.file.c_str(), tokens->size(), chunk));
  if (options.max_chunks > 0)
    chunks = std::min(chunks, static_cast<std::size_t>(options.max_chunks));

  Base base;
  if (const auto opened = open_base(options, model, chunks, *tokens, base); !opened)
    return fail(opened.error());
  Score score;
  ProgressBar bar("perplexity", ProgressBar::Unit::tokens);
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::span<Token> part = std::span(*tokens).subspan(c * chunk, chunk);
    if (tokenizer.adds_bos()) part[0] = *tokenizer.bos();
    const auto scored = score_chunk(session, tokenizer, part, score, base);
    if (!scored) return fail(scored.error().at("chunk " + std::to_string(c + 1)));
    bar.clear();
    const std::string divergence =
        base.file ? stringf("  KLD %.6f", base.divergence.mean()) : std::string();
    info("[%zu/%zu] %.4f%s", c + 1, chunks, score.perplexity(), divergence.c_str());
    bar.update((c + 1) * chunk, chunks * chunk);
  }
  bar.clear();
  if (base.writer) {
    if (const auto done = base.writer->commit(); !done) return fail(done.error());
  }
  return print(stringf("text            %zu bytes, %zu tokens, sha256 %s\n", text.size(),
                       tokens->size(), hex(sha256(std::as_bytes(std::span(text)))).c_str()) +
               stringf("scored          %zu tokens in %zu chunks of %zu\n", score.tokens, chunks,
                       chunk) +
               stringf("bits per byte   %.4f\n", score.bits_per_byte()) +
               stringf("nats per token  %.4f\n", score.mean()) +
               (base.file ? base.divergence.report() : "") +
               stringf("Final estimate: PPL = %.4f +- %.5f\n", score.perplexity(), score.error()))
             ? kSuccess
             : kFailure;
}

int perplexity(Options options) {
  const auto text = read_text(options.file);
  if (!text) return fail(text.error());
  const auto model = load_model(options.engine);
  if (!model) return fail(model.error());
  options.engine.session.context = options.chunk;
  if (const auto described = describe(*model, options.engine); !described)
    return fail(described.error());
  auto session = create_session(*model, options.engine);
  if (!session) return fail(session.error());
  return measure(*model, *session, options, *text);
}

}  // namespace

void add_perplexity(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("perplexity", "Measure how well a model predicts a text");
  add_engine_options(*command, options->engine);
  command->add_option("-f,--file", options->file, "the text; - is standard input; required")
      ->required()
      ->option_text("FILE");
  command
      ->add_option("-c,--ctx-size", options->chunk,
                   "tokens of a chunk; the second half of each is scored")
      ->check(CLI::Range(4, 1 << 20).description(""))
      ->capture_default_str();
  command->add_option("--chunks", options->max_chunks, "stop after so many chunks [-1: all]")
      ->check(CLI::Range(-1, INT32_MAX).description(""));
  command
      ->add_option("--save-logits,--save-all-logits", options->save_logits,
                   "write the log-probabilities of all scored positions")
      ->option_text("FILE");
  command
      ->add_option("--kl-base", options->kl_base,
                   "compare with such a file of another run, tsq's or llama.cpp's")
      ->option_text("FILE");
  command->callback([options, &exit_code] { exit_code = perplexity(*options); });
}

}  // namespace tsq::tool
