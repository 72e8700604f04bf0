// What a graph refuses: every setting of the metadata by itself, every weight that is missing,
// misshapen or one too many.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "arch/graph.h"
#include "base/metadata.h"
#include "format/reader.h"
#include "format_files.h"

namespace tsq {
namespace {

using format::FileContents;
using format::TensorRecord;
using Setting = std::variant<std::uint32_t, float, bool, std::string, std::vector<bool>>;

// A sound model of one layer: 2 heads of 16, one key/value head, hidden 32, ffn 48, vocabulary 8.
struct Description {
  std::string architecture = "llama";
  std::map<std::string, Setting> settings = {
      {"block_count", 1u},
      {"context_length", 64u},
      {"embedding_length", 32u},
      {"feed_forward_length", 48u},
      {"attention.head_count", 2u},
      {"attention.head_count_kv", 1u},
      {"attention.layer_norm_rms_epsilon", 1e-6f},
  };
  std::map<std::string, std::array<std::uint64_t, 2>> tensors = {
      {"token_embd.weight", {32, 8}},         {"output_norm.weight", {32, 1}},
      {"blk.0.attn_norm.weight", {32, 1}},    {"blk.0.attn_q.weight", {32, 32}},
      {"blk.0.attn_k.weight", {32, 16}},      {"blk.0.attn_v.weight", {32, 16}},
      {"blk.0.attn_output.weight", {32, 32}}, {"blk.0.ffn_norm.weight", {32, 1}},
      {"blk.0.ffn_gate.weight", {32, 48}},    {"blk.0.ffn_up.weight", {32, 48}},
      {"blk.0.ffn_down.weight", {48, 32}},
  };
  std::uint32_t vocab_size = 8;
  std::uint32_t n_layers = 1;

