#include "import/hf_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>
#include <string>

#include "base/errorf.h"

namespace tsq::importer {
namespace {

constexpr std::uint64_t kMax = UINT32_MAX;

// Reads the members of an object; the first failure sticks. null is as good as absent.
class ObjectReader {
 public:
  ObjectReader(Json object, std::string where, std::optional<Error>* error)
      : object_(object), where_(std::move(where)), error_(error) {}

  std::optional<Json> find(const char* key) const {
    const auto value = object_.find(key);
    return value && value->kind() != JsonKind::null ? value : std::nullopt;
  }
  bool has(const char* key) const { return find(key).has_value(); }
  std::string name(std::string_view key) const { return where_ + printable(key); }
  const Json& object() const { return object_; }

  std::uint32_t size(const char* key) {
    const auto value = require(key);
    const auto number = value ? value->as_u64() : std::nullopt;
    if (number && *number >= 1 && *number <= kMax) return static_cast<std::uint32_t>(*number);
    if (value) wrong(key, *value, "a whole number from 1 to 2^32 - 1");
    return 1;
  }
  std::uint32_t size_or(const char* key, std::uint64_t absent) {
    return has(key) ? size(key) : static_cast<std::uint32_t>(std::min(absent, kMax));
  }
  double number(const char* key) {
    const auto value = require(key);
    const auto number = value ? value->as_f64() : std::nullopt;
    if (number && *number > 0 && *number <= 1e12) return *number;
    if (value) wrong(key, *value, "a positive number");
    return 1;
  }
  double number_or(const char* key, double absent) { return has(key) ? number(key) : absent; }
  std::string text_or(const char* key, const char* absent) {
    const auto value = find(key);
    if (!value) return absent;
    if (const auto text = value->as_string()) return std::string(*text);
    wrong(key, *value, "a string");
    return absent;
  }
  bool flag_or(const char* key, bool absent) {
    const auto value = find(key);
    if (!value) return absent;
    if (const auto flag = value->as_bool()) return *flag;
    wrong(key, *value, "true or false");
    return absent;
  }
  // An object, or nothing.
  std::optional<ObjectReader> inner(const char* key) {
    const auto value = find(key);
    if (!value) return std::nullopt;
    if (value->kind() == JsonKind::object) return ObjectReader(*value, name(key) + ".", error_);
    wrong(key, *value, "an object");
    return std::nullopt;
  }

  void wrong(std::string_view key, const Json& found, const char* expected) {
    fail(errorf(ErrorCode::damaged, "'%s' is %s, expected %s", name(key).c_str(),
                json_text(found).c_str(), expected));
  }
  // Of a sound value that tsq's graphs have nothing for.
  void refuse(std::string_view key, const Json& found, const char* expected) {
    fail(errorf(ErrorCode::unsupported, "'%s' is %s, tsq has %s", name(key).c_str(),
                json_text(found).c_str(), expected));
  }
  void fail(Error error) {
    if (!*error_) *error_ = std::move(error);
  }

 private:
  std::optional<Json> require(const char* key) {
    const auto value = find(key);
    if (!value) {
      fail(errorf(ErrorCode::damaged, "'%s' is missing, the model needs it", name(key).c_str()));
    }
    return value;
  }

