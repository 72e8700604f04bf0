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
#include "engine/memory_plan.h"
#include "engine/model_state.h"
#include "engine/session_hooks.h"
#include "kernels/dispatch.h"

namespace tsq {
struct Snapshot::State {
  std::uint64_t model;
  Activations activations;
  std::size_t position;
  std::vector<std::byte> cache, recurrent;
};

struct Session::State {
  std::uint64_t model;  // its serial
  const Graph& graph;
  Activations activations;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<GraphState> scratch;
  std::size_t context;
  int threads;
  std::size_t position = 0;
  std::vector<float> logits = {};
  std::vector<std::int32_t> positions, sequences;  // room for the largest batch

  // The recurrent state at earlier positions, ascending.
  struct Mark {
    std::size_t position;
    std::vector<std::byte> recurrent;
  };
  std::vector<Mark> marks = {};

  bool is_recurrent() const { return graph.config().recurrent.n_layers > 0; }
  // The last position, up to this one, whose state is at hand. `here`: the current one's is.
  std::size_t rewindable(std::size_t to, bool here) const;
  // To a position that rewindable() gave.
  void go_back(std::size_t to);

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

Result<MemoryPlan> Session::plan(const Model& model, const SessionOptions& options) {
  return plan_memory(model, options, available_memory());
}

Result<Session> create_session(const Model& model, const SessionOptions& options,
                               const SessionHooks& hooks) {
  const auto plan = plan_memory(
      model, options, hooks.memory != 0 ? std::optional(hooks.memory) : available_memory());
  if (!plan) return plan.error();
  const auto context = static_cast<std::size_t>(plan->context);
  const kernels::Kernels* table = hooks.kernels;
  if (table == nullptr) {
    const kernels::Choice& choice = kernels::chosen();
    if (choice.kernels == nullptr) return Error(ErrorCode::unsupported, choice.error);
    table = choice.kernels;
  }
  try {
    const int threads = hooks.threads != 0 ? hooks.threads : threads_for(options.threads);
    const std::size_t max_batch = std::min(kMaxBatch, context);
    const Graph& graph = *model.state().graph;
    const CpuOptions cpu = {.kernels = table,
                            .threads = threads,
                            .int8 = options.activations == Activations::int8,
                            .max_tokens = max_batch,
                            .observer = hooks.observer};
    auto backend =
        hooks.trace != nullptr ? make_tracing_backend(cpu, *hooks.trace) : make_cpu_backend(cpu);
    auto scratch = graph.new_state(*backend, max_batch, context);
    auto state = std::make_unique<Session::State>(Session::State{
        .model = model.state().serial,
        .graph = graph,
        .activations = options.activations,
        .backend = std::move(backend),
        .scratch = std::move(scratch),
        .context = context,
        .threads = threads,
        .positions = std::vector<std::int32_t>(max_batch),
        .sequences = std::vector<std::int32_t>(max_batch),
    });
    return Session(std::move(state));
  } catch (const std::bad_alloc&) {
    return errorf(ErrorCode::out_of_memory,
                  "no memory for a session of %zu tokens: a smaller context may fit", context);
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

std::size_t Session::State::rewindable(std::size_t to, bool here) const {
  if (!is_recurrent() || (here && to >= position)) return std::min(to, position);
  const auto later = std::ranges::upper_bound(marks, to, {}, &Mark::position);
  return later == marks.begin() ? 0 : std::prev(later)->position;
}

void Session::State::go_back(std::size_t to) {
  std::erase_if(marks, [&](const Mark& mark) { return mark.position > to; });
  if (!marks.empty() && marks.back().position == to) {
    graph.restore_recurrent(*backend, *scratch, marks.back().recurrent);
  }
  position = to;
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
  bool computed = false;
  const auto undo = [&](Error error) {
    if (computed) s.go_back(s.rewindable(start, /*here=*/false));
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
      computed = true;
      const auto ran = s.run(tokens.subspan(done, n), all || last, all, out);
      if (!ran) return undo(ran.error());
      s.position += n;
      done += n;
    }
  } catch (const std::bad_alloc&) {
    static_cast<void>(s.backend->take_error());
    return undo(Error(ErrorCode::out_of_memory, "no memory for the logits"));
  } catch (...) {  // the caller's own, out of its callback
    if (computed) s.go_back(s.rewindable(start, /*here=*/false));
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
  if (const std::int32_t last = rewindable(position); last < position) {
    return errorf(ErrorCode::invalid_argument,
                  "cannot go back to position %" PRId32
                  ": a recurrent model can only go back to a snapshot, a mark or 0 (the last mark "
                  "before is at %" PRId32 ")",
                  position, last);
  }
  if (static_cast<std::size_t>(position) < state_->position) {
    state_->go_back(static_cast<std::size_t>(position));
  }
  return {};
}

bool Session::is_recurrent() const { return state_->is_recurrent(); }

std::int32_t Session::rewindable(std::int32_t position) const {
  const auto to = static_cast<std::size_t>(std::max(position, 0));
  return static_cast<std::int32_t>(state_->rewindable(to, /*here=*/true));
}

Result<void> Session::mark() try {
  State& s = *state_;
  if (!s.is_recurrent() || s.position == 0) return {};
  if (!s.marks.empty() && s.marks.back().position == s.position) return {};
  State::Mark mark{s.position, s.graph.save_recurrent(*s.backend, *s.scratch)};
  if (s.marks.size() == kMarks) s.marks.erase(s.marks.begin());
  s.marks.push_back(std::move(mark));
  return {};
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "no memory for a mark at %zu tokens", state_->position);
}

Result<Snapshot> Session::snapshot() const try {
  const State& s = *state_;
  return Snapshot(std::make_unique<const Snapshot::State>(
      Snapshot::State{.model = s.model,
                      .activations = s.activations,
                      .position = s.position,
                      .cache = s.graph.save(*s.backend, *s.scratch, s.position),
                      .recurrent = s.graph.save_recurrent(*s.backend, *s.scratch)}));
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "no memory for a snapshot of %zu tokens",
                state_->position);
}

Result<void> Session::restore(const Snapshot& snapshot) {
  State& s = *state_;
  const Snapshot::State& saved = snapshot.state();
  if (saved.model != s.model) {
    return Error(ErrorCode::invalid_argument,
                 "the snapshot is of a session of another model, expected one of this");
  }
  if (saved.activations != s.activations) {
    return Error(ErrorCode::invalid_argument,
                 "the snapshot is of a session with other activations, expected the same");
  }
  if (saved.position > s.context) {
    return errorf(ErrorCode::out_of_context,
                  "the snapshot holds %zu tokens, the context of this session %zu", saved.position,
                  s.context);
  }
  s.marks.clear();  // the cache below them is another one's
  s.graph.restore(*s.backend, *s.scratch, saved.position, saved.cache);
  s.graph.restore_recurrent(*s.backend, *s.scratch, saved.recurrent);
  s.position = saved.position;
  return {};
}

Snapshot::Snapshot(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;
Snapshot::~Snapshot() = default;
std::int32_t Snapshot::position() const { return static_cast<std::int32_t>(state_->position); }
std::uint64_t Snapshot::memory_bytes() const {
  return state_->cache.size() + state_->recurrent.size();
}

Result<const char*> cpu_level() {
  const kernels::Choice& choice = kernels::chosen();
  if (choice.kernels == nullptr) return Error(ErrorCode::unsupported, choice.error);
  return kernels::isa_name(choice.kernels->isa).data();
}

}  // namespace tsq
