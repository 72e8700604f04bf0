// config.json, names and tensors of Hugging Face folders.
#include <cmath>
#include <cstring>

#include "hf_files.h"
#include "import/blocks.h"
#include "import/open.h"
#include "temporary_folder.h"

namespace tsq {
namespace {

using importer::SourceType;
using nlohmann::json;

double number(const importer::Checkpoint& checkpoint, const char* key) {
  const Value* value = checkpoint.metadata.find(key);
  EXPECT_NE(value, nullptr) << key;
  return value ? value->as_f64().value_or(NAN) : NAN;
}

const importer::Tensor& tensor(const importer::Checkpoint& checkpoint, std::string_view name) {
  for (const auto& each : checkpoint.tensors) {
    if (each.name == name) return each;
  }
  throw std::runtime_error("no tensor " + std::string(name));
}

TEST(HfConfigTest, SizesBecomeTheKeysOfAGguf) {
  HfFolder folder;
  folder.config["rope_theta"] = 500000.0;
  const auto checkpoint = folder.sound();
  EXPECT_EQ(checkpoint.metadata.find("general.architecture")->as_string(), "llama");
  EXPECT_EQ(checkpoint.metadata.find("general.name")->as_string(), "tiny");
  const std::pair<const char*, double> kKeys[] = {
      {"llama.context_length", 64},
      {"llama.embedding_length", 8},
      {"llama.block_count", 1},
      {"llama.feed_forward_length", 16},
      {"llama.attention.head_count", 2},
      {"llama.attention.head_count_kv", 1},
      {"llama.attention.key_length", 4},
      {"llama.attention.value_length", 4},
      {"llama.rope.dimension_count", 4},
      {"llama.rope.freq_base", 500000},
      {"llama.attention.layer_norm_rms_epsilon", static_cast<double>(1e-6f)}};
  for (const auto& [key, value] : kKeys) EXPECT_EQ(number(checkpoint, key), value) << key;
  EXPECT_EQ(checkpoint.metadata.find("llama.rope.scaling.type"), nullptr);
}

TEST(HfConfigTest, DefaultsAreThoseOfTheClass) {
  HfFolder folder;
  folder.config.erase("num_key_value_heads");
  const auto checkpoint = folder.sound();
  EXPECT_EQ(number(checkpoint, "llama.attention.head_count_kv"), 2);
  EXPECT_EQ(number(checkpoint, "llama.rope.freq_base"), 10000);
  folder.config["model_type"] = "mistral";
  folder.config["architectures"] = {"MistralForCausalLM"};
  folder.expect_refused(ErrorCode::damaged, "config.json: 'num_key_value_heads' is missing");
}

// transformers 4 and 5 write the same in two ways.
TEST(HfConfigTest, RopeScalingOfBothVersions) {
  for (const bool v5 : {false, true}) {
    HfFolder folder;
    json rope = {{v5 ? "rope_type" : "type", "yarn"}, {"factor", 4.0}};
    rope["attention_factor"] = 2.0;
    rope["original_max_position_embeddings"] = 16;
    folder.config[v5 ? "rope_parameters" : "rope_scaling"] = rope;
    (v5 ? folder.config["rope_parameters"] : folder.config)["rope_theta"] = 1e6;
    const auto checkpoint = folder.sound();
    EXPECT_EQ(checkpoint.metadata.find("llama.rope.scaling.type")->as_string(), "yarn");
    EXPECT_EQ(number(checkpoint, "llama.rope.freq_base"), 1e6);
    EXPECT_EQ(number(checkpoint, "llama.rope.scaling.factor"), 4);
    EXPECT_EQ(number(checkpoint, "llama.rope.scaling.original_context_length"), 16);
    EXPECT_EQ(number(checkpoint, "llama.rope.scaling.yarn_beta_fast"), 32);
    EXPECT_EQ(number(checkpoint, "llama.rope.scaling.yarn_beta_slow"), 1);
    // 2 = attn_factor * (0.1 ln 4 + 1)
    EXPECT_NEAR(number(checkpoint, "llama.rope.scaling.attn_factor"), 1.7564977, 1e-6);
    for (const char* other : {"linear", "default"}) {
      rope["rope_type"] = rope["type"] = other;
      folder.config[v5 ? "rope_parameters" : "rope_scaling"] = rope;
      const auto* type = folder.sound().metadata.find("llama.rope.scaling.type");
      EXPECT_EQ(type != nullptr, std::string(other) == "linear");
    }
  }
}

// By hand, for theta 16 and heads of 8: waves 2 pi 16^(i/4) = 6.28, 12.57, 25.13, 50.27; of 32
// positions they are kept below 32 / 4 and divided by 8 above 32 / 1.
TEST(HfConfigTest, Llama3FrequenciesBecomeATensor) {
  HfFolder folder;
  folder.config["head_dim"] = 8;
  folder.config["rope_theta"] = 16;
  folder.config["rope_scaling"] = {{"rope_type", "llama3"},
                                   {"factor", 8.0},
                                   {"low_freq_factor", 1.0},
                                   {"high_freq_factor", 4.0},
                                   {"original_max_position_embeddings", 32}};
  const auto checkpoint = folder.sound();
  const auto& freqs = tensor(checkpoint, "rope_freqs.weight");
  ASSERT_EQ(freqs.n_dims, 1u);
  ASSERT_EQ(freqs.dims[0], 4u);
  float values[4];
  importer::decode_row(freqs, 0, values);
  EXPECT_EQ(values[0], 1);
  // kept = (32 / 12.566371 - 1) / 3 = 0.5154925; 1 / (0.4845075 / 8 + 0.5154925)
  EXPECT_NEAR(values[1], 1.735941, 1e-5);
  // kept = (32 / 25.132741 - 1) / 3 = 0.0910796
  EXPECT_NEAR(values[2], 4.885320, 1e-5);
  EXPECT_EQ(values[3], 8);
  folder.config["model_type"] = "qwen3";
  folder.config["architectures"] = {"Qwen3ForCausalLM"};
  folder.expect_refused(ErrorCode::unsupported,
                        "'rope_scaling.rope_type' is 'llama3', tsq has default, linear, yarn");
}

struct Change {
  const char *key, *value, *fragment;
  ErrorCode code = ErrorCode::unsupported;
};

TEST(HfConfigTest, RefusesWhatTheGraphDoesNotHave) {
  const Change kChanges[] = {
      {"model_type", "\"gemma3\"", "'model_type' is 'gemma3', tsq imports llama mistral qwen3"},
      {"model_type", "7", "'model_type' is 7, expected a string", ErrorCode::damaged},
      {"architectures", "[\"LlamaForSequenceClassification\"]",
       "'architectures' holds 'LlamaForSequenceClassification', tsq imports LlamaForCausalLM"},
      {"hidden_act", "\"relu2\"", "'hidden_act' is 'relu2', tsq has 'silu'"},
      {"attention_bias", "true", "'attention_bias' is true"},
      {"mlp_bias", "true", "'mlp_bias' is true"},
      {"partial_rotary_factor", "0.5", "'partial_rotary_factor' is 0.5"},
      {"final_logit_softcapping", "30.0", "'final_logit_softcapping' is 30"},
      {"attn_logit_softcapping", "\"x\"", "'attn_logit_softcapping' is 'x'"},
      {"num_local_experts", "8", "'num_local_experts' is 8"},
      {"sliding_window", "4096", "'sliding_window' is 4096"},
      {"layer_types", "[\"sliding_attention\"]", "'layer_types' is 'sliding_attention'"},
      {"attn_output_gate", "true", "'attn_output_gate' is true, tsq has no gated attention"},
      {"compression_config", "{}", "'compression_config' is an object"},
      {"quantization_config", "{\"quant_method\":\"gptq\"}",
       "'quantization_config.quant_method' is 'gptq', tsq has 'bitnet'"},
      {"quantization_config", "{\"quant_method\":\"bitnet\",\"quantization_mode\":\"online\"}",
       "'quantization_config.quantization_mode' is 'online', tsq has 'offline'"},
      {"quantization_config", "{\"quant_method\":\"bitnet\",\"linear_class\":\"x\"}",
       "'quantization_config.linear_class' is 'x', tsq has 'bitlinear'"},
      {"quantization_config", "{\"quant_method\":\"bitnet\",\"use_rms_norm\":true}",
       "'quantization_config.use_rms_norm' is true"},
      {"rope_scaling", "{\"rope_type\":\"longrope\"}", "'rope_scaling.rope_type' is 'longrope'"},
      {"rope_scaling", "{\"rope_type\":\"linear\",\"factor\":2,\"mscale\":1}",
       "'rope_scaling.mscale' is 1"},
      {"rope_parameters", "{\"full_attention\":{\"rope_type\":\"default\"}}",
       "'rope_parameters.full_attention' is an object"},
      {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":2,\"truncate\":false}",
       "'rope_scaling.truncate' is false"},
      {"head_dim", "7", "heads of 7 values"},
  };
  for (const Change& change : kChanges) {
    HfFolder folder;
    folder.config[change.key] = json::parse(change.value);
    folder.expect_refused(change.code, std::string("config.json: ") + change.fragment);
  }
}

TEST(HfConfigTest, RefusesValuesThatCannotBe) {
  const Change kChanges[] = {
      {"hidden_size", "0", "'hidden_size' is 0, expected a whole number from 1"},
      {"hidden_size", "8.5", "'hidden_size' is 8.5"},
      {"hidden_size", "-8", "'hidden_size' is -8"},
      {"hidden_size", "4294967296", "'hidden_size' is 4294967296"},
      {"intermediate_size", "[16]", "'intermediate_size' is an array"},
      {"num_attention_heads", "\"2\"", "'num_attention_heads' is '2'"},
      {"rms_norm_eps", "0", "'rms_norm_eps' is 0, expected a positive number"},
      {"rms_norm_eps", "null", "'rms_norm_eps' is missing"},
      {"tie_word_embeddings", "1", "'tie_word_embeddings' is 1, expected true or false"},
      {"rope_scaling", "[]", "'rope_scaling' is an array, expected an object"},
      {"rope_scaling", "{\"rope_type\":\"linear\"}", "'rope_scaling.factor' is missing"},
      {"rope_theta", "\"1e6\"", "'rope_theta' is '1e6'"},
  };
  for (const Change& change : kChanges) {
    HfFolder folder;
    folder.config[change.key] = json::parse(change.value);
    folder.expect_refused(ErrorCode::damaged, std::string("config.json: ") + change.fragment);
  }
  HfFolder folder;
  folder.config = json::array({1});
  folder.expect_refused(ErrorCode::damaged, "config.json: holds an array, expected an object");
}

TEST(HfConfigTest, HarmlessSettingsPass) {
  HfFolder folder;
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, json>>{{"attention_bias", false},
                                                           {"attn_output_gate", false},
                                                           {"mlp_bias", nullptr},
                                                           {"partial_rotary_factor", 1.0},
                                                           {"num_experts", 0},
                                                           {"use_sliding_window", false},
                                                           {"sliding_window", 4096},
                                                           {"layer_types", {"full_attention"}},
                                                           {"rope_scaling", nullptr},
                                                           {"quantization_config", nullptr},
                                                           {"torch_dtype", "bfloat16"}}) {
    folder.config[key] = value;
  }
  folder.sound();
}

// ---- tensors ----

safetensors::Builder small_llama(bool head = false) {
  safetensors::Builder file;
  file.add("model.embed_tokens.weight", "BF16", {4, 8}, numbered_bytes(64));
  file.add("model.layers.0.self_attn.q_proj.weight", "F32", {8, 8}, numbered_bytes(256));
  file.add("model.layers.0.self_attn.k_proj.weight", "F16", {4, 8}, numbered_bytes(64));
  file.add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {2}, numbered_bytes(8));
  file.add("model.layers.0.mlp.down_proj.weight", "F16", {8, 16}, numbered_bytes(256));
  file.add("model.norm.weight", "F32", {8}, numbered_bytes(32));
  if (head) file.add("lm_head.weight", "BF16", {4, 8}, numbered_bytes(64));
  return file;
}

