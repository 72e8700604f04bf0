// Writes the hand-made inputs of gguf_fuzz.cpp: make_gguf_corpus FOLDER. The numbered ones beside
// them are what the fuzzer found from these.
#include <cstdio>
#include <fstream>

#include "base/errorf.h"
#include "gguf_builder.h"

namespace {

using namespace tsq;
using gguf::BuiltTensor;
using gguf::GgufBuilder;

// One small tensor of every type that tsq reads.
GgufBuilder types() {
  const struct {
    std::uint32_t id;
    std::uint64_t cols;
    std::size_t bytes;  // of two rows
  } kTypes[] = {{gguf::kF32, 3, 24},      {gguf::kF16, 3, 12},      {gguf::kBF16, 3, 12},
                {gguf::kQ8_0, 32, 68},    {gguf::kQ4_0, 32, 36},    {gguf::kQ4_1, 32, 40},
                {gguf::kQ5_0, 32, 44},    {gguf::kQ5_1, 32, 48},    {gguf::kQ4_K, 256, 288},
                {gguf::kQ5_K, 256, 352},  {gguf::kQ6_K, 256, 420},  {gguf::kPQ2_0, 128, 68},
                {gguf::kPTQ1_0, 128, 56}, {gguf::kTQ1_0, 256, 108}, {gguf::kTQ2_0, 256, 132},
                {gguf::kQ1_0, 128, 36},   {gguf::kQ2_0, 64, 36},    {gguf::kSTQ1_0, 256, 84},
                {gguf::kI2_S, 128, 96},   {gguf::kIQ1_BN, 64, 30},  {gguf::kIQ2_BN, 64, 40}};
  GgufBuilder file;
  file.set("general.architecture", gguf::text("llama"));
  file.set("general.alignment", gguf::u32(32));
  for (const auto& type : kTypes) {
    file.add(stringf("t%u", type.id), type.id, {type.cols, 2},
             gguf::some_bytes(type.bytes, type.id));
  }
  return file;
}

GgufBuilder rotation() {
  GgufBuilder file;
  file.set("general.architecture", gguf::text("qwen3"));
  file.set("prism.hadamard.version", gguf::u32(1));
  file.set("prism.hadamard.block_size", gguf::u32(4));
  file.set("prism.hadamard.transform", gguf::text("normalized-sylvester-walsh-hadamard"));
  file.set("prism.hadamard.axis", gguf::text("input-last-dimension"));
  file.set("prism.hadamard.sign_mode", gguf::text("explicit"));
  file.set("prism.hadamard.sign_widths", gguf::i32s({4, 8}));
  file.set("prism.hadamard.sign_values", gguf::i32s({1, -1, 1, 1, -1, 1, 1, 1, -1, -1, 1, 1}));
  file.set("prism.hadamard.weight_names",
           gguf::texts({"blk.0.attn_q.weight", "blk.0.ffn_down.weight"}));
  file.set("prism.hadamard.inverse_weight_names", gguf::texts({"token_embd.weight"}));
  file.set("prism.hadamard.gdn_v_grouped", gguf::boolean(true));
  file.add("token_embd.weight", gguf::kF16, {4, 2}, gguf::some_bytes(16, 1));
  file.add("blk.0.attn_q.weight", gguf::kF16, {4, 2}, gguf::some_bytes(16, 2));
  file.add("blk.0.ffn_down.weight", gguf::kF16, {8, 2}, gguf::some_bytes(32, 3));
  return file;
}

GgufBuilder identity() {
  GgufBuilder file = rotation();
  file.set("prism.hadamard.sign_mode", gguf::text("identity"));
  file.erase("prism.hadamard.sign_widths").erase("prism.hadamard.sign_values");
  return file;
}

// Gated DeltaNet: 2 key heads, 4 value heads of 8, tiled; the second layer predicts further tokens.
GgufBuilder hybrid() {
  GgufBuilder file;
  file.set("general.architecture", gguf::text("qwen35"));
  file.set("qwen35.block_count", gguf::u32(2));
  file.set("qwen35.nextn_predict_layers", gguf::u32(1));
  file.set("qwen35.ssm.group_count", gguf::u32(2));
  file.set("qwen35.ssm.time_step_rank", gguf::u32(4));
  file.set("qwen35.ssm.state_size", gguf::u32(4));
  file.set("qwen35.ssm.inner_size", gguf::u32(32));
  file.set("qwen35.ssm.conv_kernel", gguf::u32(4));
  const auto f32s = [&](const char* name, std::vector<std::uint64_t> dims) {
    std::size_t bytes = 4;
    for (const std::uint64_t dim : dims) bytes *= static_cast<std::size_t>(dim);
    file.add(name, gguf::kF32, std::move(dims), gguf::some_bytes(bytes, 7));
  };
  file.add("blk.0.attn_qkv.weight", gguf::kQ8_0, {32, 48}, gguf::some_bytes(48 * 34, 8));
  f32s("blk.0.attn_norm.weight", {4});
  f32s("blk.0.attn_gate.weight", {4, 32});
  f32s("blk.0.ssm_alpha.weight", {4, 4});
  f32s("blk.0.ssm_conv1d.weight", {4, 48});
  f32s("blk.0.ssm_a", {4});
  f32s("blk.0.ssm_out.weight", {32, 2});
  f32s("blk.1.attn_norm.weight", {4});
  f32s("blk.1.nextn.enorm.weight", {4});
  return file;
}

GgufBuilder rotated_hybrid() {
  GgufBuilder file = rotation();
  for (const auto& [key, value] : hybrid().keys) file.set(key, value);
  file.set("prism.hadamard.weight_names", gguf::texts({"blk.0.ssm_out.weight"}));
  file.set("prism.hadamard.sign_widths", gguf::i32s({4, 32}));
  file.set("prism.hadamard.sign_values", gguf::i32s(std::vector<std::int32_t>(36, -1)));
  for (const BuiltTensor& tensor : hybrid().tensors) file.tensors.push_back(tensor);
  return file;
}

GgufBuilder vocabulary() {
  GgufBuilder file;
  file.version = 2;
  file.set("tokenizer.ggml.model", gguf::text("gpt2"));
  file.set("tokenizer.ggml.pre", gguf::text("qwen2"));
  file.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "Ġ", "ab", "<|im_end|>"}));
  file.set("tokenizer.ggml.token_type", gguf::i32s({1, 1, 1, 1, 3}));
  file.set("tokenizer.ggml.merges", gguf::texts({"a b", "b c"}));
  file.set("tokenizer.ggml.bos_token_id", gguf::u32(4));
  file.set("tokenizer.ggml.eos_token_id", gguf::u32(4));
  file.set("tokenizer.ggml.add_bos_token", gguf::boolean(true));
  return file;
}

// The second part of a split file, with a tensor of a type that is not read.
GgufBuilder part() {
  GgufBuilder file;
  file.set("split.no", gguf::u16(1));
  file.set("split.count", gguf::u16(2));
  file.set("split.tensors.count", gguf::i32(1));
  file.add("x", 10, {256}, gguf::some_bytes(84, 1));
  return file;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_gguf_corpus FOLDER\n", stderr);
    return 2;
  }
  const std::pair<const char*, GgufBuilder> kInputs[] = {{"types", types()},
                                                         {"rotation", rotation()},
                                                         {"identity", identity()},
                                                         {"hybrid", hybrid()},
                                                         {"rotated_hybrid", rotated_hybrid()},
                                                         {"vocabulary", vocabulary()},
                                                         {"part", part()}};
  for (const auto& [name, file] : kInputs) {
    const auto bytes = file.build();
    std::ofstream out(std::string(argv[1]) + "/" + name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    if (!out) return 1;
  }
  return 0;
}