  Description& set(const std::string& key, Setting value) {
    settings[key] = std::move(value);
    return *this;
  }
  Description& erase(const std::string& key) {
    settings.erase(key);
    return *this;
  }
};

template <class T>
void write(ByteWriter& out, const std::string& key, const T& value) {
  write_entry(out, key, value);
}
void write(ByteWriter& out, const std::string& key, const std::vector<bool>& flags) {
  out.write<std::uint64_t>(key.size());
  out.write_text(key);
  out.write(static_cast<std::uint32_t>(ValueType::array));
  out.write(static_cast<std::uint32_t>(ValueType::boolean));
  out.write<std::uint64_t>(flags.size());
  for (const bool flag : flags) out.write<std::uint8_t>(flag);
}

// The same with a recurrent layer before: 1 key head and 2 value heads of 16.
Description hybrid() {
  Description d;
  d.architecture = "qwen35";
  d.n_layers = 2;
  d.set("block_count", 2u)
      .set("full_attention_interval", 2u)
      .set("ssm.conv_kernel", 4u)
      .set("ssm.state_size", 16u)
      .set("ssm.group_count", 1u)
      .set("ssm.time_step_rank", 2u)
      .set("ssm.inner_size", 32u);
  auto& t = d.tensors;
  t.erase("blk.0.ffn_norm.weight");
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    auto part = t.extract("blk.0." + std::string(name) + ".weight");
    part.key() = "blk.1." + std::string(name) + ".weight";
    t.insert(std::move(part));
  }
  t["blk.1.attn_q.weight"] = {32, 64};
  t["blk.1.attn_q_norm.weight"] = t["blk.1.attn_k_norm.weight"] = {16, 1};
  for (const char* name : {"attn_norm", "post_attention_norm"}) {
    t["blk.0." + std::string(name) + ".weight"] = {32, 1};
    t["blk.1." + std::string(name) + ".weight"] = {32, 1};
  }
  for (const char* name : {"ffn_gate", "ffn_up", "ffn_down"}) {
    t["blk.1." + std::string(name) + ".weight"] = t["blk.0." + std::string(name) + ".weight"];
  }
  t["blk.0.attn_qkv.weight"] = {32, 64};
  t["blk.0.attn_gate.weight"] = {32, 32};
  t["blk.0.ssm_alpha.weight"] = t["blk.0.ssm_beta.weight"] = {32, 2};
  t["blk.0.ssm_conv1d.weight"] = {64, 4};
  t["blk.0.ssm_a"] = t["blk.0.ssm_dt.bias"] = {2, 1};
  t["blk.0.ssm_norm.weight"] = {16, 1};
  t["blk.0.ssm_out.weight"] = {32, 32};
  return d;
}

// "" or the error of make_graph, as its code and message.
std::string graph_of(const Description& d) {
  FileContents contents;
  contents.header.hidden_size = 32;
  contents.header.num_layers = d.n_layers;
  contents.header.vocab_size = d.vocab_size;
  ByteWriter metadata;
  write_entry(metadata, "general.architecture", std::string_view(d.architecture));
  for (const auto& [key, value] : d.settings) {
    const std::string full = d.architecture + "." + key;
    std::visit([&](const auto& v) { write(metadata, full, v); }, value);
  }
  contents.n_metadata = 1 + d.settings.size();
  contents.metadata = metadata.take();
  for (const auto& [name, dims] : d.tensors) {
    TensorRecord tensor;
    tensor.name = name;
    tensor.n_dims = dims[1] == 1 ? 1 : 2;
    tensor.dims = {dims[0], dims[1], 1, 1};
    contents.tensors.push_back(tensor);
  }
  const format::Bytes bytes = format::make_file(std::move(contents));
  const auto file = format::File::parse(bytes.span());
  if (!file) return "file: " + file.error().message();
  const auto graph = make_graph(*file);
  if (graph) return "";
  const bool damaged = graph.error().code() == ErrorCode::damaged;
  EXPECT_TRUE(damaged || graph.error().code() == ErrorCode::unsupported);
  return (damaged ? "damaged: " : "unsupported: ") + graph.error().message();
}

TEST(ArchTest, TakesASoundModel) {
  EXPECT_EQ(graph_of({}), "");
  Description qwen3;
  qwen3.architecture = "qwen3";
  EXPECT_EQ(graph_of(qwen3),
            "damaged: tensor 'blk.0.attn_q_norm.weight' is missing, expected [16, 1]");
  qwen3.tensors["blk.0.attn_q_norm.weight"] = {16, 1};
  qwen3.tensors["blk.0.attn_k_norm.weight"] = {16, 1};
  EXPECT_EQ(graph_of(qwen3), "");
}

TEST(ArchTest, RefusesAnUnknownArchitecture) {
  Description d;
  d.architecture = "mamba";
  EXPECT_EQ(
      graph_of(d),
      "unsupported: architecture 'mamba' has no graph in tsq (there are: llama, qwen3, qwen35)");
}

TEST(ArchTest, RefusesASettingByName) {
  struct Row {
    const char* key;
    Setting value;
    const char* expected;
  };
  const Row rows[] = {
      {"context_length", 0u,
       "damaged: metadata 'llama.context_length' is 0, expected 1 to 16777216"},
      {"context_length", 1u << 30,
       "damaged: metadata 'llama.context_length' is 1073741824, expected 1 to 16777216"},
      {"feed_forward_length", 0u,
       "damaged: metadata 'llama.feed_forward_length' is 0, expected 1 to 4194304"},
      {"attention.head_count", 0u,
       "damaged: metadata 'llama.attention.head_count' is 0, expected 1 to 16384"},
      {"attention.head_count_kv", 3u,
       "damaged: metadata 'llama.attention.head_count_kv' is 3, expected 1 to 2"},
      {"attention.key_length", 0u,
       "damaged: metadata 'llama.attention.key_length' is 0, expected 1 to 1024"},
      {"attention.key_length", 24u,
       "unsupported: llama heads of 24 keys and 24 values, tsq has equal ones, a multiple of 16 up "
       "to 1024"},
      {"attention.value_length", 32u,
       "unsupported: llama heads of 16 keys and 32 values, tsq has equal ones, a multiple of 16 up "
       "to 1024"},
      {"attention.layer_norm_rms_epsilon", 2.0f,
       "damaged: metadata 'llama.attention.layer_norm_rms_epsilon' is 2, expected 0 to 1"},
      {"rope.dimension_count", 5u,
       "damaged: metadata 'llama.rope.dimension_count' is 5, expected an even number"},
      {"rope.dimension_count", 18u,
       "damaged: metadata 'llama.rope.dimension_count' is 18, expected 2 to 16"},
      {"rope.freq_base", 0.5f,
       "damaged: metadata 'llama.rope.freq_base' is 0.5, expected 1 to 1e+12"},
      {"rope.scaling.type", std::string("longrope"),
       "damaged: metadata key 'llama.rope.scaling.factor' is missing"},
      {"attention.sliding_window", 4096u,
       "unsupported: metadata 'llama.attention.sliding_window' is set, and tsq's graph for the "
       "architecture has no such thing"},
      {"attention.causal", false,
       "unsupported: metadata 'llama.attention.causal' is set, and tsq's graph for the "
       "architecture has no such thing"},
      {"final_logit_softcapping", 30.0f,
       "unsupported: metadata 'llama.final_logit_softcapping' is set, and tsq's graph for the "
       "architecture has no such thing"},
      {"expert_count", 8u,
       "unsupported: metadata 'llama.expert_count' is set, and tsq's graph for the architecture "
       "has "
       "no such thing"},
  };
  for (const Row& row : rows) {
    const std::string found = graph_of(Description().set(row.key, row.value));
    EXPECT_EQ(found.substr(0, std::string_view(row.expected).size()), row.expected);
  }
  EXPECT_EQ(graph_of(Description().set("attention.sliding_window", 0u)), "");
  Description odd;
  odd.set("attention.head_count", 3u).set("attention.head_count_kv", 2u);
  EXPECT_EQ(graph_of(odd),
            "damaged: metadata 'llama.attention.head_count' is 3, expected a multiple of the 2 "
            "key/value heads");
}

TEST(ArchTest, ScalesFrequenciesOrRefuses) {
  Description d;
  d.set("rope.scaling.type", std::string("longrope")).set("rope.scaling.factor", 2.0f);
  EXPECT_EQ(graph_of(d),
            "unsupported: metadata 'llama.rope.scaling.type' is 'longrope', tsq has none, linear "
            "and yarn");
  EXPECT_EQ(graph_of(d.set("rope.scaling.type", std::string("linear"))), "");
  EXPECT_NE(graph_of(d.set("rope.scaling.factor", 0.5f)), "");
  EXPECT_NE(graph_of(Description()
                         .set("rope.scaling.type", std::string("yarn"))
                         .set("rope.scaling.factor", 2.0f)),
            "");  // the original context is missing
}

TEST(ArchTest, MissesASetting) {
  for (const auto& [key, value] : Description().settings) {
    const std::string found = graph_of(Description().erase(key));
    if (key == "attention.head_count_kv") {  // as many as there are heads: attn_k is misshapen
      EXPECT_EQ(found, "damaged: tensor 'blk.0.attn_k.weight' is [32, 16], expected [32, 32]");
    } else {
      EXPECT_NE(found.find("'llama." + key + "'"), std::string::npos) << found;
    }
  }
}

TEST(ArchTest, MissesEachWeight) {
  for (const auto& [name, dims] : Description().tensors) {
    Description missing, misshapen;
    missing.tensors.erase(name);
    EXPECT_NE(graph_of(missing).find("damaged: tensor '" + name + "' is missing"),
              std::string::npos)
        << graph_of(missing);
    misshapen.tensors[name] = {dims[0] + 16, dims[1]};
    EXPECT_NE(graph_of(misshapen).find("damaged: tensor '" + name + "' is ["), std::string::npos)
        << graph_of(misshapen);
  }
}

TEST(ArchTest, RefusesAWeightWithoutAPlace) {
  Description d;
  d.tensors["blk.0.attn_q.bias"] = {32, 1};
  EXPECT_EQ(graph_of(d),
            "unsupported: tensor 'blk.0.attn_q.bias' has no place in the architecture's graph (11 "
            "of 12 tensors have)");
}

TEST(ArchTest, ComparesTheVocabularyWithTheHeader) {
  Description d;
  d.vocab_size = 9;
  EXPECT_EQ(graph_of(d),
            "damaged: tensor 'token_embd.weight' has 8 rows, the header's vocab_size is 9");
}

TEST(Qwen35Test, TakesASoundModel) {
  EXPECT_EQ(graph_of(hybrid()), "");
  Description listed = hybrid().erase("full_attention_interval");
  EXPECT_EQ(graph_of(listed.set("attention.recurrent_layers", std::vector<bool>{true, false})), "");
}

TEST(Qwen35Test, LeavesLayersOfPredictionOut) {
  Description d = hybrid();
  d.n_layers = 3;
  d.set("block_count", 3u).set("nextn_predict_layers", 1u);
  EXPECT_EQ(graph_of(d), "");
  EXPECT_EQ(graph_of(d.set("nextn_predict_layers", 3u)),
            "damaged: metadata 'qwen35.nextn_predict_layers' is 3, expected 0 to 2");
  EXPECT_EQ(graph_of(d.set("nextn_predict_layers", 0u)),
            "damaged: tensor 'blk.2.attn_norm.weight' is missing, expected [32, 1]");
  // A file whose block_count counts the trunk alone.
  d = hybrid();
  EXPECT_EQ(graph_of(d.set("nextn_predict_layers", 1u)), "");
}

TEST(Qwen35Test, RefusesASettingByName) {
  struct Row {
    const char* key;
    Setting value;
    const char* expected;
  };
  const Row rows[] = {
      {"ssm.conv_kernel", 3u, "unsupported: metadata 'qwen35.ssm.conv_kernel' is 3, tsq has 4"},
      {"ssm.state_size", 24u,
       "unsupported: metadata 'qwen35.ssm.state_size' is 24, tsq has multiples of 16"},
      {"ssm.state_size", 0u, "damaged: metadata 'qwen35.ssm.state_size' is 0, expected 1 to 1024"},
      {"ssm.group_count", 0u,
       "damaged: metadata 'qwen35.ssm.group_count' is 0, expected 1 to 16384"},
      {"ssm.group_count", 3u,
       "damaged: metadata 'qwen35.ssm.time_step_rank' is 2, expected a multiple of 3"},
      {"ssm.inner_size", 31u,
       "damaged: metadata 'qwen35.ssm.inner_size' is 31, expected a multiple of 2"},
      {"ssm.inner_size", 4096u,
       "unsupported: metadata 'qwen35.ssm.inner_size' is 4096, tsq has heads of at most 1024"},
      {"full_attention_interval", 0u,
       "damaged: metadata 'qwen35.full_attention_interval' is 0, expected 1 to 4096"},
      {"full_attention_interval", 1u,
       "unsupported: none of the 2 layers is recurrent, tsq's graph for qwen35 has both kinds"},
      {"full_attention_interval", 3u,
       "unsupported: none of the 2 layers attends, tsq's graph for qwen35 has both kinds"},
      {"attention.recurrent_layers", std::vector<bool>{true},
       "damaged: metadata 'qwen35.attention.recurrent_layers' is 1 x bool, "
       "expected a bool for each of 2 layers"},
      {"attention.recurrent_layers", 7u,
       "damaged: metadata 'qwen35.attention.recurrent_layers' is u32, expected a bool for "
       "each of 2 layers"},
  };
  for (const Row& row : rows) EXPECT_EQ(graph_of(hybrid().set(row.key, row.value)), row.expected);
}

TEST(Qwen35Test, MissesEachWeight) {
  for (const auto& [name, dims] : hybrid().tensors) {
    Description missing = hybrid(), misshapen = hybrid();
    missing.tensors.erase(name);
    EXPECT_NE(graph_of(missing).find("damaged: tensor '" + name + "' is missing"),
              std::string::npos)
        << graph_of(missing);
    misshapen.tensors[name] = {dims[0] + 16, dims[1]};
    EXPECT_NE(graph_of(misshapen).find("damaged: tensor '" + name + "' is ["), std::string::npos)
        << graph_of(misshapen);
  }
}

}  // namespace
}  // namespace tsq
