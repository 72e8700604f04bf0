#include "convert/convert.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "arch/graph.h"
#include "base/errorf.h"
#include "base/thread_pool.h"
#include "commands.h"
#include "engine/token_probe.h"
#include "file_summary.h"
#include "format/reader.h"
#include "model_file.h"
#include "support.h"

namespace tsq::tool {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> sources, named_sources;
  std::string target;
  std::string encoding = "auto";
  std::string dense = "keep";
  std::vector<std::string> layouts;
  int threads = 0;
  bool no_probe = false;
  bool allow_random = false;
  bool force = false;
};

// A converted file may be made again; a file of another kind was hardly meant.
Result<void> check_target(const Options& options) {
  std::error_code ignored;
  const fs::path target = options.target;
  if (options.force || !fs::is_regular_file(target, ignored) || is_tsq(target) ||
      fs::file_size(target, ignored) == 0)
    return {};
  return errorf(ErrorCode::io, "%s: exists and is no .tsq file; --force replaces it",
                target.c_str());
}

// A message that names no file yet is about the source, or about writing the target.
Error with_path(const Error& error, const fs::path& source, const fs::path& target) {
  for (const fs::path& path : {source, target})
    for (const std::string& start : {path.string() + ": ", (path / "").string()})
      if (error.message().starts_with(start)) return error;
  return error.at((error.code() == ErrorCode::io ? target : source).string());
}

std::string result_text(const format::File& file, const convert::Summary& summary) {
  std::string text = summary_text(file);
  if (summary.ternary_weights > 0 && summary.ternary_bytes != summary.ternary_bytes_as_t2) {
    const std::uint64_t as_t2 =
        summary.file_bytes - summary.ternary_bytes + summary.ternary_bytes_as_t2;
    text += stringf("%-13s --encoding t2 would weigh %s; CPUs without AVX-512 run it faster\n",
                    "hint", human_bytes(as_t2).c_str());
  }
  return text;
}

// What happened to dense values, and to ternary ones that no ternary encoding holds.
std::string dense_text(const convert::Summary& summary, const std::string& dense) {
  std::string text;
  if (summary.widened_tensors > 0)
    text += stringf("%-13s %zu tensors of other block types, %s as f16 or f32, without loss\n",
                    "widened", summary.widened_tensors, human_bytes(summary.widened_bytes).c_str());
  if (summary.narrowed_tensors > 0)
    text += stringf("%-13s %zu dense tensors, to %s as asked\n", "rounded",
                    summary.narrowed_tensors, dense.c_str());
  if (summary.recognised_tensors > 0)
    text += stringf("%-13s %zu float tensors whose values are ternary, without loss\n",
                    "recognised", summary.recognised_tensors);
  if (!summary.beyond_f16.empty())
    text += stringf(
        "%-13s %zu float tensors of ternary values, whose scales fp16 does not hold; "
        "the first is '%s'\n",
        "left dense", summary.beyond_f16.size(), printable(summary.beyond_f16[0]).c_str());
  if (summary.ternary_as_q4 > 0)
    text += stringf("%-13s %zu ternary tensors that no ternary encoding holds, without loss\n",
                    "as q4", summary.ternary_as_q4);
  return text;
}

// A model that tsq has a graph for must have what it needs, so that verify passes what convert
// wrote; of others nobody knows.
Result<void> check_graph(const format::File& file) {
  const auto architecture = file.metadata().require_string("general.architecture");
  if (!architecture) return architecture.error();
  if (!has_graph(*architecture)) return {};
  const auto graph = make_graph(file);
  return graph ? Result<void>() : graph.error();
}

void warn_without_graph(const format::File& file) {
  const auto architecture = file.metadata().require_string("general.architecture");
  if (!architecture || has_graph(*architecture)) return;
  warn(
      "tsq has no graph for the architecture '%s' yet: the file can be kept and inspected, not run",
      printable(*architecture).c_str());
}

