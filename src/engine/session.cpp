#include "tsq/session.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <new>
#include <numeric>
#include <optional>
#include <system_error>
#include <vector>

#include "backend/cpu.h"
#include "base/errorf.h"
#include "base/memory.h"
#include "base/thread_pool.h"
#include "engine/model_state.h"
#include "engine/session_hooks.h"
#include "kernels/dispatch.h"

namespace tsq {
namespace {

// Tokens of a prompt that are computed together. Results do not depend on it.
constexpr std::size_t kMaxBatch = 512;

// Tokens of context to make room for, or an error if those asked for do not fit into memory.
Result<std::size_t> plan_context(const Model& model, const SessionOptions& options,
                                 std::optional<std::uint64_t> available) {
  const auto trained = static_cast<std::uint64_t>(model.context_length());
  const auto wanted = options.context > 0 ? static_cast<std::uint64_t>(options.context) : trained;
  const std::uint64_t per_token = model.kv_bytes_per_token(options.activations == Activations::f32);
  if (!available) return static_cast<std::size_t>(wanted);
  // A tenth is left for scratch and for everybody else.
  const std::uint64_t fits = *available / 10 * 9 / per_token;
  if (wanted <= fits) return static_cast<std::size_t>(wanted);
  if (options.context == 0 && fits > 0) return static_cast<std::size_t>(fits);
  return errorf(ErrorCode::out_of_memory,
                "a context of %" PRIu64
                " tokens needs %.2f GB of cache, %.2f GB of memory are "
                "available: at most %" PRIu64 " tokens fit",
                wanted, static_cast<double>(wanted) * static_cast<double>(per_token) * 1e-9,
                static_cast<double>(*available) * 1e-9, fits);
}

}  // namespace

struct Session::State {
  const Graph& graph;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<GraphState> scratch;
  std::size_t context;
  int threads;
  std::size_t position = 0;
  std::vector<float> logits = {};
  std::vector<std::int32_t> positions, sequences;  // room for the largest batch

  // Computes one batch and writes its logits (of the last token, or of all) to `out`.
  Result<void> run(std::span<const Token> tokens, bool want_logits, bool all, float* out);
};

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Model& model, const SessionOptions& options) {
  return create_session(model, options, {});
}

Result<Session> create_session(const Model& model, const SessionOptions& options,
                               const SessionHooks& hooks) {
  if (options.context < 0) {
    return errorf(ErrorCode::invalid_argument,
                  "a context of %" PRId32
                  " tokens was asked for, expected 1 or more (0: the model's)",
                  options.context);
  }
  if (options.threads < 0) {
    return errorf(ErrorCode::invalid_argument,
                  "%" PRId32 " threads were asked for, expected 1 or more (0: one a core)",
                  options.threads);
  }
  if (options.context > static_cast<std::int32_t>(kMaxContext)) {
    return errorf(ErrorCode::invalid_argument,
                  "a context of %" PRId32 " tokens was asked for, expected at most %zu",
                  options.context, kMaxContext);
  }
  const kernels::Kernels* table = hooks.kernels;
  if (table == nullptr) {
    const kernels::Choice& choice = kernels::chosen();
    if (choice.kernels == nullptr) return Error(ErrorCode::unsupported, choice.error);
    table = choice.kernels;
  }
  const auto context = plan_context(
      model, options, hooks.memory != 0 ? std::optional(hooks.memory) : available_memory());
  if (!context) return context.error();
  try {
    const int threads = hooks.threads != 0     ? hooks.threads
                        : options.threads == 0 ? usable_cores()
                                               : std::min(options.threads, usable_threads());
    const std::size_t max_batch = std::min(kMaxBatch, *context);
    const Graph& graph = *model.state().graph;
    const CpuOptions cpu = {.kernels = table,
                            .threads = threads,
                            .int8 = options.activations == Activations::int8,
                            .max_tokens = max_batch,
                            .observer = hooks.observer};
    auto backend =
        hooks.trace != nullptr ? make_tracing_backend(cpu, *hooks.trace) : make_cpu_backend(cpu);
    auto scratch = graph.new_state(*backend, max_batch, *context);
    auto state = std::make_unique<Session::State>(Session::State{
        .graph = graph,
        .backend = std::move(backend),
        .scratch = std::move(scratch),
        .context = *context,
        .threads = threads,
        .positions = std::vector<std::int32_t>(max_batch),
        .sequences = std::vector<std::int32_t>(max_batch),
    });
    return Session(std::move(state));
  } catch (const std::bad_alloc&) {
    return errorf(ErrorCode::out_of_memory,
                  "no memory for a session of %zu tokens: a smaller context may fit", *context);
  } catch (const std::system_error& error) {
    return errorf(ErrorCode::out_of_memory, "threads cannot be started: %s", error.what());
  }
}