TEST(HfTensorsTest, NamesAndShapesBecomeThoseOfAGguf) {
  HfFolder folder;
  const auto checkpoint = folder.set_weights(small_llama()).sound();
  std::string names;
  for (const auto& each : checkpoint.tensors) names += std::string(each.name) + " ";
  EXPECT_EQ(names,
            "token_embd.weight blk.0.attn_q.weight blk.0.attn_k.weight blk.0.ffn_down.weight "
            "output_norm.weight ");
  const auto& down = tensor(checkpoint, "blk.0.ffn_down.weight");
  EXPECT_EQ(down.type, SourceType::f16);
  EXPECT_EQ(down.cols(), 16u);
  EXPECT_EQ(down.rows(), 8u);
  EXPECT_EQ(down.head_rows, 0u);
  EXPECT_EQ(tensor(checkpoint, "token_embd.weight").type, SourceType::bf16);
  EXPECT_EQ(tensor(checkpoint, "output_norm.weight").n_dims, 1u);
}

// Heads of 4 rows: the halves (0 1)(2 3) are read as the pairs (0 2)(1 3).
TEST(HfTensorsTest, RowsOfQAndKAreReadPairByPair) {
  HfFolder folder;
  const auto checkpoint = folder.set_weights(small_llama()).sound();
  const auto& q = tensor(checkpoint, "blk.0.attn_q.weight");
  EXPECT_EQ(q.head_rows, 4u);
  const std::size_t kStored[] = {0, 2, 1, 3, 4, 6, 5, 7};
  for (std::size_t row = 0; row < 8; ++row) {
    const auto data = importer::row_data(q, row);
    EXPECT_EQ(data.data(), q.data.data() + 32 * kStored[row]) << row;
    EXPECT_EQ(data.size(), 32u);
  }
  folder.config["num_attention_heads"] = 4;
  folder.config["head_dim"] = 4;
  folder.expect_refused(ErrorCode::damaged, "q_proj.weight' has 8 rows, expected 16");
  folder.config = llama_config();
  folder.config["model_type"] = "qwen3";
  folder.config["architectures"] = {"Qwen3ForCausalLM"};
  EXPECT_EQ(tensor(folder.sound(), "blk.0.attn_q.weight").head_rows, 0u);
}

