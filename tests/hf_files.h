// A Hugging Face folder in memory, for tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "import/hf_folder.h"
#include "safetensors_builder.h"

namespace tsq {

inline std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::vector<std::byte> numbered_bytes(std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i % 100);
  return bytes;
}

inline nlohmann::json llama_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_act", "silu"},
          {"hidden_size", 8},
          {"intermediate_size", 16},
          {"max_position_embeddings", 64},
          {"num_attention_heads", 2},
          {"num_hidden_layers", 1},
          {"num_key_value_heads", 1},
          {"rms_norm_eps", 1e-6},
          {"tie_word_embeddings", true}};
}

// Owns the bytes that its checkpoint views.
class HfFolder {
 public:
  nlohmann::json config = llama_config();
  std::vector<std::pair<std::string, std::vector<std::byte>>> weights;
  std::optional<std::string> index, tokenizer, tokenizer_config, generation_config, chat_template;

  // With an embedding of so many rows, and nothing else.
  explicit HfFolder(std::uint64_t rows = 4) {
    safetensors::Builder file;
    file.add("model.embed_tokens.weight", "F16", {rows, 1}, numbered_bytes(2 * rows));
    weights.emplace_back("model.safetensors", file.build());
  }
  HfFolder& set_weights(const safetensors::Builder& file) {
    weights.assign(1, {"model.safetensors", file.build()});
    return *this;
  }

  Result<importer::Checkpoint> parse() {
    config_ = config.dump();
    importer::HfFiles files;
    files.model_name = "tiny";
    files.config = view(config_);
    for (const auto& [name, bytes] : weights) files.weights.push_back({name, bytes});
    const auto set = [](std::optional<importer::Bytes>& bytes,
                        const std::optional<std::string>& text) {
      if (text) bytes = view(*text);
    };
    set(files.index, index);
    set(files.tokenizer, tokenizer);
    set(files.tokenizer_config, tokenizer_config);
    set(files.generation_config, generation_config);
    set(files.chat_template, chat_template);
    return importer::parse_hf(files);
  }

  importer::Checkpoint sound() {
    auto checkpoint = parse();
    EXPECT_TRUE(checkpoint) << (checkpoint ? "" : checkpoint.error().message());
    return checkpoint ? std::move(*checkpoint) : importer::Checkpoint();
  }
  void expect_refused(ErrorCode code, const std::string& fragment) {
    const auto checkpoint = parse();
    ASSERT_FALSE(checkpoint) << fragment;
    EXPECT_EQ(checkpoint.error().code(), code) << checkpoint.error().message();
    EXPECT_NE(checkpoint.error().message().find(fragment), std::string::npos)
        << "no '" << fragment << "' in: " << checkpoint.error().message();
  }

 private:
  static importer::Bytes view(const std::string& text) { return std::as_bytes(std::span(text)); }
  std::string config_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace tsq
