// read_decoder_config: the sizes of a decoder from its metadata, each checked before it is used.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "arch/decoder.h"
#include "arch/key_reader.h"
#include "base/errorf.h"
#include "kernels/kernels.h"

namespace tsq {
namespace {

// YaRN (Peng et al. 2023, arXiv 2309.00071): fast frequencies stay, slow ones are divided by
// factor, those between are blended; attention is sharpened by a magnitude on q and k.
void apply_yarn(Rope& rope, double base, std::size_t rope_dims, double factor,
                double original_context, double beta_fast, double beta_slow, double attention) {
  const double dims = static_cast<double>(rope_dims);
  // The (fractional) pair whose wave turns `turns` times over the original context.
  const auto pair_of = [&](double turns) {
    return dims * std::log(original_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(base));
  };
  const double low = std::max(0.0, std::floor(pair_of(beta_fast)));
  const double high = std::min(dims - 1, std::ceil(pair_of(beta_slow)));
  for (std::size_t i = 0; i < rope.frequencies.size(); ++i) {
    const double ramp =
        std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
    rope.frequencies[i] *= (1 - ramp) + ramp / factor;
  }
  rope.magnitude = static_cast<float>(attention * (0.1 * std::log(factor) + 1));
}

void read_rope(KeyReader& keys, Config& config) {
  const std::size_t dims =
      keys.size_or("rope.dimension_count", 2, config.head_dim, config.head_dim);
  if (dims % 2 != 0) {
    keys.fail(errorf(ErrorCode::damaged,
                     "metadata '%srope.dimension_count' is %zu, expected an even number",
                     keys.prefix().c_str(), dims));
  }
  const double base = keys.number_or("rope.freq_base", 1, 1e12, 10000);
  for (std::size_t i = 0; i < dims / 2; ++i) {
    config.rope.frequencies.push_back(
        kernels::rope_power(base, -2 * static_cast<double>(i) / static_cast<double>(dims)));
  }
  const std::string scaling = keys.text_or("rope.scaling.type", "none");
  if (scaling == "none") return;
  const double factor = keys.number("rope.scaling.factor", 1, 1e6);
  if (scaling == "linear") {
    for (double& frequency : config.rope.frequencies) frequency /= factor;
  } else if (scaling == "yarn") {
    apply_yarn(config.rope, base, dims, factor,
               keys.number("rope.scaling.original_context_length", 1, 1e9),
               keys.number_or("rope.scaling.yarn_beta_fast", 0, 1e6, 32),
               keys.number_or("rope.scaling.yarn_beta_slow", 0, 1e6, 1),
               keys.number_or("rope.scaling.attn_factor", 0, 1e3, 1));
  } else {
    keys.fail(errorf(ErrorCode::unsupported,
                     "metadata '%srope.scaling.type' is '%s', tsq has none, linear and yarn",
                     keys.prefix().c_str(), printable(scaling).c_str()));
  }
}

// Settings of other decoders that change what is computed, and the value that changes nothing.
struct Setting {
  const char* key;
  double harmless;
};
constexpr Setting kForeignSettings[] = {
    {"expert_count", 0},
    {"logit_scale", 1},
    {"residual_scale", 1},
    {"embedding_scale", 1},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"use_parallel_residual", 0},
    {"attention.causal", 1},
    {"attention.scale", 0},
    {"attention.sliding_window", 0},
    {"attention.max_alibi_bias", 0},
    {"attention.clamp_kqv", 0},
    {"attention.temperature_length", 0},
    {"rope.scaling.yarn_ext_factor", 1},
    {"rope.scaling.yarn_log_multiplier", 0},
    {"rope.scaling.alpha", 0},
};

void refuse_foreign_settings(KeyReader& keys, const Metadata& metadata) {
  for (const Setting& setting : kForeignSettings) {
    const std::string key = keys.prefix() + setting.key;
    const Value* const value = metadata.find(key);
    if (value == nullptr) continue;
    const auto flag = value->as_bool();
    const auto number = flag ? std::optional<double>(*flag ? 1 : 0) : value->as_f64();
    if (number && *number == setting.harmless) continue;
    keys.fail(errorf(ErrorCode::unsupported,
                     "metadata '%s' is set, and tsq's graph for the architecture has no such thing",
                     key.c_str()));
  }
}

}  // namespace

Result<Config> read_decoder_config(const format::File& file, std::string_view architecture) {
  KeyReader keys(file.metadata(), std::string(architecture) + ".");
  Config config;
  config.architecture = architecture;
  // The bounds are far beyond any model and keep products of two within 64 bits.
  config.n_layers = keys.size("block_count", 1, 4096);
  config.n_kv_layers = config.n_layers;
  config.hidden = keys.size("embedding_length", 1, 1 << 20);
  config.ffn = keys.size("feed_forward_length", 1, 1 << 22);
  config.context = keys.size("context_length", 1, kMaxContext);
  config.n_heads = keys.size("attention.head_count", 1, 1 << 14);
  config.n_kv_heads = keys.size_or("attention.head_count_kv", 1, config.n_heads, config.n_heads);
  config.head_dim = keys.size_or("attention.key_length", 1, 1024, config.hidden / config.n_heads);
  config.rms_eps = static_cast<float>(keys.number("attention.layer_norm_rms_epsilon", 0, 1));
  const std::size_t value_dim = keys.size_or("attention.value_length", 1, 1024, config.head_dim);
  if (config.n_heads % config.n_kv_heads != 0) {
    keys.fail(errorf(ErrorCode::damaged,
                     "metadata '%sattention.head_count' is %zu, expected a multiple of the %zu "
                     "key/value heads",
                     keys.prefix().c_str(), config.n_heads, config.n_kv_heads));
  }
  if (config.head_dim % 16 != 0 || config.head_dim == 0 || config.head_dim > 1024 ||
      value_dim != config.head_dim) {
    keys.fail(errorf(ErrorCode::unsupported,
                     "%s heads of %zu keys and %zu values, tsq has equal ones, a multiple of 16 up "
                     "to 1024",
                     config.architecture.c_str(), config.head_dim, value_dim));
  }
  refuse_foreign_settings(keys, file.metadata());
  if (!keys.error()) read_rope(keys, config);
  if (keys.error()) return *keys.error();
  const format::TensorRecord* const embedding = file.find("token_embd.weight");
  if (embedding == nullptr) {
    return errorf(ErrorCode::damaged, "tensor 'token_embd.weight' is missing");
  }
  config.vocab = embedding->rows();
  if (config.vocab != file.header().vocab_size) {
    return errorf(ErrorCode::damaged,
                  "tensor 'token_embd.weight' has %zu rows, the header's vocab_size is %" PRIu32,
                  config.vocab, file.header().vocab_size);
  }
  return config;
}

}  // namespace tsq
