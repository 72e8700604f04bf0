#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/errorf.h"
#include "bench/read_bandwidth.h"
#include "bench_report.h"
#include "commands.h"
#include "engine.h"
#include "file_summary.h"
#include "format/reader.h"
#include "model_file.h"
#include "support.h"
#include "tsq/session.h"

namespace tsq::tool {
namespace {

struct Options {
  std::vector<std::string> models;
  std::vector<std::int32_t> prompts = {512};
  std::vector<std::int32_t> generations = {128};
  std::vector<std::int32_t> depths = {0};
  std::vector<std::int32_t> threads = {0};
  std::vector<std::string> activations = {"int8"};
  std::string repack = "none";
  std::int32_t repetitions = 5;
  std::uint64_t seed = 1;
  bool no_warmup = false;
  std::string format = "md";
};

// So many tokens of a prompt, or decoded one by one, behind `depth` others.
struct Test {
  std::int32_t prompt, generate, depth;
};

std::vector<Test> tests_of(const Options& options) {
  std::vector<Test> tests;
  for (const std::int32_t depth : options.depths) {
    for (const std::int32_t n : options.prompts)
      if (n > 0) tests.push_back({n, 0, depth});
    for (const std::int32_t n : options.generations)
      if (n > 0) tests.push_back({0, n, depth});
  }
  return tests;
}

// What decoding a token reads of the weights: every tensor whole, but of the embedding one row,
// unless it is the head as well. The key/value cache is not counted.
std::uint64_t bytes_per_token(const format::File& file) {
  std::uint64_t bytes = 0;
  for (const format::TensorRecord& tensor : file.tensors()) {
    const bool one_row =
        tensor.name == "token_embd.weight" && file.find("output.weight") != nullptr;
    const std::uint64_t rows = format::padded_rows(tensor.encoding, tensor.rows());
    bytes += (tensor.body_bytes + tensor.scale_bytes) / (one_row ? rows : 1);
  }
  return bytes;
}

// A window of the mapped weights, another one each time: close to what is measured in time, and
// more than the caches hold, where the model is.
class Window {
 public:
  explicit Window(std::span<const std::byte> data) : data_(data) {}

  std::span<const std::byte> next() {
    constexpr std::size_t kBytes = std::size_t{256} << 20;
    if (data_.size() <= kBytes) return data_;
    if (at_ + kBytes > data_.size()) at_ = 0;
    const auto window = data_.subspan(at_, kBytes);
    at_ += kBytes;
    return window;
  }

 private:
  std::span<const std::byte> data_;
  std::size_t at_ = 0;
};

Error cancelled() { return {ErrorCode::cancelled, "cancelled"}; }

// One model under one number of threads and one kind of activations.
class Bench {
 public:
  Bench(const Options& options, const Model& model, const format::File& file, Session& session)
      : options_(options), model_(model), file_(file), session_(session), window_(file.data()) {}

  // Fills the row's times and, of decoding, what the memory gave.
  Result<void> measure(const Test& test, BenchRow& row) {
    ProgressBar bar(row.test(), ProgressBar::Unit::tokens);
    if (auto done = go_to(test.depth); !done) return done;
    if (!options_.no_warmup) {
      const Test warmup = {test.prompt, std::min(test.generate, 1), test.depth};
      if (const auto seconds = repeat(warmup, bar); !seconds) return seconds.error();
    }
    bench::ReadCeiling ceiling(session_.threads(), bench::Clock::wall);
    const bool decoding = test.generate > 0;
    if (decoding) ceiling.measure(window_.next());
    done_ = 0;
    total_ = static_cast<std::uint64_t>(options_.repetitions) *
             static_cast<std::uint64_t>(test.prompt + test.generate);
    for (std::int32_t i = 0; i < options_.repetitions; ++i) {
      const auto seconds = repeat(test, bar);
      if (!seconds) return seconds.error();
      row.seconds.push_back(*seconds);
      if (decoding) ceiling.measure(window_.next());
    }
    if (decoding) row.memory = memory(ceiling, row);
    return {};
  }

