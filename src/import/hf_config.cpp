#include "import/hf_config.h"

#include <algorithm>
#include <array>
#include <cinttypes>
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
    const bool partial = std::string_view(setting.key) == "partial_rotary_factor";
    if (partial && family.gated_delta_net) continue;
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
  const auto layers = config.find("layer_types");
  if (layers && !family.gated_delta_net) {
    for (const auto& [key, type] : *layers) {
      if (type.as_string() == "full_attention") continue;
      config.refuse("layer_types", type, "'full_attention' only");
    }
  }
  const auto gate = config.find("attn_output_gate");
  if (gate && gate->as_bool() != family.gated_delta_net) {
    config.refuse("attn_output_gate", *gate,
                  family.gated_delta_net ? "gated attention in this architecture"
                                         : "no gated attention in this architecture");
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

// How many values of a head turn.
std::uint32_t rotary_dims(ObjectReader& config, std::optional<ObjectReader>& rope,
                          const HfConfig& model) {
  constexpr char kKey[] = "partial_rotary_factor";
  const auto whole = static_cast<std::uint32_t>(model.head_dim);
  if (!model.family->gated_delta_net) return whole;
  ObjectReader& at = rope && rope->has(kKey) ? *rope : config;
  const double dims = at.number_or(kKey, 0.25) * static_cast<double>(model.head_dim);
  if (dims >= 2 && dims <= whole && std::fmod(dims, 2) == 0) {
    return static_cast<std::uint32_t>(dims);
  }
  at.fail(errorf(ErrorCode::unsupported,
                 "'%s' turns %g values of a head of %u, tsq has even numbers of them",
                 at.name(kKey).c_str(), dims, whole));
  return whole;
}

// The frequencies of time, height and width of an image; of text all are the position.
void add_sections(ObjectReader& rope, const std::string& prefix, MetadataBuilder& keys) {
  const auto sections = rope.find("mrope_section");
  if (!sections) return;
  std::array<std::int32_t, 4> sizes = {};
  bool sound = sections->kind() == JsonKind::array && sections->size() == 3;
  std::size_t n = 0;
  for (const auto& [key, value] : *sections) {
    const auto size = value.as_u64();
    sound = sound && size && *size <= 1024;
    if (sound) sizes[n++] = static_cast<std::int32_t>(*size);
  }
  if (!sound) return rope.wrong("mrope_section", *sections, "three sizes");
  keys.add_i32s(prefix + "dimension_sections", sizes);
}

void read_rope(ObjectReader& config, std::uint32_t context, HfConfig& model,
               MetadataBuilder& keys) {
  const std::string prefix = std::string(model.family->architecture) + ".rope.";
  // transformers 5 puts all of it into rope_parameters.
  auto rope = config.inner("rope_parameters");
  const bool has_theta = rope && rope->has("rope_theta");
  const double theta =
      has_theta ? rope->number("rope_theta") : config.number_or("rope_theta", 10000);
  keys.add(prefix + "dimension_count", rotary_dims(config, rope, model));
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
  const bool of_images = model.family->gated_delta_net;
  if (of_images) add_sections(*rope, prefix, keys);
  for (const auto& [key, value] : rope->object()) {
    if (value.kind() == JsonKind::null || std::ranges::find(kKeys, key) != std::end(kKeys)) {
      continue;
    }
    if (of_images && (key == "mrope_section" || key == "mrope_interleaved")) continue;
    rope->refuse(key, value, "no such setting of rotary positions");
  }
  if (!of_images && rope->number_or("partial_rotary_factor", 1) != 1) {
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

// Which layers have attention: every n-th, or a flag for each that has none.
void add_layer_types(ObjectReader& config, const HfConfig& model, MetadataBuilder& keys) {
  const std::string prefix = std::string(model.family->architecture) + ".";
  const auto types = config.find("layer_types");
  if (!types) {
    keys.add(prefix + "full_attention_interval", config.size_or("full_attention_interval", 4));
    return;
  }
  if (types->kind() != JsonKind::array || types->size() != model.n_layers) {
    return config.wrong("layer_types", *types, "a type for each of num_hidden_layers");
  }
  std::vector<bool> recurrent;
  for (const auto& [key, type] : *types) {
    const auto name = type.as_string();
    if (name != "linear_attention" && name != "full_attention") {
      return config.refuse("layer_types", type, "'linear_attention' and 'full_attention'");
    }
    recurrent.push_back(name == "linear_attention");
  }
  const auto first = std::ranges::find(recurrent, false);
  const auto interval = static_cast<std::size_t>(first - recurrent.begin()) + 1;
  bool regular = first != recurrent.end();
  for (std::size_t i = 0; i < recurrent.size(); ++i) {
    regular = regular && recurrent[i] == ((i + 1) % interval != 0);
  }
  if (regular) {
    keys.add(prefix + "full_attention_interval", static_cast<std::uint32_t>(interval));
  } else {
    keys.add_bools(prefix + "attention.recurrent_layers", recurrent);
  }
}

// The sizes of gated DeltaNet layers under GGUF's names for a state space model.
void add_delta_net(ObjectReader& config, HfConfig& model, MetadataBuilder& keys) {
  const std::uint32_t k_heads = config.size_or("linear_num_key_heads", 16);
  const std::uint32_t v_heads = config.size_or("linear_num_value_heads", 32);
  const std::uint64_t inner =
      static_cast<std::uint64_t>(v_heads) * config.size_or("linear_value_head_dim", 128);
  if (v_heads % k_heads != 0) {
    config.fail(errorf(ErrorCode::damaged,
                       "'%s' is %u, expected a multiple of 'linear_num_key_heads', %u",
                       config.name("linear_num_value_heads").c_str(), v_heads, k_heads));
  }
  if (inner > kMax) {
    config.fail(errorf(ErrorCode::damaged,
                       "value heads of %" PRIu64 " values in all, expected 1 to 2^32 - 1", inner));
  }
  const std::uint32_t taps = config.size_or("linear_conv_kernel_dim", 4);
  model.conv_taps = taps;
  keys.add("qwen35.ssm.conv_kernel", taps);
  keys.add("qwen35.ssm.state_size", config.size_or("linear_key_head_dim", 128));
  keys.add("qwen35.ssm.group_count", k_heads);
  keys.add("qwen35.ssm.time_step_rank", v_heads);
  keys.add("qwen35.ssm.inner_size", static_cast<std::uint32_t>(inner));
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

Json text_config(const Json& config) {
  const auto type = config.find("model_type");
  const HfFamily* const family = type ? find_family(type->as_string().value_or("")) : nullptr;
  const auto text = family && family->in_text_config ? config.find("text_config") : std::nullopt;
  return text.value_or(config);
}

Result<HfConfig> read_hf_config(const Json& json, MetadataBuilder& keys) {
  if (json.kind() != JsonKind::object) {
    return errorf(ErrorCode::damaged, "holds %s, expected an object", json_kind_name(json.kind()));
  }
  const auto family = read_family(json);
  if (!family) return family.error();
  std::optional<Error> error;
  ObjectReader whole(json, "", &error);
  const auto text = (*family)->in_text_config ? whole.inner("text_config") : whole;
  if (error) return *error;
  if (!text) return errorf(ErrorCode::damaged, "'text_config' is missing, the model needs it");
  ObjectReader config = *text;
  HfConfig model;
  model.family = *family;
  refuse_foreign_settings(config, **family);
  model.packed = read_quantisation(whole);
  model.tied_head =
      whole.flag_or("tie_word_embeddings", config.flag_or("tie_word_embeddings", false));

  const std::uint32_t hidden = config.size("hidden_size");
  const std::uint32_t context = config.size("max_position_embeddings");
  model.n_layers = config.size("num_hidden_layers");
  model.n_heads = config.size("num_attention_heads");
  model.n_kv_heads = model.family->kv_heads_default
                         ? config.size_or("num_key_value_heads", model.n_heads)
                         : config.size("num_key_value_heads");
  const bool hybrid = model.family->gated_delta_net;
  model.head_dim = config.size_or("head_dim", hybrid ? 256 : hidden / model.n_heads);
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
  if (hybrid && !error) {
    add_layer_types(config, model, keys);
    add_delta_net(config, model, keys);
  }
  if (error) return *error;
  return model;
}

}  // namespace tsq::importer
