#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/errorf.h"
#include "chat.h"
#include "check_hadamard.h"
#include "commands.h"
#include "engine.h"
#include "generation.h"
#include "log.h"
#include "support.h"
#include "tsq/sampler.h"

namespace tsq::tool {
namespace {

struct Options {
  EngineOptions engine;
  SamplerOptions sampler;
  std::optional<std::string> prompt;
  std::string prompt_file;
  GenerationOptions generation;
  std::string seed = "-1";  // a number of 64 bits; -1: random
  bool parse_special = false;
  bool display_prompt = false;
  bool no_timings = false;
  bool check_hadamard = false;

  bool conversation = false, no_conversation = false;  // neither: as wants_chat() has it
  ChatOptions chat;
  std::optional<std::string> system_prompt;
  std::string system_file, template_file;
  std::optional<std::string> think;  // "on", "off"
};

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
  return number;
}

Result<std::string> read_prompt(const Options& options) {
  if (options.prompt) return *options.prompt;
  if (options.prompt_file.empty() && is_terminal(stdin))
    return Error(
        ErrorCode::invalid_argument,
        "run: no prompt: give one with -p TEXT, with -f FILE or on standard input, or talk "
        "with -cnv");
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

// The text as it is, on stdout.
class PlainSink final : public Sink {
 public:
  bool show(std::string_view text) override {
    failed_ = failed_ || !print(text);
    ends_line_ = text.ends_with('\n');
    return !failed_;
  }
  bool finish() { return (ends_line_ || show("\n")) && !failed_; }

 private:
  bool ends_line_ = true, failed_ = false;
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
  Reader reader(session);
  const auto logits = reader.read(*tokens);
  if (!logits) {
    if (logits.error().code() == ErrorCode::cancelled) return kInterrupted;
    return fail(logits.error());
  }

  // On a terminal the text reads on from its prompt; a file or a pipe gets the answer alone.
  if (options.display_prompt) {
    if (!print(prompt)) return kFailure;
  } else if (is_terminal(stdout) && is_terminal(stderr) && !log_json()) {
    std::fputs(prompt.c_str(), stderr);
  }
  PlainSink sink;
  Generation generation(tokenizer, reader, sampler, options.generation, sink);
  const auto done = generation.run(*logits);
  if (!sink.finish()) return kFailure;
  if (generation.context_full())
    warn("the context is full at %d tokens: the text stops here", session.context());
  if (!options.no_timings) {
    reader.timing().print("prompt");
    generation.timing().print("generated");
  }
  if (!done) return fail(done.error());
  return interrupted() ? kInterrupted : kSuccess;
}

// The first option on the command line that only a conversation has, or null. The environment may
// hold them for all runs.
const char* given_chat_option(const Options& options) {
  struct ChatOption {
    bool given;
    const char *name, *variable;
  };
  for (const auto& [given, name, variable] : {
           ChatOption{options.system_prompt.has_value(), "-sys", "TSQ_SYSTEM_PROMPT"},
           ChatOption{!options.system_file.empty(), "-sysf", "TSQ_SYSTEM_PROMPT_FILE"},
           ChatOption{options.think.has_value(), "--think", "TSQ_THINK"},
           ChatOption{options.chat.think_budget >= 0, "--think-budget", "TSQ_THINK_BUDGET"},
           ChatOption{!options.template_file.empty(), "--chat-template-file",
                      "TSQ_CHAT_TEMPLATE_FILE"},
           ChatOption{options.chat.single_turn, "-st", "TSQ_SINGLE_TURN"},
       })
    if (given && std::getenv(variable) == nullptr) return name;
  return nullptr;
}

// Whether to talk: as told, else where there is somebody to talk to and no prompt to go on from.
bool wants_chat(const Options& options, const Model& model) {
  if (options.conversation || options.no_conversation) return options.conversation;
  if (given_chat_option(options) != nullptr) return true;
  return !options.prompt && options.prompt_file.empty() && is_terminal(stdin) &&
         is_terminal(stdout) && model.chat_template();
}

Result<void> check_chat_options(const Options& options, bool talks) {
  const char* const option = given_chat_option(options);
  if (options.no_conversation && option != nullptr)
    return errorf(ErrorCode::invalid_argument,
                  "run: %s needs a conversation, -no-cnv forbids it: leave one of them out",
                  option);
  if (talks && options.check_hadamard)
    return Error(ErrorCode::invalid_argument,
                 "run: --check-hadamard looks at one prompt: give it with -p, and no conversation");
  return {};
}

int run_chat(const Model& model, Session& session, Sampler& sampler, const Options& options) {
  ChatOptions chat_options = options.chat;
  chat_options.timings = !options.no_timings;
  if (options.think) chat_options.dialogue.think = *options.think == "on";
  if (options.system_prompt) chat_options.dialogue.system = *options.system_prompt;
  if (!options.system_file.empty()) {
    auto read = read_text(options.system_file);
    if (!read) return fail(read.error());
    chat_options.dialogue.system = *std::move(read);
  }
  if (!options.template_file.empty()) {
    auto read = read_text(options.template_file);
    if (!read) return fail(read.error());
    if (const auto parsed = chat::Template::parse(*read); !parsed)
      return fail(parsed.error().at(options.template_file));
    chat_options.dialogue.template_text = *std::move(read);
  }
  std::optional<std::string> first;
  if (options.prompt || !options.prompt_file.empty() ||
      (options.chat.single_turn && !is_terminal(stdin))) {
    auto prompt = read_prompt(options);
    if (!prompt) return fail(prompt.error());
    if (prompt->find_first_not_of(" \t\r\n") == std::string::npos)
      return fail({ErrorCode::invalid_argument, "run: the message is empty, expected some text"});
    first = *std::move(prompt);
  }
  return chat(model, session, sampler, options.generation, chat_options, first);
}

// "hadamard-r64": the block of the rotation is 64 wide.
std::optional<int> parse_adapter(const std::string& text) {
  constexpr std::string_view kPrefix = "hadamard-r";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const auto block = parse_number(text.substr(kPrefix.size()));
  if (!block || !std::has_single_bit(*block)) return std::nullopt;
  return std::bit_width(*block) - 1;
}

int run(const Options& options) {
  SamplerOptions sampling = options.sampler;
  sampling.seed = parse_number(options.seed).value_or(std::random_device()());
  const auto model = load_model(options.engine);
  if (!model) return fail(model.error());
  const bool talks = wants_chat(options, *model);
  if (const auto checked = check_chat_options(options, talks); !checked)
    return fail(checked.error());
  Result<std::string> prompt = std::string();
  if (!talks) prompt = read_prompt(options);
  if (!prompt) return fail(prompt.error());
  auto sampler = Sampler::create(model->vocab_size(), sampling);
  if (!sampler) return fail(sampler.error().at("run"));
  if (const auto described = describe(*model, options.engine); !described)
    return fail(described.error());
  auto session = create_session(*model, options.engine);
  if (!session) return fail(session.error());
  info_fact("seed", std::to_string(sampling.seed), {{"seed", sampling.seed}});
  if (!talks && !options.no_conversation && model->chat_template())
    info_fact("note", "the model goes on from the text: -cnv talks by its chat template", {});
  return talks ? run_chat(*model, *session, *sampler, options)
               : generate(*model, *session, *sampler, options, *prompt);
}

void add_chat_options(CLI::App& command, Options& o) {
  const char* const group = "Conversation";
  auto* talk = command
                   .add_flag("--conversation", o.conversation,
                             "talk by the model's chat template (-cnv) [on a terminal, if it "
                             "has one]")
                   ->group(group);
  command.add_flag("--no-conversation", o.no_conversation, "never (-no-cnv)")
      ->excludes(talk)
      ->group(group);
  auto* system = command
                     .add_option("--system-prompt", o.system_prompt,
                                 "what the model is told before the conversation (-sys)")
                     ->option_text("TEXT")
                     ->group(group);
  command.add_option("--system-prompt-file", o.system_file, "the same, from a file (-sysf)")
      ->option_text("FILE")
      ->excludes(system)
      ->group(group);
  command
      .add_option("--think", o.think,
                  "let the model think before it answers [as its template has it]")
      ->check(CLI::IsMember({"on", "off"}))
      ->option_text("on|off")
      ->group(group);
  command
      .add_option("--think-budget", o.chat.think_budget,
                  "tokens of thought before the answer has to begin [-1: no limit]")
      ->check(CLI::Range(-1, INT32_MAX).description(""))
      ->type_name("N")
      ->group(group);
  command
      .add_option("--chat-template-file", o.template_file,
                  "a Jinja template instead of the model's")
      ->option_text("FILE")
      ->group(group);
  command
      .add_flag("--single-turn", o.chat.single_turn, "one message, one answer, and the end (-st)")
      ->group(group);
  command.add_option("--history", o.chat.history_file, "keeps what was typed, for the arrow keys")
      ->option_text("FILE")
      ->group(group);
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
      ->add_option("-n,--predict,--n-predict", o.generation.predict,
                   "tokens to generate [-1: until the text ends or the context is full]")
      ->check(CLI::Range(-1, INT32_MAX).description(""))
      ->type_name("N");
  command->add_option("-s,--seed", o.seed, "seed of the sampler [-1: a new one each time]")
      ->check([](const std::string& text) {
        return text == "-1" || parse_number(text) ? "" : "expected 0 to 2^64 - 1, or -1";
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
  command
      ->add_option("-r,--stop,--reverse-prompt", o.generation.stops,
                   "end before this text (repeatable)")
      ->allow_extra_args(false)
      ->check([](const std::string& text) { return text.empty() ? "the text is empty" : ""; });
  command->add_flag("--parse-special", o.parse_special,
                    "control tokens written out in the prompt are meant as such");
  command->add_flag("--ignore-eos", o.generation.ignore_eos, "do not let the model end the text");
  command->add_flag("--display-prompt", o.display_prompt, "begin the output with the prompt");
  command->add_flag("--no-timings", o.no_timings, "do not print the timings");
  command->add_flag("--check-hadamard", o.check_hadamard,
                    "check the rotations on the prompt, and print what they do to it");
  command
      ->add_option_function<std::string>(
          "--adapter",
          [&o](const std::string& text) { o.engine.hadamard_order = parse_adapter(text); },
          "hadamard-r64: the block of the rotation, instead of what the file says; its probes have "
          "to agree")
      ->check([](const std::string& text) {
        return parse_adapter(text) ? "" : "expected hadamard-rN, N a power of two";
      })
      ->type_name("NAME");
  add_chat_options(*command, o);
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tsq::tool