TEST(HfTensorsTest, ATiedHeadIsTheEmbedding) {
  HfFolder folder;
  EXPECT_EQ(folder.set_weights(small_llama(true)).sound().tensors.size(), 5u);
  folder.config["tie_word_embeddings"] = false;
  EXPECT_EQ(folder.sound().tensors.size(), 6u);
  folder.set_weights(small_llama())
      .expect_refused(ErrorCode::damaged, "'lm_head.weight' is missing");
  folder.config["tie_word_embeddings"] = true;
  auto other = small_llama();
  auto bytes = numbered_bytes(64);
  bytes[63] = std::byte{1};
  folder.set_weights(other.add("lm_head.weight", "BF16", {4, 8}, bytes))
      .expect_refused(ErrorCode::damaged, "is not equal to 'model.embed_tokens.weight'");
}

void expect_tensor_refused(const char* name, const char* dtype,
                           const std::vector<std::uint64_t>& shape, std::size_t bytes,
                           ErrorCode code, const std::string& fragment) {
  HfFolder folder;
  auto file = small_llama();
  folder.set_weights(file.add(name, dtype, shape, numbered_bytes(bytes)))
      .expect_refused(code, fragment);
}

TEST(HfTensorsTest, RefusesWhatHasNoPlace) {
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.bias", "model.layers.1.mlp.up_proj.weight",
        "model.layers.00.mlp.up_proj.weight", "model.layers.+0.mlp.up_proj.weight",
        "model.layers.0", "model.layers.", "model.layers.0.self_attn.q_norm.weight", "x",
        "model.layers.18446744073709551616.mlp.up_proj.weight"}) {
    expect_tensor_refused(name, "F16", {8}, 16, ErrorCode::unsupported,
                          "tensor '" + std::string(name) + "' has no place in a llama of 1 layers");
  }
  const char* up = "model.layers.0.mlp.up_proj.weight";
  expect_tensor_refused(up, "F8_E4M3", {16, 8}, 128, ErrorCode::unsupported,
                        "is F8_E4M3, tsq imports F32 F16 BF16");
  expect_tensor_refused(up, "U8", {16, 8}, 128, ErrorCode::unsupported, "packed U8 where config");
  expect_tensor_refused(up, "F16", {2, 2, 2}, 16, ErrorCode::damaged, "has 3 dims");
  expect_tensor_refused(up, "F16", {}, 2, ErrorCode::damaged, "has 0 dims");
  expect_tensor_refused(up, "F16", {0, 8}, 0, ErrorCode::damaged, "is empty");
  HfFolder without;
  without
      .set_weights(safetensors::Builder().add("model.norm.weight", "F32", {8}, numbered_bytes(32)))
      .expect_refused(ErrorCode::damaged, "'model.embed_tokens.weight' is missing");
}