 private:
  BenchRow::Memory memory(const bench::ReadCeiling& ceiling, const BenchRow& row) const {
    const RepackTotals repacked = model_.repacked();
    const std::uint64_t bytes = bytes_per_token(file_) - repacked.file_bytes + repacked.bytes;
    std::vector<double> speeds;
    for (const double tokens : row.speeds())
      speeds.push_back(tokens * static_cast<double>(bytes) * 1e-9);
    return {bytes, ceiling.speed(), ceiling.share(speeds).median};
  }

  // Brings `depth` random tokens into the context; what is there already is used.
  Result<void> go_to(std::int32_t depth) {
    const std::int32_t back = session_.rewindable(std::min(depth, session_.position()));
    if (const auto rewound = session_.rewind(back); !rewound) return rewound;
    if (session_.position() == depth) return session_.mark();
    const auto tokens = random_tokens(depth - session_.position());
    const auto read =
        session_.append(tokens, Logits::last, [](auto, auto) { return !interrupted(); });
    if (!read) return read.error();
    return session_.mark();
  }

  // Seconds.
  Result<double> repeat(const Test& test, ProgressBar& bar) {
    if (const auto back = session_.rewind(test.depth); !back) return back.error();
    const auto tokens = random_tokens(test.prompt + test.generate);
    const auto start = std::chrono::steady_clock::now();
    const std::size_t step = test.prompt > 0 ? tokens.size() : 1;
    for (std::size_t at = 0; at < tokens.size(); at += step) {
      if (interrupted()) return cancelled();
      const auto read = session_.append(
          std::span(tokens).subspan(at, step), Logits::last, [&](std::int32_t done, auto) {
            bar.update(done_ + static_cast<std::uint64_t>(done), total_);
            return !interrupted();
          });
      if (!read) return read.error();
      done_ += step;
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  std::vector<Token> random_tokens(std::int32_t n) {
    std::vector<Token> tokens(static_cast<std::size_t>(n));
    for (Token& token : tokens) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      token = static_cast<Token>((random_ >> 33) % static_cast<std::uint64_t>(model_.vocab_size()));
    }
    return tokens;
  }

  const Options& options_;
  const Model& model_;
  const format::File& file_;
  Session& session_;
  Window window_;
  std::uint64_t random_ = options_.seed;
  std::uint64_t done_ = 0, total_ = 0;
};

BenchFormat format_of(const std::string& name) {
  return name == "md"    ? BenchFormat::markdown
         : name == "csv" ? BenchFormat::csv
                         : BenchFormat::json;
}

// Reads every page once: a page that was never touched is slower to read.
void touch(std::span<const std::byte> data) {
  bench::slowest_seconds(1, bench::Clock::wall, [&](int) { bench::read_all(0, data); });
}

// Prints rows as they come.
class Table {
 public:
  explicit Table(BenchFormat format) : format_(format) {}
  ~Table() {
    if (rows_ > 0) print(bench_end(format_));
  }
  bool add(const BenchRow& row) {
    const std::string begin = rows_ == 0 ? bench_begin(format_) : "";
    return print(begin + bench_row(format_, row, rows_++ == 0));
  }

