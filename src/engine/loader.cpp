#include "tsq/loader.h"

#include <atomic>
#include <new>
#include <optional>
#include <utility>

#include "base/errorf.h"
#include "base/memory.h"
#include "base/thread_pool.h"
#include "engine/load_hooks.h"
#include "engine/model_state.h"
#include "format/probes.h"
#include "kernels/dispatch.h"
#include "tokenizer/make.h"

namespace tsq {
namespace {

constexpr int kMinHadamardOrder = 4, kMaxHadamardOrder = 14;

// Rotations as the file has them or, if an order was asked for, as that has them.
Result<void> check_rotations(format::File& file, std::optional<int> order) {
  if (!order) return format::check_rotation_probes(file);
  const auto refused = [&](const std::string& why) {
    return errorf(ErrorCode::invalid_argument, "a Hadamard order of %d: %s", *order, why.c_str());
  };
  if (*order < kMinHadamardOrder || *order > kMaxHadamardOrder)
    return refused(stringf("expected %d to %d", kMinHadamardOrder, kMaxHadamardOrder));
  if (const auto done = file.override_main_block(std::uint32_t{1} << *order); !done)
    return refused(done.error().message());
  const auto checked = format::check_rotation_probes(file);
  return checked ? Result<void>() : refused(checked.error().message());
}

// The graph over the file, with the weights repacked that are to be.
Result<void> make_graph_of(Model::State& state, const LoaderOptions& options,
                           const LoadHooks& hooks) {
  const bool repacks = options.repack != Repack::none || options.on_layer_loaded;
  if (!repacks) {
    auto graph = make_graph(state.opened.file);
    if (!graph) return graph.error();
    state.graph = std::move(*graph);
    return {};
  }
  if (options.threads < 0) {
    return errorf(ErrorCode::invalid_argument,
                  "%d threads were asked for, expected 1 or more (0: one a core)", options.threads);
  }
  const kernels::Kernels* table = hooks.kernels;
  if (table == nullptr) {
    const kernels::Choice& choice = kernels::chosen();
    if (choice.kernels == nullptr) return Error(ErrorCode::unsupported, choice.error);
    table = choice.kernels;
  }
  auto graph = make_graph(state.opened.file, [&](Weight& weight) {
    TensorOptions tensor(options.repack);
    if (options.on_layer_loaded) options.on_layer_loaded(weight.name, tensor);
    state.repacked.add(weight, tensor.repack(), *table);
  });
  if (!graph) return graph.error();
  state.graph = std::move(*graph);
  const auto memory = hooks.memory != 0 ? std::optional(hooks.memory) : available_memory();
  return state.repacked.make(memory, threads_for(options.threads), options.on_repack);
}

Result<Model> build(format::OpenedFile opened, const LoaderOptions& options,
                    const LoadHooks& hooks) {
  static std::atomic<std::uint64_t> opened_before = 0;
  auto state = std::make_unique<Model::State>(Model::State{.serial = opened_before++,
                                                           .opened = std::move(opened),
                                                           .repacked = {},
                                                           .graph = {},
                                                           .tokenizer = {},
                                                           .name = {}});
  format::File& file = state->opened.file;
  if (const auto checked = check_rotations(file, options.hadamard_order); !checked)
    return checked.error();
  if (const auto made = make_graph_of(*state, options, hooks); !made) return made.error();
  if (!file.tokenizer_section().empty()) {
    const auto vocab = static_cast<std::uint32_t>(state->graph->config().vocab);
    const auto view = format::TokenizerView::parse(file.tokenizer_section(), vocab);
    if (!view) return view.error();
    auto tokenizer = make_tokenizer(*view);
    if (!tokenizer) return tokenizer.error();
    state->tokenizer.emplace(std::move(*tokenizer));
  }
  const Value* const name = file.metadata().find("general.name");
  const auto text = name ? name->as_string() : std::nullopt;
  state->name = text ? std::string(*text) : file.header().model_name;
  return Model(std::move(state));
}

}  // namespace

Result<Model> load_model(const std::filesystem::path& path, const LoaderOptions& options,
                         const LoadHooks& hooks) {
  try {
    auto opened = format::open(path);
    if (!opened) return opened.error();
    auto model = build(std::move(*opened), options, hooks);
    if (!model) return model.error().at(path.string());
    return model;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::out_of_memory, path.string() + ": no memory to open the model");
  }
}

Loader& Loader::with_hadamard_order(int order) {
  options_.hadamard_order = order;
  return *this;
}
Loader& Loader::with_repack(Repack repack) {
  options_.repack = repack;
  return *this;
}
Loader& Loader::on_layer_loaded(
    std::function<void(std::string_view name, TensorOptions& options)> hook) {
  options_.on_layer_loaded = std::move(hook);
  return *this;
}
Loader& Loader::on_repack(RepackProgress progress) {
  options_.on_repack = std::move(progress);
  return *this;
}
Loader& Loader::with_threads(int threads) {
  options_.threads = threads;
  return *this;
}

Result<Model> Loader::load(const std::filesystem::path& path) const {
  return load_model(path, options_, {});
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

std::string_view Model::name() const { return state_->name; }
std::string_view Model::architecture() const { return state_->graph->config().architecture; }
std::int32_t Model::vocab_size() const {
  return static_cast<std::int32_t>(state_->graph->config().vocab);
}
std::int32_t Model::n_layers() const {
  return static_cast<std::int32_t>(state_->graph->config().n_layers);
}
std::int32_t Model::hidden_size() const {
  return static_cast<std::int32_t>(state_->graph->config().hidden);
}
std::int32_t Model::context_length() const {
  return static_cast<std::int32_t>(state_->graph->config().context);
}
std::uint64_t Model::file_bytes() const { return state_->opened.file.file_bytes(); }
RepackTotals Model::repacked() const { return state_->repacked.totals(); }
std::uint64_t Model::kv_bytes_per_token(bool f32) const {
  const KvShape one = state_->graph->config().kv_shape(1);
  return 2 * one.n_layers * one.n_kv_heads * one.head_dim * (f32 ? 4 : 2);
}
std::optional<std::string_view> Model::chat_template() const {
  const Value* const text = state_->opened.file.metadata().find("tokenizer.chat_template");
  return text ? text->as_string() : std::nullopt;
}
const Tokenizer* Model::tokenizer() const {
  return state_->tokenizer ? &*state_->tokenizer : nullptr;
}

}  // namespace tsq