// ---- BitNet's packed weights ----

safetensors::Builder packed(const std::vector<float>& scale, const char* dtype = "F32") {
  safetensors::Builder file;
  file.add("model.embed_tokens.weight", "F16", {4, 1}, numbered_bytes(8));
  // [out / 4, in] = [2, 128]: rows 0 to 7 of k + 1 = 0, 1, 2, 0 ...
  std::vector<std::byte> bytes(256);
  for (std::size_t i = 0; i < 256; ++i) {
    unsigned byte = 0;
    for (unsigned quarter = 0; quarter < 4; ++quarter) {
      byte |= static_cast<unsigned>((i + quarter) % 3) << 2 * quarter;
    }
    bytes[i] = static_cast<std::byte>(byte);
  }
  file.add("model.layers.0.mlp.up_proj.weight", "U8", {2, 128}, bytes);
  const auto all = std::as_bytes(std::span(scale));
  file.add("model.layers.0.mlp.up_proj.weight_scale", dtype, {scale.size()}, all);
  return file;
}

HfFolder packed_folder(const char* linear_class, const safetensors::Builder& file) {
  HfFolder folder;
  folder.config["quantization_config"] = {{"quant_method", "bitnet"}};
  if (linear_class) folder.config["quantization_config"]["linear_class"] = linear_class;
  folder.set_weights(file);
  return folder;
}