Result<void> Session::State::run(std::span<const Token> tokens, bool want_logits, bool all,
                                 float* out) {
  std::iota(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(tokens.size()),
            static_cast<std::int32_t>(position));
  const Batch batch{tokens, std::span(positions).first(tokens.size()),
                    std::span(sequences).first(tokens.size())};
  graph.forward(*backend, *scratch, batch);
  if (want_logits) {
    const std::size_t vocab = graph.config().vocab;
    std::vector<std::int32_t> rows;
    for (std::size_t t = all ? 0 : tokens.size() - 1; t < tokens.size();) {
      rows.clear();
      for (; t < tokens.size() && rows.size() < Graph::kMaxLogitRows; ++t) {
        rows.push_back(static_cast<std::int32_t>(t));
      }
      const Tensor made = graph.logits(*backend, *scratch, rows);
      for (std::size_t i = 0; i < rows.size(); ++i, out += vocab) {
        std::ranges::copy(backend->read(made, i), out);
      }
    }
  }
  return backend->take_error();
}

Result<std::span<const float>> Session::append(std::span<const Token> tokens, Logits logits,
                                               const Progress& progress) {
  State& s = *state_;
  const std::size_t vocab = s.graph.config().vocab;
  if (tokens.empty()) {
    return Error(ErrorCode::invalid_argument, "no token was given, expected at least one");
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<std::size_t>(tokens[i]) >= vocab) {
      return errorf(ErrorCode::invalid_argument,
                    "token %zu has the id %" PRId32 ", expected 0 to %zu", i, tokens[i], vocab - 1);
    }
  }
  if (tokens.size() > s.context - s.position) {
    return errorf(ErrorCode::out_of_context,
                  "%zu tokens do not fit: the context holds %zu and %zu are in it", tokens.size(),
                  s.context, s.position);
  }
  const std::size_t start = s.position;
  const bool all = logits == Logits::all;
  const auto undo = [&](Error error) {
    s.position = start;
    return error;
  };
  try {
    s.logits.resize(all ? tokens.size() * vocab : vocab);
    for (std::size_t done = 0; done < tokens.size();) {
      if (progress &&
          !progress(static_cast<std::int32_t>(done), static_cast<std::int32_t>(tokens.size()))) {
        return undo(Error(ErrorCode::cancelled, "cancelled while reading the prompt"));
      }
      const std::size_t n = std::min(s.positions.size(), tokens.size() - done);
      const bool last = done + n == tokens.size();
      float* const out = s.logits.data() + (all ? done * vocab : 0);
      const auto ran = s.run(tokens.subspan(done, n), all || last, all, out);
      if (!ran) return undo(ran.error());
      s.position += n;
      done += n;
    }
  } catch (const std::bad_alloc&) {
    static_cast<void>(s.backend->take_error());
    return undo(Error(ErrorCode::out_of_memory, "no memory for the logits"));
  } catch (...) {  // the caller's own, out of its callback
    s.position = start;
    throw;
  }
  // What is not finite anywhere in a dense layer ends up here.
  if (!std::ranges::all_of(s.logits, [](float x) { return std::isfinite(x); })) {
    return undo(Error(ErrorCode::numeric, "a logit is infinite or not a number"));
  }
  return std::span<const float>(s.logits);
}

std::int32_t Session::position() const { return static_cast<std::int32_t>(state_->position); }
std::int32_t Session::context() const { return static_cast<std::int32_t>(state_->context); }
std::int32_t Session::threads() const { return state_->threads; }
std::uint64_t Session::memory_bytes() const { return state_->backend->memory_bytes(); }

Result<void> Session::rewind(std::int32_t position) {
  if (position < 0 || static_cast<std::size_t>(position) > state_->position) {
    return errorf(ErrorCode::invalid_argument,
                  "cannot go back to position %" PRId32 ", expected 0 to %zu", position,
                  state_->position);
  }
  state_->position = static_cast<std::size_t>(position);
  return {};
}

Result<const char*> cpu_level() {
  const kernels::Choice& choice = kernels::chosen();
  if (choice.kernels == nullptr) return Error(ErrorCode::unsupported, choice.error);
  return kernels::isa_name(choice.kernels->isa).data();
}

}  // namespace tsq
