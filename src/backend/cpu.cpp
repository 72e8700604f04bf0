#include "backend/cpu.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "backend/activations.h"
#include "backend/kernel_views.h"
#include "backend/kv_store.h"
#include "backend/recurrence.h"
#include "base/checked.h"
#include "base/errorf.h"

namespace tsq {
namespace {

using format::Encoding;
using kernels::PackedForm;

// Rows are shared out in units: a whole ternary row block.
constexpr std::size_t kRows = kernels::kRowBlock;
// Kernels read the two halves of a range side by side.
constexpr std::size_t kLeastUnits = 2;

std::size_t div_up(std::size_t n, std::size_t by) { return (n + by - 1) / by; }

// Tokens whose query heads read the cache together.
constexpr std::size_t kTileTokens = 16;

struct TensorData {
  Buffer<float> data;  // [n_tokens][stride], zeros from width on
  std::size_t width, stride;

  float* row(std::size_t t) { return data.data() + t * stride; }
  Rows rows() { return {data.data(), stride}; }
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : k_(*options.kernels),
        options_(options),
        pool_(options.threads),
        activations_(k_),
        recurrence_(k_, pool_) {}

  Tensor new_tensor(std::size_t n_tokens, std::size_t width) override {
    const std::size_t stride = round_up(width, kernels::kGroup);
    tensors_.push_back({Buffer<float>(n_tokens * stride), width, stride});
    return {static_cast<std::uint32_t>(tensors_.size() - 1)};
  }

  KvCache new_kv_cache(const KvShape& shape) override {
    caches_.emplace_back(shape, !options_.int8);
    return {static_cast<std::uint32_t>(caches_.size() - 1)};
  }

  RecurrentState new_recurrent_state(const RecurrentShape& shape) override {
    return recurrence_.new_state(shape, options_.max_tokens);
  }

  void reserve(const ProjectionGroup& group, std::size_t n_tokens, Epilogue epilogue) override {
    std::size_t rows = 0;
    for (const Weight& w : group) {
      rows += w.shape.rows;
      activations_.reserve(n_tokens, format::padded_cols(w.shape.encoding, w.shape.cols),
                           form_of(w));
    }
    if (epilogue != Epilogue::none && before_epilogue_.size() < n_tokens * rows) {
      before_epilogue_ = Buffer<float>(n_tokens * rows);
    }
  }

  void begin(const Batch& batch) override {
    assert(batch.size() <= options_.max_tokens);
    static_cast<void>(batch);
    angles_of_ = nullptr;
  }

  void embed(const Weight& table, const Batch& batch, Tensor out) override {
    TensorData& y = tensors_[out.id];
    pool_.parallel_for(batch.size(), 4, [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) {
        const auto token = static_cast<std::size_t>(batch.tokens[t]);
        float* const row = y.row(t);
        switch (table.shape.encoding) {
          case Encoding::t2:
            k_.t2_row(ternary_view(table), token, row);
            break;
          case Encoding::t1:
            k_.t1_row(ternary_view(table), token, row);
            break;
          case Encoding::s34:
            k_.s34_row(ternary_view(table), token, row);
            break;
          case Encoding::f32:
          case Encoding::f16:
          case Encoding::bf16:
          case Encoding::q8:
          case Encoding::q4:
            k_.dense_row(dense_view(table), token, row);
            break;
        }
        std::fill(row + y.width, row + y.stride, 0.0f);
        if (const format::Rotation* r = table.rotation) {
          k_.unrotate(row, r->signs.empty() ? nullptr : r->signs.data(), y.width, r->block, row);
        }
      }
    });
  }

  void rms_norm(Tensor x, const VectorWeight& w, float eps, std::size_t n_tokens,
                Tensor y) override {
    TensorData &in = tensors_[x.id], &out = tensors_[y.id];
    pool_.parallel_for(n_tokens, 8, [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) {
        k_.rms_norm(in.row(t), w.values.data(), in.width, eps, out.row(t));
      }
    });
  }