TEST(PackedTest, RowsLieInTheBitsOfAQuarter) {
  auto folder = packed_folder("autobitlinear", packed({0.3f}));
  const auto checkpoint = folder.sound();
  const auto& up = tensor(checkpoint, "blk.0.ffn_up.weight");
  ASSERT_EQ(up.type, SourceType::packed_u8);
  EXPECT_EQ(up.activation_quant, format::ActivationQuant::per_token);
  EXPECT_EQ(up.rows(), 8u);
  EXPECT_EQ(up.cols(), 128u);
  EXPECT_EQ(up.scale, 0.3f);
  std::vector<std::uint8_t> codes(128);
  std::vector<std::uint16_t> scales(1);
  std::vector<float> values(128);
  for (std::size_t row = 0; row < 8; ++row) {
    EXPECT_TRUE(importer::decode_ternary_row(up, row, codes.data(), scales.data()));
    importer::decode_row(up, row, values.data());
    for (std::size_t col = 0; col < 128; ++col) {
      const std::size_t code = (128 * (row % 2) + col + row / 2) % 3;
      ASSERT_EQ(codes[col], code) << row << ' ' << col;
      ASSERT_EQ(values[col], (static_cast<float>(code) - 1) * 0.3f);
    }
    EXPECT_TRUE(importer::row_is_finite(up, row));
  }
}

