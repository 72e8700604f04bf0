// Writes the hand-made inputs of safetensors_fuzz.cpp: make_safetensors_corpus FOLDER.
#include <cstdio>
#include <fstream>
#include <string>

#include "hf_parts.h"
#include "safetensors_builder.h"

namespace {

using namespace tsq;

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string weights() {
  const std::vector<std::byte> zeros(1024);
  const auto some = [&](std::size_t n) { return std::span(zeros).first(n); };
  const float one = 1;
  const auto file = safetensors::Builder()
                        .add("model.embed_tokens.weight", "BF16", {6, 8}, some(96))
                        .add("model.layers.0.self_attn.q_proj.weight", "F32", {8, 8}, some(256))
                        .add("model.layers.1.self_attn.k_proj.weight", "F16", {4, 8}, some(64))
                        .add("model.layers.1.mlp.down_proj.weight", "U8", {2, 128}, some(256))
                        .add("model.layers.1.mlp.down_proj.weight_scale", "F32", {1},
                             std::as_bytes(std::span(&one, 1)))
                        .build();
  return as_text(file);
}

constexpr char kSentencePiece[] =
    R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"\u2581"},)"
    R"({"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]},"pre_tokenizer":null,)"
    R"("model":{"type":"BPE","byte_fallback":true,"vocab":{"<0x41>":0,"\u2581":1,"a":2,"\u2581a":3},)"
    R"("merges":["\u2581 a"]}})";

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_safetensors_corpus FOLDER\n", stderr);
    return 2;
  }
  const std::pair<const char*, std::string> kInputs[] = {
      {"weights", fuzz::kWeights + weights()},
      {"index", fuzz::kIndex + std::string(R"({"metadata":{"total_size":12},"weight_map":)"
                                           R"({"model.embed_tokens.weight":"a.safetensors"}})")},
      {"config", fuzz::kConfig + std::string(fuzz::kSoundConfig)},
      {"tokenizer", fuzz::kTokenizer + std::string(fuzz::kSoundTokenizer)},
      {"sentencepiece", fuzz::kTokenizer + std::string(kSentencePiece)},
      {"tokenizer_config",
       fuzz::kTokenizerConfig +
           std::string(
               R"({"bos_token":{"content":"<s>"},"eos_token":"c","add_bos_token":true,)"
               R"("eos_token_id":[1],"chat_template":[{"name":"default","template":"x"}]})")},
      {"hybrid_weights", fuzz::kHybridWeights + as_text(fuzz::hybrid_weights())},
      {"hybrid_config", fuzz::kHybridConfig + std::string(fuzz::kHybridSoundConfig)},
      {"deep", fuzz::kConfig + std::string(5000, '[')},
  };
  for (const auto& [name, text] : kInputs) {
    std::ofstream out(std::string(argv[1]) + "/" + name, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!out) return 1;
  }
  return 0;
}