  void rms_norm_heads(const VectorWeight& w, float eps, std::size_t n_tokens, Tensor x) override {
    TensorData& data = tensors_[x.id];
    const std::size_t head_dim = w.values.size();
    pool_.parallel_for(n_tokens, 8, [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) {
        for (std::size_t i = 0; i < data.width; i += head_dim) {
          k_.rms_norm(data.row(t) + i, w.values.data(), head_dim, eps, data.row(t) + i);
        }
      }
    });
  }

  void project(const ProjectionGroup& group, Tensor x, std::size_t n_tokens,
               std::initializer_list<Tensor> outputs, Epilogue epilogue) override {
    assert(outputs.size() == (epilogue == Epilogue::silu_mul ? group.size() / 2 : group.size()));
    // Where each weight's product goes: straight to its output, or to scratch before an epilogue.
    std::vector<kernels::Outputs> products;
    std::size_t scratch = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::size_t rows = group[i].shape.rows;
      if (epilogue == Epilogue::none) {
        TensorData& out = tensors_[outputs.begin()[i].id];
        products.push_back({out.data.data(), out.stride});
      } else {
        products.push_back({before_epilogue_.data() + scratch, rows});
        scratch += n_tokens * rows;
      }
    }
    for (std::size_t i = 0; i < group.size();) {  // runs of weights that read one form of x
      std::size_t end = i + 1;
      while (end < group.size() && form_of(group[end]) == form_of(group[i])) ++end;
      if (!prepare(group[i], x, n_tokens)) return;
      sweep(group, i, end, products);
      i = end;
    }
    TensorData& out = tensors_[outputs.begin()[0].id];
    if (epilogue == Epilogue::silu_mul) {
      const std::size_t rows = group[0].shape.rows;
      pool_.parallel_for(n_tokens, 8, [&](std::size_t first, std::size_t last) {
        for (std::size_t t = first; t < last; ++t) {
          k_.silu_mul(products[0].data + t * rows, products[1].data + t * rows, rows, out.row(t));
        }
      });
    } else if (epilogue == Epilogue::add) {
      const std::size_t rows = group[0].shape.rows;
      pool_.parallel_for(n_tokens, 8, [&](std::size_t first, std::size_t last) {
        for (std::size_t t = first; t < last; ++t) {
          k_.add(products[0].data + t * rows, rows, out.row(t));
        }
      });
    }
  }

  void rope(const Rope& rope, const Batch& batch, std::size_t head_dim, Tensor x) override {
    const std::size_t pairs = rope.frequencies.size();
    if (angles_of_ != &rope) compute_angles(rope, batch);
    TensorData& data = tensors_[x.id];
    pool_.parallel_for(batch.size(), 8, [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) {
        const float* const cos = angles_.data() + 2 * pairs * t;
        for (std::size_t i = 0; i < data.width; i += head_dim) {
          k_.rope(data.row(t) + i, cos, cos + pairs, pairs, rope.neox);
        }
      }
    });
  }

  void append(Tensor k, Tensor v, const Batch& batch, KvCache cache, std::size_t layer) override {
    KvStore& store = caches_[cache.id];
    const std::size_t head_dim = store.shape().head_dim;
    const auto put = [&](const float* from, std::byte* to) {
      if (options_.int8) {
        k_.to_f16(from, head_dim, reinterpret_cast<std::uint16_t*>(to));
      } else {
        std::copy_n(from, head_dim, reinterpret_cast<float*>(to));
      }
    };
    pool_.parallel_for(batch.size(), 16, [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) {
        const auto sequence = static_cast<std::size_t>(batch.sequences[t]);
        const auto position = static_cast<std::size_t>(batch.positions[t]);
        for (std::size_t head = 0; head < store.shape().n_kv_heads; ++head) {
          const std::size_t at = head * head_dim;
          put(tensors_[k.id].row(t) + at, store.key(layer, sequence, head, position));
          put(tensors_[v.id].row(t) + at, store.value(layer, sequence, head, position));
        }
      }
    });
  }

  void attention(Tensor q, const Batch& batch, KvCache cache, std::size_t layer,
                 std::size_t n_heads, float scale, Tensor out) override {
    KvStore& store = caches_[cache.id];
    const std::size_t head_dim = store.shape().head_dim, kv_heads = store.shape().n_kv_heads;
    const std::size_t group = n_heads / kv_heads;
    TensorData &in = tensors_[q.id], &result = tensors_[out.id];
    split_tokens(batch,
                 std::min(kTileTokens, std::max<std::size_t>(1, kernels::kTileQueries / group)));
    // Where there are fewer tiles than threads, the query heads of a group are shared out too.
    const auto threads = static_cast<std::size_t>(pool_.threads());
    const std::size_t wanted = div_up(threads, token_runs_.size() * kv_heads);
    const std::size_t heads =
        std::min(kernels::kTileQueries, div_up(group, std::min(group, wanted)));
    const std::size_t parts = div_up(group, heads);
    const auto kernel = options_.int8 ? k_.attention_f16 : k_.attention_f32;
    pool_.parallel_for(
        token_runs_.size() * kv_heads * parts, 1, [&](std::size_t first, std::size_t last) {
          for (std::size_t i = first; i < last; ++i) {
            const auto [token, n_tokens] = token_runs_[i / parts / kv_heads];
            const std::size_t kv_head = i / parts % kv_heads, head = i % parts * heads;
            const auto sequence = static_cast<std::size_t>(batch.sequences[token]);
            const std::size_t at = (kv_head * group + head) * head_dim;
            kernel({.q = in.row(token) + at,
                    .q_stride = in.stride,
                    .keys = store.key(layer, sequence, kv_head, 0),
                    .values = store.value(layer, sequence, kv_head, 0),
                    .stride = head_dim,
                    .length = static_cast<std::size_t>(batch.positions[token]) + 1,
                    .n_tokens = n_tokens,
                    .n_heads = std::min(heads, group - head),
                    .head_dim = head_dim,
                    .scale = scale,
                    .out = result.row(token) + at,
                    .out_stride = result.stride});
          }
        });
  }

  void split_heads(Tensor x, std::size_t head_dim, std::size_t n_tokens, Tensor even,
                   Tensor odd) override {
    TensorData &in = tensors_[x.id], &first_out = tensors_[even.id], &second_out = tensors_[odd.id];
    pool_.parallel_for(n_tokens, 8, [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) {
        for (std::size_t i = 0; i < first_out.width; i += head_dim) {
          std::copy_n(in.row(t) + 2 * i, head_dim, first_out.row(t) + i);
          std::copy_n(in.row(t) + 2 * i + head_dim, head_dim, second_out.row(t) + i);
        }
      }
    });
  }

  void gate(Gate gate, Tensor g, std::size_t n_tokens, Tensor x) override {
    TensorData &by = tensors_[g.id], &data = tensors_[x.id];
    const auto kernel = gate == Gate::silu ? k_.silu_mul : k_.sigmoid_mul;
    pool_.parallel_for(n_tokens, 8, [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) {
        kernel(by.row(t), data.row(t), data.width, data.row(t));
      }
    });
  }

  void causal_conv(const Weight& taps, const Batch& batch, RecurrentState state, std::size_t layer,
                   Tensor x) override {
    recurrence_.causal_conv(taps, batch, state, layer, tensors_[x.id].rows());
  }

  void delta_net(Tensor qkv, Tensor a, Tensor b, const DeltaGates& gates, const Batch& batch,
                 RecurrentState state, std::size_t layer, Tensor out) override {
    recurrence_.delta_net(tensors_[qkv.id].rows(), tensors_[a.id].rows(), tensors_[b.id].rows(),
                          gates, batch, state, layer, tensors_[out.id].rows());
  }

  void gather(Tensor x, std::span<const std::int32_t> rows, Tensor out) override {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const float* const from = tensors_[x.id].row(static_cast<std::size_t>(rows[i]));
      std::copy_n(from, tensors_[x.id].width, tensors_[out.id].row(i));
    }
  }

  std::vector<std::byte> save(KvCache cache, std::size_t sequence, std::size_t n) override {
    return caches_[cache.id].save(sequence, n);
  }
  void restore(KvCache cache, std::size_t sequence, std::size_t n,
               std::span<const std::byte> saved) override {
    caches_[cache.id].restore(sequence, n, saved);
  }
  std::vector<std::byte> save(RecurrentState state, std::size_t sequence) override {
    return recurrence_.store(state).save(sequence);
  }
  void restore(RecurrentState state, std::size_t sequence,
               std::span<const std::byte> saved) override {
    recurrence_.store(state).restore(sequence, saved);
  }

  std::span<const float> read(Tensor x, std::size_t t) override {
    return {tensors_[x.id].row(t), tensors_[x.id].width};
  }

  Result<void> take_error() override {
    if (!error_) return {};
    Error error = std::move(*error_);
    error_.reset();
    return error;
  }

  std::uint64_t memory_bytes() const override {
    std::uint64_t bytes =
        activations_.memory_bytes() + (before_epilogue_.size() + angles_.size()) * sizeof(float);
    for (const TensorData& tensor : tensors_) bytes += tensor.data.size() * sizeof(float);
    for (const KvStore& cache : caches_) bytes += cache.memory_bytes();
    return bytes + recurrence_.memory_bytes();
  }

 private:
  ActivationForm form_of(const Weight& w) const {
    if (!options_.int8) return {w.rotation, format::ActivationQuant::none, false, QuadTables::none};
    return {w.rotation, w.activation_quant, has_half_groups(w), tables_of(w)};
  }

  QuadTables tables_of(const Weight& w) const {
    if (w.form() != PackedForm::s34_lut || k_.s34_lut_gemv == nullptr) return QuadTables::none;
    return is_stride16(w) ? QuadTables::stride16 : QuadTables::consecutive;
  }

  bool prepare(const Weight& w, Tensor x, std::size_t n_tokens) {
    TensorData& in = tensors_[x.id];
    const std::size_t bad =
        activations_.prepare(pool_, in.data.data(), in.stride, n_tokens, w.shape.cols,
                             format::padded_cols(w.shape.encoding, w.shape.cols), form_of(w));
    if (bad == n_tokens) return true;
    if (!error_) {
      error_ = errorf(ErrorCode::numeric,
                      "%s: an activation of token %zu of the batch is infinite or not a number",
                      w.name.c_str(), bad);
    }
    return false;
  }

  // products[i] = group[i] x for i in [begin, end), whose prepared form is the same.
  void sweep(const ProjectionGroup& group, std::size_t begin, std::size_t end,
             const std::vector<kernels::Outputs>& products) {
    std::size_t units = 0;
    for (std::size_t i = begin; i < end; ++i) units += round_up(group[i].shape.rows, kRows) / kRows;
    pool_.parallel_for(units, kLeastUnits, [&](std::size_t first, std::size_t last) {
      std::size_t start = 0;  // of weight i's units
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t n = round_up(group[i].shape.rows, kRows) / kRows;
        const std::size_t from = std::max(first, start), to = std::min(last, start + n);
        if (from < to) {
          multiply(group[i],
                   {(from - start) * kRows, std::min((to - start) * kRows, group[i].shape.rows)},
                   products[i]);
        }
        start += n;
      }
    });
    if (!options_.observer) return;
    for (std::size_t i = begin; i < end; ++i) observe(group[i], products[i]);
  }

  // The kernel of one column that w's packed form has at this level, or null.
  kernels::TernaryGemmFn* packed_gemv(const Weight& w) const {
    switch (w.form()) {
      case PackedForm::none:
      case PackedForm::t2:
        break;
      case PackedForm::t1_escape:
        return k_.t1_escape_gemv;
      case PackedForm::s34_lut:
        return k_.s34_lut_gemv;
    }
    return nullptr;
  }

  void multiply(const Weight& w, kernels::RowRange rows, kernels::Outputs y) const {
    const bool int8 = options_.int8;
    if (w.form() != PackedForm::none) {
      kernels::TernaryMatrix packed = ternary_view(w);
      packed.body = w.packed->data;
      if (w.form() == PackedForm::t2) {
        if (int8) return k_.t2_gemm(packed, rows, activations_.q8(), y);
        return k_.t2_gemm_f32(packed, rows, activations_.f32(), y);
      }
      if (auto* const gemv = packed_gemv(w); int8 && gemv != nullptr && activations_.q8().n == 1) {
        return gemv(packed, rows, activations_.q8(), y);
      }
    }
    switch (w.shape.encoding) {
      case Encoding::t2:
        if (int8) return k_.t2_gemm(ternary_view(w), rows, activations_.q8(), y);
        return k_.t2_gemm_f32(ternary_view(w), rows, activations_.f32(), y);
      case Encoding::t1:
        if (int8) return k_.t1_gemm(ternary_view(w), rows, activations_.q8(), y);
        return k_.t1_gemm_f32(ternary_view(w), rows, activations_.f32(), y);
      case Encoding::s34:
        if (int8) return k_.s34_gemm(ternary_view(w), rows, activations_.q8(), y);
        return k_.s34_gemm_f32(ternary_view(w), rows, activations_.f32(), y);
      case Encoding::f32:
      case Encoding::f16:
      case Encoding::bf16:
      case Encoding::q8:
      case Encoding::q4:
        return k_.dense_gemm(dense_view(w), rows, activations_.f32(), y);
    }
  }

  void observe(const Weight& w, kernels::Outputs product) const {
    const std::size_t cols = format::padded_cols(w.shape.encoding, w.shape.cols);
    const kernels::F32Matrix x = activations_.f32();
    const std::size_t n = x.n, rows = w.shape.rows;
    std::vector<float> rotated(n * cols), y(n * rows);
    for (std::size_t t = 0; t < n; ++t) {
      std::copy_n(x.data + t * x.stride, cols, rotated.data() + t * cols);
      std::copy_n(product.data + t * product.stride, rows, y.data() + t * rows);
    }
    ProjectionTrace trace{&w, n, cols, rotated, {}, {}, {}, y};
    if (form_of(w).quant != format::ActivationQuant::none) {
      const kernels::Q8Matrix q8 = activations_.q8();
      trace.q = {q8.q, n * cols};
      trace.scale = {q8.scale, n * (cols / kernels::kGroup)};
      if (q8.token_scale != nullptr) trace.token_scale = {q8.token_scale, n};
    }
    options_.observer(trace);
  }

  // token_runs_: the batch in runs of at most that many tokens of a sequence that follow each
  // other.
  void split_tokens(const Batch& batch, std::size_t most) {
    token_runs_.clear();
    for (std::size_t t = 0; t < batch.size(); ++t) {
      if (t != 0 && token_runs_.back().n < most && batch.sequences[t] == batch.sequences[t - 1] &&
          batch.positions[t] == batch.positions[t - 1] + 1) {
        ++token_runs_.back().n;
      } else {
        token_runs_.push_back({t, 1});
      }
    }
  }

  void compute_angles(const Rope& rope, const Batch& batch) {
    const std::size_t pairs = rope.frequencies.size();
    if (angles_.size() < options_.max_tokens * 2 * pairs) {
      angles_ = Buffer<float>(options_.max_tokens * 2 * pairs);
    }
    pool_.parallel_for(batch.size(), 8, [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) {
        float* const cos = angles_.data() + 2 * pairs * t;
        kernels::rope_angles(batch.positions[t], rope.frequencies.data(), pairs, cos, cos + pairs);
        if (rope.magnitude != 1.0f) {
          for (std::size_t i = 0; i < 2 * pairs; ++i) cos[i] *= rope.magnitude;
        }
      }
    });
    angles_of_ = &rope;
  }

  const kernels::Kernels& k_;
  const CpuOptions options_;
  ThreadPool pool_;
  std::vector<TensorData> tensors_;
  std::vector<KvStore> caches_;
  Activations activations_;
  Recurrence recurrence_;
  struct TokenRun {
    std::size_t first, n;
  };
  std::vector<TokenRun> token_runs_;
  Buffer<float> before_epilogue_;  // products that an epilogue will take up
  Buffer<float> angles_;           // of the current batch: per token its cosines, then its sines
  const Rope* angles_of_ = nullptr;
  std::optional<Error> error_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace tsq