  Json object_;
  std::string where_;  // before a key, in messages
  std::optional<Error>* error_;
};

// Settings that change what is computed, and the value that changes nothing (a boolean is 0 or 1).
struct Setting {
  const char* key;
  double harmless;
};
constexpr Setting kForeignSettings[] = {
    {"attention_bias", 0},
    {"mlp_bias", 0},
    {"partial_rotary_factor", 1},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"logits_scaling", 1},
    {"logit_scale", 1},
    {"embedding_multiplier", 1},
    {"residual_multiplier", 1},
    {"attention_multiplier", 0},
    {"num_experts", 0},
    {"num_local_experts", 0},
    {"clip_qkv", 0},
    {"use_parallel_residual", 0},
};

void refuse_foreign_settings(ObjectReader& config, const HfFamily& family) {
  for (const Setting& setting : kForeignSettings) {
    const auto value = config.find(setting.key);
    if (!value) continue;
    const auto flag = value->as_bool();
    const auto number = flag ? std::optional<double>(*flag ? 1 : 0) : value->as_f64();
    if (number == setting.harmless) continue;
    config.refuse(setting.key, *value, "no such thing in this architecture");
  }
  if (const auto act = config.find("hidden_act"); act && act->as_string() != family.activation) {
    config.refuse("hidden_act", *act,
                  stringf("'%s'", std::string(family.activation).c_str()).c_str());
  }
  // Qwen's window counts where use_sliding_window says so, Mistral's where it is there.
  const auto window = config.find("sliding_window");
  if (window && config.flag_or("use_sliding_window", true)) {
    config.refuse("sliding_window", *window, "attention over the whole context only");
  }
  if (const auto layers = config.find("layer_types")) {
    for (const auto& [key, type] : *layers) {
      if (type.as_string() == "full_attention") continue;
      config.refuse("layer_types", type, "'full_attention' only");
    }
  }
  if (const auto compressed = config.find("compression_config")) {
    config.refuse("compression_config", *compressed, "no such compression");
  }
}

PackedScale read_quantisation(ObjectReader& config) {
  auto how = config.inner("quantization_config");
  if (!how) return PackedScale::none;
  const auto refuse_other = [&](const char* key, const char* absent, const char* known) {
    const std::string value = how->text_or(key, absent);
    if (value == known) return;
    how->fail(errorf(ErrorCode::unsupported, "'%s' is '%s', tsq has '%s'", how->name(key).c_str(),
                     printable(value).c_str(), known));
  };
  refuse_other("quant_method", "", "bitnet");
  refuse_other("quantization_mode", "offline", "offline");  // online: dense weights
  if (how->flag_or("use_rms_norm", false)) {
    how->refuse("use_rms_norm", *how->find("use_rms_norm"), "no norm inside a projection");
  }
  const std::string linear = how->text_or("linear_class", "bitlinear");
  if (linear == "autobitlinear") return PackedScale::multiplies;
  refuse_other("linear_class", "bitlinear", "bitlinear");
  return PackedScale::divides;
}

// Llama 3: long waves are slowed by factor, short ones kept, those between blended.
std::vector<float> llama3_divisors(ObjectReader& rope, double theta, std::uint64_t head_dim) {
  const double factor = rope.number("factor");
  const double low = rope.number("low_freq_factor"), high = rope.number("high_freq_factor");
  const double context = rope.size("original_max_position_embeddings");
  std::vector<float> divisors;
  for (std::uint64_t i = 0; i < head_dim / 2; ++i) {
    const double turn = 2 * std::numbers::pi;
    const double wave =
        turn * std::pow(theta, 2 * static_cast<double>(i) / static_cast<double>(head_dim));
    double divisor = 1;
    if (wave > context / low) {
      divisor = factor;
    } else if (wave >= context / high) {
      const double kept = (context / wave - low) / (high - low);
      divisor = 1 / ((1 - kept) / factor + kept);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

void add_yarn(ObjectReader& rope, std::uint32_t context, const std::string& prefix,
              MetadataBuilder& keys) {
  const double factor = rope.number("factor");
  keys.add(prefix + "factor", static_cast<float>(factor));
  keys.add(prefix + "original_context_length",
           rope.size_or("original_max_position_embeddings", context));
  keys.add(prefix + "yarn_beta_fast", static_cast<float>(rope.number_or("beta_fast", 32)));
  keys.add(prefix + "yarn_beta_slow", static_cast<float>(rope.number_or("beta_slow", 1)));
  if (rope.has("attention_factor")) {  // GGUF's comes on top of the usual one
    keys.add(prefix + "attn_factor",
             static_cast<float>(rope.number("attention_factor") / (0.1 * std::log(factor) + 1)));
  }
  if (!rope.flag_or("truncate", true)) {
    rope.refuse("truncate", *rope.find("truncate"), "the correction range in whole pairs");
  }
}

void read_rope(ObjectReader& config, std::uint32_t context, HfConfig& model,
               MetadataBuilder& keys) {
  const std::string prefix = std::string(model.family->architecture) + ".rope.";
  // transformers 5 puts all of it into rope_parameters.
  auto rope = config.inner("rope_parameters");
  const bool has_theta = rope && rope->has("rope_theta");
  const double theta =
      has_theta ? rope->number("rope_theta") : config.number_or("rope_theta", 10000);
  keys.add(prefix + "dimension_count", static_cast<std::uint32_t>(model.head_dim));
  keys.add(prefix + "freq_base", static_cast<float>(theta));
  if (!rope) rope = config.inner("rope_scaling");
  if (!rope) return;

  static constexpr std::string_view kKeys[] = {"rope_type",
                                               "type",
                                               "rope_theta",
                                               "factor",
                                               "original_max_position_embeddings",
                                               "low_freq_factor",
                                               "beta_fast",
                                               "beta_slow",
                                               "truncate",
                                               "high_freq_factor",
                                               "attention_factor",
                                               "partial_rotary_factor"};
  for (const auto& [key, value] : rope->object()) {
    if (value.kind() == JsonKind::null || std::ranges::find(kKeys, key) != std::end(kKeys)) {
      continue;
    }
    rope->refuse(key, value, "no such setting of rotary positions");
  }
  if (rope->number_or("partial_rotary_factor", 1) != 1) {
    rope->refuse("partial_rotary_factor", *rope->find("partial_rotary_factor"), "whole heads");
  }
  const std::string type = rope->text_or("rope_type", rope->text_or("type", "default").c_str());
  if (type == "default") return;
  if (type == "linear") {
    keys.add(prefix + "scaling.type", "linear");
    keys.add(prefix + "scaling.factor", static_cast<float>(rope->number("factor")));
  } else if (type == "yarn") {
    keys.add(prefix + "scaling.type", "yarn");
    add_yarn(*rope, context, prefix + "scaling.", keys);
  } else if (type == "llama3" && model.family->rope_freqs) {
    model.rope_divisors = llama3_divisors(*rope, theta, model.head_dim);
  } else {
    rope->fail(errorf(ErrorCode::unsupported, "'%s' is '%s', tsq has default, linear, yarn%s",
                      rope->name("rope_type").c_str(), printable(type).c_str(),
                      model.family->rope_freqs ? " and llama3" : ""));
  }
}

// The row of the table for model_type, which has to be the model for text.
Result<const HfFamily*> read_family(const Json& config) {
  const auto type = config.find("model_type");
  if (!type || !type->as_string()) {
    return errorf(ErrorCode::damaged, "'model_type' is %s, expected a string",
                  type ? json_text(*type).c_str() : "missing");
  }
  const HfFamily* const family = find_family(*type->as_string());
  if (family == nullptr) {
    return errorf(ErrorCode::unsupported, "'model_type' is %s, tsq imports %s",
                  json_text(*type).c_str(), family_names().c_str());
  }
  const auto classes = config.find("architectures");
  if (classes && classes->kind() != JsonKind::null) {
    for (const auto& [key, name] : *classes) {
      if (name.as_string() == family->class_name) continue;
      return errorf(ErrorCode::unsupported, "'architectures' holds %s, tsq imports %s",
                    json_text(name).c_str(), std::string(family->class_name).c_str());
    }
  }
  return family;
}

}  // namespace

Result<HfConfig> read_hf_config(const Json& json, MetadataBuilder& keys) {
  if (json.kind() != JsonKind::object) {
    return errorf(ErrorCode::damaged, "holds %s, expected an object", json_kind_name(json.kind()));
  }
  const auto family = read_family(json);
  if (!family) return family.error();
  std::optional<Error> error;
  ObjectReader config(json, "", &error);
  HfConfig model;
  model.family = *family;
  refuse_foreign_settings(config, **family);
  model.packed = read_quantisation(config);
  model.tied_head = config.flag_or("tie_word_embeddings", false);

  const std::uint32_t hidden = config.size("hidden_size");
  const std::uint32_t context = config.size("max_position_embeddings");
  model.n_layers = config.size("num_hidden_layers");
  model.n_heads = config.size("num_attention_heads");
  model.n_kv_heads = model.family->kv_heads_default
                         ? config.size_or("num_key_value_heads", model.n_heads)
                         : config.size("num_key_value_heads");
  model.head_dim = config.size_or("head_dim", hidden / model.n_heads);
  if (!error && (model.head_dim == 0 || model.head_dim % 2 != 0 || model.head_dim > 1024)) {
    config.fail(errorf(ErrorCode::unsupported, "heads of %u values, tsq has even ones up to 1024",
                       static_cast<unsigned>(model.head_dim)));
  }
  const std::string architecture(model.family->architecture);
  const std::string prefix = architecture + ".";
  keys.add("general.architecture", std::string_view(architecture));
  keys.add(prefix + "context_length", context);
  keys.add(prefix + "embedding_length", hidden);
  keys.add(prefix + "block_count", static_cast<std::uint32_t>(model.n_layers));
  keys.add(prefix + "feed_forward_length", config.size("intermediate_size"));
  keys.add(prefix + "attention.head_count", static_cast<std::uint32_t>(model.n_heads));
  keys.add(prefix + "attention.head_count_kv", static_cast<std::uint32_t>(model.n_kv_heads));
  keys.add(prefix + "attention.key_length", static_cast<std::uint32_t>(model.head_dim));
  keys.add(prefix + "attention.value_length", static_cast<std::uint32_t>(model.head_dim));
  keys.add(prefix + "attention.layer_norm_rms_epsilon",
           static_cast<float>(config.number("rms_norm_eps")));
  if (!error) read_rope(config, context, model, keys);
  if (error) return *error;
  return model;
}

}  // namespace tsq::importer
