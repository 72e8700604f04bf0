#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/errorf.h"
#include "check_hadamard.h"
#include "commands.h"
#include "engine.h"
#include "support.h"
#include "text_stream.h"
#include "tsq/sampler.h"

namespace tsq::tool {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  EngineOptions engine;
  SamplerOptions sampler;
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::int32_t predict = -1;  // -1: until the text ends or the context is full
  std::string seed = "-1";    // a number of 64 bits; -1: random
  std::vector<std::string> stops;
  bool parse_special = false;
  bool ignore_eos = false;
  bool display_prompt = false;
  bool no_timings = false;
  bool check_hadamard = false;
};

struct Timing {
  std::size_t tokens = 0;
  std::size_t computed = 0;  // tokens that the model was run for: an answer's last one is not
  double seconds = 0;

  void print(const char* what) const {
    std::fprintf(stderr, "%-10s %zu token%s in %.2f s", what, tokens, tokens == 1 ? "" : "s",
                 seconds);
    if (computed > 0 && seconds > 0)
      std::fprintf(stderr, ", %.1f tokens/s", static_cast<double>(computed) / seconds);
    std::fputc('\n', stderr);
  }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::optional<std::uint64_t> parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
  return seed;
}

Result<std::string> read_prompt(const Options& options) {
  if (options.prompt) return *options.prompt;
  if (options.prompt_file.empty() && is_terminal(stdin))
    return Error(ErrorCode::invalid_argument,
                 "run: no prompt: give one with -p TEXT, with -f FILE or on standard input");
  auto text = read_text(options.prompt_file.empty() ? "-" : options.prompt_file);
  if (text && text->ends_with('\n')) text->pop_back();  // the editor's, not the writer's
  return text;
}

// The prompt's tokens; at least one.
Result<std::vector<Token>> encode_prompt(const Tokenizer& tokenizer, const std::string& prompt,
                                         bool parse_special) {
  auto tokens = encode_text(tokenizer, prompt, parse_special);
  if (!tokens) return tokens.error().at("prompt");
  if (!tokens->empty()) return tokens;
  if (const auto bos = tokenizer.bos()) return std::vector<Token>{*bos};
  return Error(ErrorCode::invalid_argument,
               "the prompt is empty, and the model has no token that begins a text");
}

// One answer: from the logits after the prompt to the end of the text.
class Generation {
 public:
  Generation(const Tokenizer& tokenizer, Session& session, Sampler& sampler, const Options& options)
      : tokenizer_(tokenizer),
        session_(session),
        sampler_(sampler),
        options_(options),
        stream_(options.stops) {}

  Result<void> run(std::span<const float> logits) {
    const auto start = Clock::now();
    const auto done = continue_from(logits);
    timing_.seconds = seconds_since(start);
    show(stream_.finish());
    if (!ends_line_) show("\n");
    return done;
  }

  bool context_full() const { return context_full_; }
  bool output_failed() const { return output_failed_; }
  const Timing& timing() const { return timing_; }

 private:
  Result<void> continue_from(std::span<const float> logits) {
    const auto limit = static_cast<std::size_t>(options_.predict);
    while (options_.predict < 0 || timing_.tokens < limit) {
      if (interrupted()) return {};
      const Token token = next(logits);
      if (tokenizer_.is_end(token)) return {};
      ++timing_.tokens;
      if (!tokenizer_.is_control(token)) show(stream_.push(tokenizer_.bytes(token)));
      if (stream_.stopped() || output_failed_ || timing_.tokens == limit) return {};
      if (session_.position() == session_.context()) {
        context_full_ = true;
        return {};
      }
      const auto appended = session_.append({&token, 1});
      if (!appended) return appended.error();
      ++timing_.computed;
      logits = *appended;
    }
    return {};
  }

  Token next(std::span<const float> logits) {
    if (options_.ignore_eos) {
      allowed_.assign(logits.begin(), logits.end());
      for (const Token end : tokenizer_.end_tokens())
        allowed_[static_cast<std::size_t>(end)] = -1e30f;
      logits = allowed_;
    }
    const Token token = sampler_.sample(logits);
    sampler_.accept(token);
    return token;
  }

  void show(const std::string& text) {
    if (text.empty() || output_failed_) return;
    output_failed_ = !print(text);
    ends_line_ = text.ends_with('\n');
  }

  const Tokenizer& tokenizer_;
  Session& session_;
  Sampler& sampler_;
  const Options& options_;
  TextStream stream_;
  Timing timing_;
  std::vector<float> allowed_;
  bool context_full_ = false;
  bool ends_line_ = true;
  bool output_failed_ = false;
};