 private:
  BenchFormat format_;
  std::size_t rows_ = 0;
};

Result<void> bench_session(const Options& options, const Model& model, const format::File& file,
                           BenchRow row, Table& table, std::int32_t threads) {
  const auto tests = tests_of(options);
  std::int32_t context = 0;
  for (const Test& test : tests)
    context = std::max(context, test.depth + test.prompt + test.generate);
  EngineOptions engine;
  engine.activations = row.activations;
  engine.session = {.context = context, .threads = threads};
  auto session = create_session(model, engine);
  if (!session) return session.error();
  row.threads = session->threads();
  Bench bench(options, model, file, *session);
  for (const Test& test : tests) {
    row.prompt = test.prompt;
    row.generate = test.generate;
    row.depth = test.depth;
    row.seconds.clear();
    row.memory.reset();
    if (const auto measured = bench.measure(test, row); !measured)
      return measured.error().at(row.test());
    if (!table.add(row)) return Error(ErrorCode::io, "");  // said already
  }
  return {};
}

Result<void> bench_model(const Options& options, const std::string& given, Table& table) {
  const auto path = model_path(given);
  if (!path) return path.error();
  EngineOptions engine;
  engine.repack = options.repack;
  const auto model = open_model(*path, engine);
  if (!model) return with_convert_hint(model.error(), *path);
  const auto opened = format::open(*path);
  if (!opened) return opened.error();
  touch(opened->file.data());
  const auto cpu = cpu_level();
  if (!cpu) return cpu.error();

  BenchRow row;
  row.model = model->name();
  row.path = path->string();
  row.model_bytes = model->file_bytes();
  row.parameters = summarise(opened->file).parameters;
  row.cpu = *cpu;
  for (const std::int32_t threads : options.threads) {
    for (const std::string& activations : options.activations) {
      row.activations = activations;
      const auto done = bench_session(options, *model, opened->file, row, table, threads);
      if (!done) return done;
    }
  }
  return {};
}

int bench(const Options& options) {
  if (tests_of(options).empty())
    return fail({ErrorCode::invalid_argument, "bench: -p and -n are 0: nothing to measure"});
  watch_interrupt();
  std::optional<Error> error;
  {
    Table table(format_of(options.format));
    for (const std::string& model : options.models) {
      const auto done = bench_model(options, model, table);
      if (!done) {
        error = done.error();
        break;
      }
    }
  }
  if (!error) return kSuccess;
  if (error->code() == ErrorCode::cancelled) return kInterrupted;
  return error->message().empty() ? kFailure : fail(*error);
}

template <class T>
CLI::Option* add_list(CLI::App& command, const std::string& names, std::vector<T>& values,
                      const std::string& what) {
  return command.add_option(names, values, what)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("N,...");
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  CLI::App* command = app.add_subcommand("bench", "Measure tokens per second");
  command
      ->add_option("-m,--model", o.models, "a .tsq file; may be repeated [models/fairy-tales.tsq]")
      ->allow_extra_args(false)
      ->option_text("FILE");
  constexpr std::int32_t kMost = 1 << 20;
  const CLI::Validator count = CLI::Range(0, kMost).description("");
  add_list(*command, "-p,--n-prompt", o.prompts, "tokens of a prompt; 0: none [512]")->check(count);
  add_list(*command, "-n,--n-gen", o.generations, "tokens to decode; 0: none [128]")->check(count);
  add_list(*command, "-d,--n-depth", o.depths, "tokens in the context before [0]")->check(count);
  add_list(*command, "-t,--threads", o.threads, "threads [one a physical core]")
      ->check(CLI::Range(1, 1 << 12).description(""));
  add_list(*command, "--activations", o.activations, "int8, f32 [int8]")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->option_text("int8|f32,...");
  add_repack_option(*command, o.repack);
  command->add_option("-r,--repetitions", o.repetitions, "of each test [5]")
      ->check(CLI::Range(1, 10000).description(""))
      ->type_name("N");
  command->add_option("-s,--seed", o.seed, "of the random tokens [1]")->type_name("N");
  command->add_flag("--no-warmup", o.no_warmup, "do not run each test once before");
  command->add_option("-o,--format,--output", o.format, "the table's format [md]")
      ->check(CLI::IsMember({"md", "csv", "json"}))
      ->option_text("md|csv|json");
  command->footer(
      "Tests are named as llama-bench does: pp512 reads a prompt, tg128 decodes, '@ d4096' stands "
      "behind so many tokens. The values of a list, and repeated options, are measured one by "
      "one.\n\n"
      "per token: the weights that decoding one token reads; of the embedding that is one row, "
      "unless it is the head too. The key/value cache is not counted. read: what the memory gave "
      "as many threads in the same run, over the same mapped file, between the repetitions.");
  command->callback([options, &exit_code] {
    if (options->models.empty()) options->models.emplace_back();
    exit_code = bench(*options);
  });
}

}  // namespace tsq::tool