TEST(PackedTest, AScaleThatDividesBecomesItsReciprocal) {
  for (const char* linear_class : {"bitlinear", static_cast<const char*>(nullptr)}) {
    auto folder = packed_folder(linear_class, packed({0.3f}));
    auto checkpoint = folder.sound();
    EXPECT_EQ(tensor(checkpoint, "blk.0.ffn_up.weight").scale, 1 / 0.3f);
    ASSERT_EQ(checkpoint.warnings.size(), 1u);
    EXPECT_NE(checkpoint.warnings[0].find("1 matrices are divided by their weight_scale"),
              std::string::npos);
    folder.set_weights(packed({0.25f}));
    checkpoint = folder.sound();
    EXPECT_EQ(tensor(checkpoint, "blk.0.ffn_up.weight").scale, 4.0f);
    EXPECT_TRUE(checkpoint.warnings.empty());
  }
}

TEST(PackedTest, RefusesScalesThatCannotBe) {
  for (const std::vector<float>& scale :
       std::vector<std::vector<float>>{{0}, {INFINITY}, {NAN}, {1e-45f}, {1, 2}, {}}) {
    packed_folder("autobitlinear", packed(scale))
        .expect_refused(ErrorCode::damaged, "expected one number");
  }
  packed_folder("autobitlinear", packed({1}, "I32"))
      .expect_refused(ErrorCode::damaged, "values of I32");
  auto file = small_llama();
  file.add("model.layers.0.mlp.down_proj.weight_scale", "F32", {1}, numbered_bytes(4));
  packed_folder("autobitlinear", file)
      .expect_refused(ErrorCode::damaged, "weight_scale' has no packed U8 weights beside it");
  auto missing = small_llama();
  missing.add("model.layers.0.mlp.up_proj.weight", "U8", {4, 128}, numbered_bytes(512));
  packed_folder("autobitlinear", missing)
      .expect_refused(ErrorCode::damaged, "up_proj.weight_scale' is missing");
  auto narrow = small_llama();
  narrow.add("model.layers.0.mlp.up_proj.weight", "U8", {4, 96}, numbered_bytes(384));
  packed_folder("autobitlinear", narrow)
      .expect_refused(ErrorCode::unsupported, "96 inputs a row of a packed matrix");
}

// ---- shards ----

HfFolder sharded() {
  HfFolder folder;
  folder.weights = {
      {"a.safetensors", safetensors::Builder()
                            .add("model.embed_tokens.weight", "F16", {4, 1}, numbered_bytes(8))
                            .build()},
      {"b.safetensors",
       safetensors::Builder().add("model.norm.weight", "F16", {2}, numbered_bytes(4)).build()}};
  folder.index =
      R"({"weight_map":{"model.norm.weight":"b.safetensors","model.embed_tokens.weight":"a.safetensors"}})";
  return folder;
}

TEST(ShardsTest, IndexAndFilesAgree) {
  EXPECT_EQ(sharded().sound().tensors.size(), 2u);
  auto other_file = sharded();
  other_file.index =
      R"({"weight_map":{"model.norm.weight":"a.safetensors","model.embed_tokens.weight":"a.safetensors"}})";
  other_file.expect_refused(ErrorCode::damaged,
                            "tensor 'model.norm.weight' is not in 'a.safetensors' as promised by");
  auto missing = sharded();
  missing.index =
      R"({"weight_map":{"model.norm.weight":"b.safetensors","x":"b.safetensors","model.embed_tokens.weight":"a.safetensors"}})";
  missing.expect_refused(ErrorCode::damaged, "tensor 'x' is not in 'b.safetensors'");
  auto extra = sharded();
  extra.index = R"({"weight_map":{"model.norm.weight":"b.safetensors"}})";
  extra.expect_refused(ErrorCode::damaged,
                       "'model.embed_tokens.weight' is in 'a.safetensors' but not promised by");
  auto twice = sharded();
  twice.weights[1].second = twice.weights[0].second;
  twice.index.reset();
  twice.expect_refused(ErrorCode::damaged, "'model.embed_tokens.weight' is in two files");
  auto broken = sharded();
  broken.weights[1].second.pop_back();
  broken.expect_refused(ErrorCode::damaged, "b.safetensors: tensor 'model.norm.weight'");
}