int generate(const Model& model, Session& session, Sampler& sampler, const Options& options,
             const std::string& prompt) {
  const Tokenizer& tokenizer = *model.tokenizer();
  const auto tokens = encode_prompt(tokenizer, prompt, options.parse_special);
  if (!tokens) return fail(tokens.error());
  for (const Token token : *tokens) sampler.accept(token);

  watch_interrupt();
  if (options.check_hadamard) {
    const auto checked = check_hadamard(model, options.engine, *tokens);
    if (!checked) return fail(checked.error());
  }
  Timing reading{tokens->size(), tokens->size(), 0};
  const auto start = Clock::now();
  ProgressBar bar("prompt", ProgressBar::Unit::tokens);
  const auto logits = session.append(*tokens, Logits::last, [&](std::int32_t done, std::int32_t n) {
    bar.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(n));
    return !interrupted();
  });
  bar.clear();
  reading.seconds = seconds_since(start);
  if (!logits) {
    if (logits.error().code() == ErrorCode::cancelled) return kInterrupted;
    return fail(logits.error().at("prompt"));
  }

  // On a terminal the text reads on from its prompt; a file or a pipe gets the answer alone.
  if (options.display_prompt) {
    if (!print(prompt)) return kFailure;
  } else if (is_terminal(stdout) && is_terminal(stderr)) {
    std::fputs(prompt.c_str(), stderr);
  }
  Generation generation(tokenizer, session, sampler, options);
  const auto done = generation.run(*logits);
  if (generation.output_failed()) return kFailure;
  if (generation.context_full())
    warn("the context is full at %d tokens: the text stops here", session.context());
  if (!options.no_timings) {
    reading.print("prompt");
    generation.timing().print("generated");
  }
  if (!done) return fail(done.error());
  return interrupted() ? kInterrupted : kSuccess;
}

int run(const Options& options) {
  SamplerOptions sampling = options.sampler;
  sampling.seed = parse_seed(options.seed).value_or(std::random_device()());
  const auto prompt = read_prompt(options);
  if (!prompt) return fail(prompt.error());
  const auto model = load_model(options.engine);
  if (!model) return fail(model.error());
  auto sampler = Sampler::create(model->vocab_size(), sampling);
  if (!sampler) return fail(sampler.error().at("run"));
  auto session = create_session(*model, options.engine);
  if (!session) return fail(session.error());
  describe(*model, *session, options.engine);
  std::fprintf(stderr, "seed       %llu\n", static_cast<unsigned long long>(sampling.seed));
  return generate(*model, *session, *sampler, options, *prompt);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  CLI::App* command = app.add_subcommand("run", "Generate text from a prompt");
  add_engine_options(*command, o.engine);
  command
      ->add_option("-c,--ctx-size,--max-context", o.engine.session.context,
                   "tokens of context [the model's, or what memory holds]")
      ->type_name("N");
  auto* prompt = command->add_option("-p,--prompt", o.prompt, "the text to go on from");
  command->add_option("-f,--file", o.prompt_file, "a file with the prompt; - is standard input")
      ->option_text("FILE")
      ->excludes(prompt);
  prompt->option_text("TEXT");
  command
      ->add_option("-n,--predict,--n-predict", o.predict,
                   "tokens to generate [-1: until the text ends or the context is full]")
      ->check(CLI::Range(-1, INT32_MAX).description(""))
      ->type_name("N");
  command->add_option("-s,--seed", o.seed, "seed of the sampler [-1: a new one each time]")
      ->check([](const std::string& text) {
        return text == "-1" || parse_seed(text) ? "" : "expected 0 to 2^64 - 1, or -1";
      })
      ->type_name("N");
  command->add_option("--temp", o.sampler.temperature, "temperature; 0 takes the likeliest token")
      ->capture_default_str();
  command->add_option("--top-k", o.sampler.top_k, "choose among the k likeliest; 0 is all")
      ->capture_default_str();
  command->add_option("--top-p", o.sampler.top_p, "choose among the likeliest that hold this share")
      ->capture_default_str();
  command
      ->add_option("--min-p", o.sampler.min_p,
                   "choose among those at least this likely, relative to the likeliest")
      ->capture_default_str();
  command
      ->add_option("--repeat-penalty", o.sampler.repeat_penalty,
                   "divides the logits of recent tokens; 1 is none")
      ->capture_default_str();
  command->add_option("--repeat-last-n", o.sampler.repeat_last_n, "how far back the penalty looks")
      ->capture_default_str();
  command->add_option("-r,--stop,--reverse-prompt", o.stops, "end before this text (repeatable)")
      ->allow_extra_args(false)
      ->check([](const std::string& text) { return text.empty() ? "the text is empty" : ""; });
  command->add_flag("--parse-special", o.parse_special,
                    "control tokens written out in the prompt are meant as such");
  command->add_flag("--ignore-eos", o.ignore_eos, "do not let the model end the text");
  command->add_flag("--display-prompt", o.display_prompt, "begin the output with the prompt");
  command->add_flag("--no-timings", o.no_timings, "do not print the timings");
  command->add_flag("--check-hadamard", o.check_hadamard,
                    "check the rotations on the prompt, and print what they do to it");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tsq::tool
