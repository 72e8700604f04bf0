#include "tsq/loader.h"

#include <atomic>
#include <new>
#include <optional>
#include <utility>

#include "base/errorf.h"
#include "engine/model_state.h"
#include "format/probes.h"
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

Result<Model> build(format::OpenedFile opened, std::optional<int> hadamard_order) {
  static std::atomic<std::uint64_t> opened_before = 0;
  auto state = std::make_unique<Model::State>(Model::State{.serial = opened_before++,
                                                           .opened = std::move(opened),
                                                           .graph = {},
                                                           .tokenizer = {},
                                                           .name = {}});
  format::File& file = state->opened.file;
  if (const auto checked = check_rotations(file, hadamard_order); !checked) return checked.error();
  auto graph = make_graph(file);
  if (!graph) return graph.error();
  state->graph = std::move(*graph);
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

Loader& Loader::with_hadamard_order(int order) {
  hadamard_order_ = order;
  return *this;
}

Result<Model> Loader::load(const std::filesystem::path& path) const {
  try {
    auto opened = format::open(path);
    if (!opened) return opened.error();
    auto model = build(std::move(*opened), hadamard_order_);
    if (!model) return model.error().at(path.string());
    return model;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::out_of_memory, path.string() + ": no memory to open the model");
  }
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
