#include "engine.h"

#include <cinttypes>
#include <utility>

#include "base/errorf.h"
#include "base/thread_pool.h"
#include "model_file.h"
#include "support.h"
#include "tsq/loader.h"

namespace tsq::tool {
namespace {

// A context that does not fit: the same error, and what to type. The memory that is available
// comes and goes, so a little less than the most is offered.
Error with_context_hint(const Error& error, const Model& model, SessionOptions options) {
  if (error.code() != ErrorCode::out_of_memory || options.context == 0) return error;
  options.context = 0;
  const auto fits = Session::plan(model, options);
  if (!fits) return error;
  const std::int32_t most = fits->largest_context - fits->largest_context / 50;
  return {error.code(),
          error.message() + stringf(": try -c %d", most > 512 ? most / 256 * 256 : most)};
}

void describe_model(const Model& model) {
  const std::string name(model.name()), architecture(model.architecture());
  info_fact("model",
            stringf("%s, %s, %d layers, %s mapped", printable(name).c_str(),
                    printable(architecture).c_str(), model.n_layers(),
                    human_bytes(model.file_bytes()).c_str()),
            {{"name", name},
             {"architecture", architecture},
             {"layers", model.n_layers()},
             {"file_bytes", model.file_bytes()}});
}

// " of 16 cores (affinity 4, cgroup quota 2)", where something limits them.
std::string limits_text(const CoreLimits& limits) {
  std::string text;
  if (limits.affinity < limits.cores) text = stringf("affinity %d", limits.affinity);
  if (limits.quota && *limits.quota < limits.affinity)
    text += stringf("%scgroup quota %.3g", text.empty() ? "" : ", ", *limits.quota);
  return text.empty() ? "" : stringf(" of %d cores (", limits.cores) + text + ")";
}

void describe_compute(const EngineOptions& options) {
  const auto level = cpu_level();
  const int threads = threads_for(options.session.threads);
  const CoreLimits limits = core_limits();
  std::vector<LogField> fields = {{"level", level ? *level : "unknown"},
                                  {"threads", threads},
                                  {"activations", options.activations},
                                  {"cores", limits.cores},
                                  {"affinity", limits.affinity}};
  if (limits.quota) fields.emplace_back("cgroup_quota", *limits.quota);
  info_fact(
      "compute",
      stringf("%s, %d thread%s%s, %s activations", level ? *level : "unknown", threads,
              threads == 1 ? "" : "s", limits_text(limits).c_str(), options.activations.c_str()),
      std::move(fields));
}

}  // namespace

void add_repack_option(CLI::App& command, std::string& repack) {
  command
      .add_option("--repack", repack,
                  "make the weights over in memory, for speed: auto is what suits this CPU, for as "
                  "many as half of the free memory holds; t2 is t1 as t2; results do not change "
                  "[none]")
      ->check(CLI::IsMember({"auto", "none", "t2"}))
      ->option_text("auto|none|t2");
}

void add_engine_options(CLI::App& command, EngineOptions& options) {
  command.add_option("-m,--model", options.model, "a .tsq file [models/fairy-tales.tsq]")
      ->type_name("FILE");
  command.add_option("-t,--threads", options.session.threads, "threads [one a physical core]")
      ->type_name("N");
  command
      .add_option("--activations", options.activations,
                  "f32 is slower and does not round activations [int8]")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->option_text("int8|f32");
  add_repack_option(command, options.repack);
}

Result<Model> open_model(const std::filesystem::path& path, const EngineOptions& options) {
  Loader loader;
  if (options.hadamard_order) loader.with_hadamard_order(*options.hadamard_order);
  if (options.repack == "none") return loader.load(path);
  ProgressBar bar("repacking", ProgressBar::Unit::bytes);
  auto model = loader.with_repack(options.repack == "t2" ? Repack::t2 : Repack::automatic)
                   .with_threads(options.session.threads)
                   .on_repack([&](std::uint64_t done, std::uint64_t total) {
                     bar.update(done, total);
                     return !interrupted();
                   })
                   .load(path);
  bar.clear();
  if (!model) return model;
  const RepackTotals repacked = model->repacked();
  info_fact("repacked",
            repacked.tensors == 0
                ? "nothing: no weights for which it pays here, or no memory for them"
                : stringf("%" PRIu64 " tensors, %s of memory", repacked.tensors,
                          human_bytes(repacked.bytes).c_str()),
            {{"tensors", repacked.tensors}, {"bytes", repacked.bytes}});
  return model;
}

Result<Model> load_model(const EngineOptions& options) {
  const auto path = model_path(options.model);
  if (!path) return path.error();
  auto model = open_model(*path, options);
  if (!model) return with_convert_hint(model.error(), *path);
  if (model->tokenizer() == nullptr)
    return errorf(ErrorCode::unsupported, "%s: the file holds no tokenizer, so it cannot read text",
                  path->c_str());
  return model;
}

Result<void> describe(const Model& model, const EngineOptions& options) {
  const SessionOptions wanted = session_options(options);
  const auto plan = Session::plan(model, wanted);
  if (!plan) return with_context_hint(plan.error(), model, wanted);
  describe_model(model);
  info_fact(
      "context",
      stringf("%d tokens: %s of cache (%s a token) and %s of scratch", plan->context,
              human_bytes(plan->kv_bytes).c_str(), human_bytes(plan->kv_bytes_per_token).c_str(),
              human_bytes(plan->scratch_bytes).c_str()),
      {{"tokens", plan->context},
       {"weight_bytes", plan->weight_bytes},
       {"cache_bytes", plan->kv_bytes},
       {"cache_bytes_per_token", plan->kv_bytes_per_token},
       {"state_bytes", plan->state_bytes},
       {"scratch_bytes", plan->scratch_bytes}});
  if (plan->state_bytes > 0)
    info_fact("state",
              human_bytes(plan->state_bytes) + " of recurrent layers, whatever the context", {});
  describe_compute(options);
  return {};
}

SessionOptions session_options(const EngineOptions& options) {
  SessionOptions wanted = options.session;
  wanted.activations = options.activations == "f32" ? Activations::f32 : Activations::int8;
  return wanted;
}

Result<Session> create_session(const Model& model, const EngineOptions& options) {
  const SessionOptions wanted = session_options(options);
  auto session = Session::create(model, wanted);
  if (!session) return with_context_hint(session.error(), model, wanted);
  if (session->threads() < wanted.threads)
    warn("%d threads run, %d were asked for: this process has no more cores", session->threads(),
         wanted.threads);
  if (session->context() > model.context_length())
    warn("a context of %d tokens, the model was trained for %d: expect it to lose the thread",
         session->context(), model.context_length());
  return session;
}

Result<std::vector<Token>> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                       bool parse_special) {
  auto tokens = tokenizer.encode(text, {.add_special = false, .parse_special = parse_special});
  if (tokens && tokenizer.adds_bos()) tokens->insert(tokens->begin(), *tokenizer.bos());
  return tokens;
}

}  // namespace tsq::tool
