#include "engine/memory_plan.h"

#include <algorithm>
#include <cinttypes>
#include <limits>
#include <new>

#include "backend/cpu.h"
#include "base/checked.h"
#include "base/errorf.h"
#include "engine/model_state.h"
#include "kernels/dispatch.h"

namespace tsq {
namespace {

constexpr std::uint64_t kEverything = std::numeric_limits<std::uint64_t>::max();

Result<void> check_options(const SessionOptions& options) {
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
  return {};
}

// The bytes of contexts of one model and one kind of activations.
class Sizes {
 public:
  Sizes(const Model& model, Activations activations)
      : graph_(*model.state().graph),
        int8_(activations == Activations::int8),
        per_token_(model.kv_bytes_per_token(!int8_)) {}

  std::uint64_t per_token() const { return per_token_; }
  std::uint64_t state() const { return graph_.config().recurrent.bytes(); }
  std::uint64_t cache(std::uint64_t context) const {
    return checked_mul(context, per_token_).value_or(kEverything);
  }

  // Made and counted: memory that nobody touches costs nothing.
  std::uint64_t scratch(std::uint64_t context) const {
    const auto batch = static_cast<std::size_t>(std::min<std::uint64_t>(kMaxBatch, context));
    const kernels::Kernels* const chosen = kernels::chosen().kernels;
    const auto backend = make_cpu_backend(
        {.kernels = chosen != nullptr ? chosen : kernels::table(kernels::Isa::scalar),
         .threads = 1,
         .int8 = int8_,
         .max_tokens = batch});
    const auto state = graph_.new_state(*backend, batch, /*context=*/1);
    const std::uint64_t angles = batch * 2 * graph_.config().rope.frequencies.size();
    return backend->memory_bytes() - per_token_ - this->state() +
           angles * sizeof(float);  // made by the first pass
  }

  bool fits(std::uint64_t context, std::uint64_t bytes) const {
    const auto all = checked_add(cache(context), state() + scratch(context));
    return all && *all <= bytes;
  }

  std::uint64_t largest(std::uint64_t bytes) const {
    if (fits(kMaxBatch, bytes)) return (bytes - state() - scratch(kMaxBatch)) / per_token_;
    std::uint64_t low = 0, high = kMaxBatch;  // low fits, high does not
    while (high - low > 1) {
      const std::uint64_t middle = (low + high) / 2;
      (fits(middle, bytes) ? low : high) = middle;
    }
    return low;
  }

 private:
  const Graph& graph_;
  bool int8_;
  std::uint64_t per_token_;
};

Result<MemoryPlan> plan(const Model& model, const SessionOptions& options,
                        std::optional<std::uint64_t> available) {
  const Sizes sizes(model, options.activations);
  auto context =
      static_cast<std::uint64_t>(options.context > 0 ? options.context : model.context_length());
  const std::uint64_t bytes = available ? *available / 10 * 9 : kEverything;
  const std::uint64_t largest = std::min<std::uint64_t>(sizes.largest(bytes), kMaxContext);
  if (context > largest) {
    if (options.context > 0 || largest == 0) {
      const auto gigabytes = [](std::uint64_t n) { return static_cast<double>(n) * 1e-9; };
      const std::string state =
          sizes.state() > 0 ? stringf(" and %.2f GB of state", gigabytes(sizes.state())) : "";
      return errorf(ErrorCode::out_of_memory,
                    "a context of %" PRIu64
                    " tokens needs %.2f GB of cache and %.2f GB of scratch%s, %.2f GB of memory "
                    "are available: at most %" PRIu64 " tokens fit",
                    context, gigabytes(sizes.cache(context)), gigabytes(sizes.scratch(context)),
                    state.c_str(), gigabytes(available.value_or(kEverything)), largest);
    }
    context = largest;
  }
  return MemoryPlan{.context = static_cast<std::int32_t>(context),
                    .largest_context = static_cast<std::int32_t>(largest),
                    .weight_bytes = model.file_bytes(),
                    .repacked_bytes = model.repacked().bytes,
                    .kv_bytes_per_token = sizes.per_token(),
                    .kv_bytes = sizes.cache(context),
                    .state_bytes = sizes.state(),
                    .scratch_bytes = sizes.scratch(context)};
}

}  // namespace

Result<MemoryPlan> plan_memory(const Model& model, const SessionOptions& options,
                               std::optional<std::uint64_t> available) {
  if (const auto checked = check_options(options); !checked) return checked.error();
  try {
    return plan(model, options, available);
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::out_of_memory, "no memory for the scratch of a session");
  }
}

}  // namespace tsq
