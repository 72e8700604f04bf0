// Counts beyond which a checkpoint is not read, because what it makes of them would fill the
// memory.
#include <gtest/gtest.h>

#include "format/sections.h"
#include "gguf_builder.h"
#include "hf_files.h"
#include "import/gguf.h"
#include "import/hf_merges.h"

namespace tsq {
namespace {

using gguf::GgufBuilder;

void expect_unsupported(const GgufBuilder& file, const std::string& message) {
  const auto bytes = file.build();
  const importer::Bytes parts[] = {bytes};
  const auto checkpoint = importer::parse_gguf(parts);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().code(), ErrorCode::unsupported);
  EXPECT_EQ(checkpoint.error().message(), message);
}

// An array of n texts without bytes.
gguf::EncodedValue empty_texts(std::size_t n) { return gguf::texts(std::vector<std::string>(n)); }

GgufBuilder with_vocabulary() {
  GgufBuilder file;
  file.set("tokenizer.ggml.model", gguf::text("gpt2"));
  file.set("tokenizer.ggml.pre", gguf::text("smollm"));
  file.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "ab"}));
  file.set("tokenizer.ggml.merges", gguf::texts({"a b"}));
  return file;
}

TEST(ImportLimits, TensorsOfAGguf) {
  GgufBuilder file;
  file.set("filler", gguf::text(std::string(40 * (format::kMaxTensors + 1), ' ')));
  file.n_tensors = format::kMaxTensors + 1;
  expect_unsupported(file, "32769 tensors, at most 32768 are supported");
}

TEST(ImportLimits, NamesOfTensors) {
  GgufBuilder file;
  for (int i = 0; i < 8193; ++i) {
    std::string name = std::to_string(i);
    name.resize(1024, 'x');
    file.add(name, gguf::kF32, {1}, gguf::some_bytes(4, 1));
  }
  expect_unsupported(file,
                     "the names of the tensors have more than 8388608 bytes, expected no more");
}

TEST(ImportLimits, Vocabulary) {
  const std::string key = "key 'tokenizer.ggml.";
  GgufBuilder file = with_vocabulary();
  file.set("tokenizer.ggml.tokens", empty_texts(format::kMaxTokens + 1));
  expect_unsupported(file, key + "tokens' holds 294913 values, at most 294912 are supported");
  file = with_vocabulary();
  file.set("tokenizer.ggml.merges", empty_texts(format::kMaxMerges + 1));
  expect_unsupported(file, key + "merges' holds 589825 values, at most 589824 are supported");
  file = with_vocabulary();
  file.set("tokenizer.ggml.tokens",
           gguf::texts({"a", std::string(2 * format::kMaxTextBytes, 'b')}));
  expect_unsupported(file, key +
                               "tokens' holds 6291457 bytes of text, at most 6291456 are "
                               "supported");
}

TEST(ImportLimits, RotationContract) {
  for (const auto& [key, message] :
       {std::pair("sign_values",
                  "key 'prism.hadamard.sign_values' holds 1048577 values, at most "
                  "1048576 are supported"),
        std::pair("sign_widths",
                  "key 'prism.hadamard.sign_widths' holds 1048577 values, at most "
                  "1048576 are supported")}) {
    GgufBuilder file;
    file.set("prism.hadamard.version", gguf::u32(1));
    file.set("prism.hadamard.block_size", gguf::u32(64));
    file.set("prism.hadamard.transform", gguf::text("normalized-sylvester-walsh-hadamard"));
    file.set("prism.hadamard.axis", gguf::text("input-last-dimension"));
    file.set("prism.hadamard.sign_mode", gguf::text("explicit"));
    file.set("prism.hadamard.sign_widths", gguf::i32s({64}));
    file.set("prism.hadamard.sign_values", gguf::i32s({1}));
    file.set(std::string("prism.hadamard.") + key,
             gguf::i32s(std::vector<std::int32_t>((1u << 20) + 1, 1)));
    expect_unsupported(file, message);
  }
}

TEST(ImportLimits, MetadataEntries) {
  GgufBuilder file;
  file.set("filler", gguf::text(std::string(14 * 65537, ' ')));
  file.n_keys = 65537;
  expect_unsupported(file, "65537 metadata entries, at most 65536 are supported");
}

// A folder without a tokenizer can be converted all the same.
TEST(ImportLimits, RowsOfAFoldersEmbedding) {
  HfFolder folder(format::kMaxTokens + 1);
  folder.tokenizer = "{}";
  const auto checkpoint = folder.sound();
  EXPECT_FALSE(checkpoint.vocabulary);
  EXPECT_EQ(checkpoint.no_vocabulary,
            "tokenizer.json: the embedding has 294913 rows, tokenizers of up to 294912 are "
            "supported");
}

// Half of it in each of two merges.
TEST(ImportLimits, TextOfAFoldersMerges) {
  const std::string text(importer::HfMerges::kMaxTextBytes / 4, 'a');
  const std::string merge = "[\"" + text + "\",\"" + text + "\"]";
  const auto merges = [](const std::string& list) {
    const auto model = JsonDocument::parse(list);
    EXPECT_TRUE(model);
    return importer::HfMerges::of(model->root());
  };
  EXPECT_TRUE(merges(R"({"merges":[)" + merge + "," + merge + "]}"));
  const auto refused = merges(R"({"merges":[)" + merge + "," + merge + R"(,"a b"]})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_EQ(refused.error().message(),
            "merges of 10485762 bytes of text, at most 10485760 are supported");
}

}  // namespace
}  // namespace tsq
