#include "backend/tracing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tsq {
namespace {

using format::ActivationQuant;

// What rounding x to int8 changes, squared (FORMAT.md, section 10).
double squared_rounding(std::span<const float> x, double scale) {
  double sum = 0;
  for (const float v : x) {
    const double error = scale * std::nearbyint(static_cast<double>(v) / scale) - v;
    sum += error * error;
  }
  return sum;
}

double largest(std::span<const float> x) {
  double a = 0;
  for (const float v : x) a = std::max(a, std::abs(static_cast<double>(v)));
  return a;
}

double squared_rounding(std::span<const float> x, ActivationQuant quant) {
  if (quant == ActivationQuant::per_token)
    return squared_rounding(x, std::max(largest(x), 1e-5) / 127);
  double sum = 0;
  for (std::size_t at = 0; at < x.size(); at += kernels::kGroup) {
    const auto group = x.subspan(at, std::min(kernels::kGroup, x.size() - at));
    const double a = largest(group);
    if (a >= 1e-30) sum += squared_rounding(group, a / 127);
  }
  return sum;
}

// Output j of a block by its definition, and the magnitude that its rounding errors are relative
// to. s(i): the sign of input i.
template <class Sign>
std::pair<double, double> hadamard(std::span<const float> block, std::size_t j, Sign s) {
  double sum = 0, magnitude = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const double term = s(i) * static_cast<double>(block[i]);
    sum += std::popcount(i & j) % 2 != 0 ? -term : term;
    magnitude += std::abs(term);
  }
  const double norm = std::sqrt(static_cast<double>(block.size()));
  return {sum / norm, magnitude / norm};
}

// The largest deviation of y from H (S x), or from S (H x), over what f32 may round away: one unit
// in the last place, 2^-24 of the magnitude, for each of log2(B) sums, for the factor 1/sqrt(B) and
// for its product; one more for the terms of higher order.
double deviation(std::span<const float> x, std::span<const float> y, const format::Rotation& r,
                 bool signs_last) {
  const auto sign = [&](std::size_t i) {
    return !r.signs.empty() && (r.signs[i / 32] >> i % 32 & 1) != 0 ? -1.0 : 1.0;
  };
  const double allowed = (std::bit_width(r.block) + 2) * 0x1p-24;
  double worst = 0;
  for (std::size_t start = 0; start < x.size(); start += r.block) {
    const auto block = x.subspan(start, r.block);
    for (std::size_t j = 0; j < r.block; ++j) {
      auto [expected, magnitude] =
          hadamard(block, j, [&](std::size_t i) { return signs_last ? 1.0 : sign(start + i); });
      if (signs_last) expected *= sign(start + j);
      const double error = std::abs(static_cast<double>(y[start + j]) - expected);
      if (error <= allowed * magnitude) {
        if (error > 0) worst = std::max(worst, error / (allowed * magnitude));
      } else {  // not a number comes here too
        const double share = error / (allowed * magnitude);
        worst = share > 1 ? std::max(worst, share) : std::numeric_limits<double>::infinity();
      }
    }
  }
  return worst;
}

bool is_checked(std::size_t t, std::size_t n) { return t == 0 || t + 1 == n; }

std::string short_name(const std::string& name) {
  return name.ends_with(".weight") ? name.substr(0, name.size() - 7) : name;
}

bool same_form(const Weight& a, const Weight& b) {
  return a.rotation == b.rotation && a.activation_quant == b.activation_quant;
}

}  // namespace

void VectorStatistics::add(std::span<const float> x, ActivationQuant quant) {
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
  const double a = largest(x);
  if (squares > 0) crests_ += a / std::sqrt(squares / static_cast<double>(x.size()));
  if (quant != ActivationQuant::none) errors_ += squared_rounding(x, quant);
  absmax_ = std::max(absmax_, a);
  squares_ += squares;
  values_ += x.size();
  ++tokens_;
}