// ---- what importer::open() is given ----

class OpenTest : public testing::Test {
 protected:
  void write(const std::string& name, std::string_view text) {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }
  void write(const std::string& name, const std::vector<std::byte>& bytes) {
    write(name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  void expect_refused(const std::vector<std::string>& names, ErrorCode code,
                      const std::string& fragment) {
    std::vector<std::filesystem::path> paths;
    for (const std::string& name : names) paths.push_back(folder_.path() / name);
    const auto opened = importer::open(paths);
    ASSERT_FALSE(opened) << fragment;
    EXPECT_EQ(opened.error().code(), code) << opened.error().message();
    EXPECT_NE(opened.error().message().find(fragment), std::string::npos)
        << "no '" << fragment << "' in: " << opened.error().message();
  }
  std::size_t tensors_of(const std::string& name) {
    const auto path = folder_.path() / name;
    const auto opened = importer::open({&path, 1});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message());
    return opened ? opened->checkpoint.tensors.size() : 0;
  }
  TemporaryFolder folder_;
};

TEST_F(OpenTest, AFolderOrAFileInIt) {
  write("config.json", llama_config().dump());
  write("model.safetensors", small_llama().build());
  write("other.safetensors", safetensors::Builder()
                                 .add("model.embed_tokens.weight", "F16", {4, 1}, numbered_bytes(8))
                                 .build());
  EXPECT_EQ(tensors_of(""), 5u);
  EXPECT_EQ(tensors_of("model.safetensors"), 5u);
  EXPECT_EQ(tensors_of("other.safetensors"), 1u);
  expect_refused({"", "other.safetensors"}, ErrorCode::invalid_argument,
                 "2 sources were given, but this is a folder, which is a whole model");
  std::filesystem::rename(folder_.path() / "other.safetensors", folder_.path() / "weights");
  EXPECT_EQ(tensors_of("weights"), 1u);
}

TEST_F(OpenTest, AShardStandsForItsModel) {
  auto folder = sharded();
  write("config.json", llama_config().dump());
  for (const auto& [name, bytes] : folder.weights) write(name, bytes);
  write("model.safetensors.index.json", *folder.index);
  EXPECT_EQ(tensors_of(""), 2u);
  EXPECT_EQ(tensors_of("b.safetensors"), 2u);
  std::filesystem::remove(folder_.path() / "b.safetensors");
  expect_refused({""}, ErrorCode::not_found, "b.safetensors: cannot open");
}

TEST_F(OpenTest, SaysWhatIsMissingOrOther) {
  expect_refused({""}, ErrorCode::not_found, "config.json: is missing");
  write("config.json", "{");
  expect_refused({""}, ErrorCode::not_found, "there is neither model.safetensors nor");
  write("pytorch_model.bin", "PK\3\4");
  expect_refused({""}, ErrorCode::unsupported, "pytorch_model.bin: PyTorch's pickles");
  expect_refused({"pytorch_model.bin"}, ErrorCode::unsupported, "this is a PyTorch file");
  write("old.pt", "\x80\x02\x8a");
  expect_refused({"old.pt"}, ErrorCode::unsupported, "this is a PyTorch file");
  write("model.safetensors", small_llama().build());
  expect_refused({""}, ErrorCode::damaged, "config.json: not JSON");
  expect_refused({"nothing"}, ErrorCode::not_found, "nothing: cannot open");
}

}  // namespace
}  // namespace tsq