convert::ConvertOptions library_options(const Options& options) {
  convert::ConvertOptions how;
  if (options.encoding == "t1") how.encoding = convert::TernaryEncoding::t1;
  if (options.encoding == "t2") how.encoding = convert::TernaryEncoding::t2;
  if (options.dense == "f16") how.dense = convert::DenseEncoding::f16;
  if (options.dense == "q8") how.dense = convert::DenseEncoding::q8;
  if (options.dense == "q4") how.dense = convert::DenseEncoding::q4;
  for (const std::string& layout : options.layouts) {
    if (layout == "i2s-64") how.layouts.i2s_64 = true;
    if (layout == "stq-consecutive") how.layouts.stq_consecutive = true;
  }
  how.threads = threads_for(std::max(0, options.threads));
  how.allow_random = options.allow_random;
  how.check_model = check_graph;
  return how;
}

int convert(const Options& options) {
  if (const auto usable = check_target(options); !usable) return fail(usable.error());
  std::vector<fs::path> sources(options.sources.begin(), options.sources.end());
  sources.insert(sources.end(), options.named_sources.begin(), options.named_sources.end());
  if (sources.empty()) return fail(errorf(ErrorCode::invalid_argument, "convert: SRC is required"));
  ProgressBar bar("convert", ProgressBar::Unit::bytes);

  auto how = library_options(options);
  how.progress = [&](const convert::Progress& p) {
    bar.update(p.bytes_done, p.bytes_total);
    return true;
  };
  if (!options.no_probe) {
    how.token_probe = [&](const fs::path& temporary) {
      bar.restart("probe", ProgressBar::Unit::tokens);
      return compute_token_probe(temporary, [&](int done, int total) {
        bar.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
        return true;
      });
    };
  }
  const auto summary = convert::convert(sources, options.target, how);
  bar.clear();
  if (!summary) return fail(with_path(summary.error(), sources[0], options.target));
  for (const std::string& warning : summary->warnings) warn("%s", warning.c_str());
  if (summary->dropped_merges > 0)
    warn("%zu merges of the tokenizer name tokens that do not exist; they are left out",
         summary->dropped_merges);
  if (!summary->has_tokenizer) warn("no tokenizer in the file: %s", summary->no_tokenizer.c_str());
  const auto written = format::open(options.target);
  if (!written) return fail(written.error());
  warn_without_graph(written->file);
  return print(result_text(written->file, *summary) + dense_text(*summary, options.dense))
             ? kSuccess
             : kFailure;
}

}  // namespace

void add_convert(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  CLI::App* command = app.add_subcommand(
      "convert",
      "Make a .tsq file of a GGUF, a Hugging Face folder or another .tsq, without losing a value");
  command
      ->add_option("SRC", o.sources,
                   "a GGUF file, the parts of a split one, a folder with config.json and "
                   "safetensors, or a .tsq file (also --src)")
      ->type_name("PATH");
  command->add_option("--src", o.named_sources)->group("");
  command->add_option("-o,--output,--dst", o.target, "the .tsq file to write; required")
      ->required()
      ->option_text("FILE");
  command
      ->add_option(
          "--encoding", o.encoding,
          "of ternary weights: t1 is smaller, t2 faster [auto: s34 where it can, t2 where a group "
          "of 128 has two scales, else t1]")
      ->check(CLI::IsMember({"auto", "t1", "t2"}))
      ->option_text("auto|t1|t2");
  command
      ->add_option(
          "--dense", o.dense,
          "round dense matrices to this; q4 also takes, without loss, ternary ones that the "
          "ternary encoding cannot hold [keep]")
      ->check(CLI::IsMember({"keep", "f16", "q8", "q4"}))
      ->option_text("keep|f16|q8|q4");
  command
      ->add_option("--assume-layout", o.layouts,
                   "what the file does not say: how its I2_S or STQ1_0 blocks lie (repeatable)")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"i2s-64", "stq-consecutive"}))
      ->option_text("i2s-64|stq-consecutive");
  command->add_option("-t,--threads", o.threads, "threads [one a physical core]")->type_name("N");
  command->add_flag(
      "--no-probe", o.no_probe,
      "do not run the model to store what it says; that of a .tsq source stays if it holds");
  command->add_flag("--allow-random", o.allow_random,
                    "accept a model that predicts no better than chance");
  command->add_flag("--force", o.force, "replace an existing file of another kind");
  command->callback([options, &exit_code] { exit_code = convert(*options); });
}

}  // namespace tsq::tool