double VectorStatistics::rms() const {
  return values_ > 0 ? std::sqrt(squares_ / static_cast<double>(values_)) : 0;
}
double VectorStatistics::crest() const {
  return tokens_ > 0 ? crests_ / static_cast<double>(tokens_) : 0;
}
double VectorStatistics::int8_error() const {
  return squares_ > 0 ? std::sqrt(errors_ / squares_) : 0;
}

bool ActivationTrace::sound() const { return std::ranges::all_of(stages_, &TracedStage::sound); }

TracedStage& ActivationTrace::stage(const Weight& first, const char* suffix) {
  const auto [found, added] = index_.try_emplace(&first, stages_.size());
  if (added) {
    stages_.push_back({.name = short_name(first.name) + suffix, .rotation = first.rotation});
  }
  return stages_[found->second];
}

class TracingBackend final : public Backend {
 public:
  TracingBackend(CpuOptions options, ActivationTrace& trace)
      : trace_(trace), int8_(options.int8), observer_(std::move(options.observer)) {
    options.observer = [this](const ProjectionTrace& projection) { observe(projection); };
    inner_ = make_cpu_backend(options);
  }

  Tensor new_tensor(std::size_t n_tokens, std::size_t width) override {
    return inner_->new_tensor(n_tokens, width);
  }
  KvCache new_kv_cache(const KvShape& shape) override { return inner_->new_kv_cache(shape); }
  RecurrentState new_recurrent_state(const RecurrentShape& shape) override {
    return inner_->new_recurrent_state(shape);
  }
  void reserve(const ProjectionGroup& group, std::size_t n_tokens, Epilogue epilogue) override {
    inner_->reserve(group, n_tokens, epilogue);
  }
  void begin(const Batch& batch) override { inner_->begin(batch); }

  void embed(const Weight& table, const Batch& batch, Tensor out) override {
    inner_->embed(table, batch, out);
    if (table.rotation == nullptr) return;
    TracedStage& stage = trace_.stage(table, " (rows)");
    const std::span body(table.body, *format::body_bytes(table.shape));
    std::vector<float> stored(table.shape.cols);
    for (std::size_t t = 0; t < batch.size(); ++t) {
      format::decode_row(table.shape, {body, table.scales},
                         static_cast<std::uint64_t>(batch.tokens[t]), stored.data());
      const auto row = inner_->read(out, t);
      stage.before.add(stored, ActivationQuant::none);
      stage.after.add(row, ActivationQuant::none);
      if (is_checked(t, batch.size())) check(stage, stored, row, true);
    }
  }

  void rms_norm(Tensor x, const VectorWeight& w, float eps, std::size_t n_tokens,
                Tensor y) override {
    inner_->rms_norm(x, w, eps, n_tokens, y);
  }
  void rms_norm_heads(const VectorWeight& w, float eps, std::size_t n_tokens, Tensor x) override {
    inner_->rms_norm_heads(w, eps, n_tokens, x);
  }

  void project(const ProjectionGroup& group, Tensor x, std::size_t n_tokens,
               std::initializer_list<Tensor> outputs, Epilogue epilogue) override {
    group_ = &group;
    input_ = x;
    inner_->project(group, x, n_tokens, outputs, epilogue);
  }

  void rope(const Rope& rope, const Batch& batch, std::size_t head_dim, Tensor x) override {
    inner_->rope(rope, batch, head_dim, x);
  }
  void append(Tensor k, Tensor v, const Batch& batch, KvCache cache, std::size_t layer) override {
    inner_->append(k, v, batch, cache, layer);
  }
  void attention(Tensor q, const Batch& batch, KvCache cache, std::size_t layer,
                 std::size_t n_heads, float scale, Tensor out) override {
    inner_->attention(q, batch, cache, layer, n_heads, scale, out);
  }
  void split_heads(Tensor x, std::size_t head_dim, std::size_t n_tokens, Tensor even,
                   Tensor odd) override {
    inner_->split_heads(x, head_dim, n_tokens, even, odd);
  }
  void gate(Gate gate, Tensor g, std::size_t n_tokens, Tensor x) override {
    inner_->gate(gate, g, n_tokens, x);
  }
  void causal_conv(const Weight& taps, const Batch& batch, RecurrentState state, std::size_t layer,
                   Tensor x) override {
    inner_->causal_conv(taps, batch, state, layer, x);
  }
  void delta_net(Tensor qkv, Tensor a, Tensor b, const DeltaGates& gates, const Batch& batch,
                 RecurrentState state, std::size_t layer, Tensor out) override {
    inner_->delta_net(qkv, a, b, gates, batch, state, layer, out);
  }
  void gather(Tensor x, std::span<const std::int32_t> rows, Tensor out) override {
    inner_->gather(x, rows, out);
  }
  std::vector<std::byte> save(KvCache cache, std::size_t sequence, std::size_t n) override {
    return inner_->save(cache, sequence, n);
  }
  void restore(KvCache cache, std::size_t sequence, std::size_t n,
               std::span<const std::byte> saved) override {
    inner_->restore(cache, sequence, n, saved);
  }
  std::vector<std::byte> save(RecurrentState state, std::size_t sequence) override {
    return inner_->save(state, sequence);
  }
  void restore(RecurrentState state, std::size_t sequence,
               std::span<const std::byte> saved) override {
    inner_->restore(state, sequence, saved);
  }
  std::span<const float> read(Tensor x, std::size_t t) override { return inner_->read(x, t); }
  Result<void> take_error() override { return inner_->take_error(); }
  std::uint64_t memory_bytes() const override { return inner_->memory_bytes(); }

 private:
  // Called for each weight of a group; those that read one form of the input are one stage.
  void observe(const ProjectionTrace& projection) {
    if (observer_) observer_(projection);
    const Weight& w = *projection.weight;
    const auto index = static_cast<std::size_t>(&w - group_->data());
    if (index > 0 && same_form(w, (*group_)[index - 1])) return;
    const std::size_t known = trace_.stages_.size();
    TracedStage& stage = trace_.stage(w);
    if (trace_.stages_.size() > known) name(stage, index);
    const ActivationQuant quant = int8_ ? w.activation_quant : ActivationQuant::none;
    stage.quantised = quant != ActivationQuant::none;
    for (std::size_t t = 0; t < projection.n; ++t) {
      const auto given = inner_->read(input_, t);
      stage.before.add(given, quant);
      if (w.rotation == nullptr) continue;
      const auto rotated = projection.rotated.subspan(t * projection.padded_cols, w.shape.cols);
      stage.after.add(rotated, quant);
      if (is_checked(t, projection.n)) check(stage, given, rotated, false);
    }
  }

  // Names the stage after all its weights, each without what it shares with the first.
  void name(TracedStage& stage, std::size_t first) const {
    const std::string prefix = stage.name.substr(0, stage.name.rfind('.') + 1);
    for (std::size_t i = first + 1; i < group_->size(); ++i) {
      if (!same_form((*group_)[i], (*group_)[first])) return;
      const std::string other = short_name((*group_)[i].name);
      stage.name += "+" + (other.starts_with(prefix) ? other.substr(prefix.size()) : other);
    }
  }

  static void check(TracedStage& stage, std::span<const float> x, std::span<const float> y,
                    bool signs_last) {
    ++stage.checked;
    stage.deviation = std::max(stage.deviation, deviation(x, y, *stage.rotation, signs_last));
  }

  ActivationTrace& trace_;
  const bool int8_;
  const std::function<void(const ProjectionTrace&)> observer_;  // the caller's own
  std::unique_ptr<Backend> inner_;
  const ProjectionGroup* group_ = nullptr;  // of the projection that runs
  Tensor input_{};
};

std::unique_ptr<Backend> make_tracing_backend(CpuOptions options, ActivationTrace& trace) {
  return std::make_unique<TracingBackend>(std::move(options), trace);
}

}  // namespace tsq
