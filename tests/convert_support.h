// What the tests of conversion share: models in memory, a folder for the files made of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "convert/convert.h"
#include "format/reader.h"
#include "format/verify.h"
#include "gguf_builder.h"
#include "import/gguf.h"
#include "temporary_folder.h"

namespace tsq {

namespace fs = std::filesystem;
using convert::ConvertOptions;
using convert::TernaryEncoding;
using format::Encoding;
using gguf::GgufBuilder;

inline const fs::path kModels = fs::path(TSQ_TEST_DATA) / "models";

inline Result<importer::Checkpoint> parse(const std::vector<std::byte>& file) {
  const importer::Bytes parts[] = {file};
  return importer::parse_gguf(parts);
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(seed) {}
  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 8) % n;
  }
  // A finite fp16 scale of either sign.
  std::uint16_t scale() {
    return static_cast<std::uint16_t>(below(2) << 15 | (0x1c00 + below(0x2000)));
  }
  std::byte codes() {  // four 2-bit codes, none of them 3
    unsigned byte = 0;
    for (int k = 0; k < 4; ++k) byte |= below(3) << 2 * k;
    return static_cast<std::byte>(byte);
  }

 private:
  std::uint32_t state_;
};

// PQ2_0 rows with codes 0, 1, 2 and scales of both signs.
inline std::vector<std::byte> pq2_rows(std::size_t blocks, std::uint32_t seed) {
  ByteWriter out;
  Random random(seed);
  for (std::size_t b = 0; b < blocks; ++b) {
    out.write(random.scale());
    for (int i = 0; i < 32; ++i) out.write(static_cast<std::uint8_t>(random.codes()));
  }
  return out.take();
}

// A model in memory: one ternary matrix, and what a .tsq file asks of its metadata.
inline GgufBuilder small_model() {
  GgufBuilder file;
  file.set("general.architecture", gguf::text("llama"));
  file.set("general.name", gguf::text("A small model"));
  file.set("llama.embedding_length", gguf::u32(128));
  file.set("llama.block_count", gguf::u32(1));
  file.add("token_embd.weight", gguf::kQ8_0, {128, 3}, gguf::some_bytes(3 * 4 * 34, 1));
  file.add("blk.0.attn_norm.weight", gguf::kF32, {5}, gguf::f32_bytes({1, -2, 3, 0.25f, 5}));
  file.add("blk.0.attn_q.weight", gguf::kPQ2_0, {128, 40}, pq2_rows(40, 2));
  return file;
}

inline GgufBuilder with_tokenizer() {
  auto file = small_model();
  file.set("tokenizer.ggml.model", gguf::text("gpt2"));
  file.set("tokenizer.ggml.pre", gguf::text("qwen2"));
  file.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "ab"}));
  file.set("tokenizer.ggml.token_type", gguf::i32s({1, 1, 1}));
  file.set("tokenizer.ggml.scores", gguf::array(ValueType::f32, std::vector<float>{0, 0, 0}));
  file.set("tokenizer.ggml.merges", gguf::texts({"a b", "b b"}));
  file.set("tokenizer.chat_template", gguf::text("{{ x }}"));
  return file;
}

// A folder for one conversion, its target and the file it made.
class ConvertTest : public testing::Test {
 protected:
  Result<convert::Summary> convert_built(const GgufBuilder& file,
                                         const ConvertOptions& options = {}) {
    const auto bytes = file.build();
    auto checkpoint = parse(bytes);
    if (!checkpoint) return checkpoint.error();
    return convert::convert_checkpoint(*checkpoint, target(), options);
  }
  fs::path target() const { return folder_.path() / "out.tsq"; }

  // Converts, opens and verifies.
  format::OpenedFile make(const GgufBuilder& file, const ConvertOptions& options = {}) {
    const auto summary = convert_built(file, options);
    EXPECT_TRUE(summary) << (summary ? "" : summary.error().message());
    return open_sound(target());
  }
  static format::OpenedFile open_sound(const fs::path& path) {
    auto opened = format::open(path);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message());
    const auto report = format::verify(opened->file);
    EXPECT_TRUE(report);
    for (const auto& finding : report->findings) {
      ADD_FAILURE() << finding.where << ": " << finding.found << ", expected " << finding.expected;
    }
    return std::move(*opened);
  }
  void expect_refused(const GgufBuilder& file, ErrorCode code,
                      const std::vector<std::string>& fragments,
                      const ConvertOptions& options = {}) {
    const auto summary = convert_built(file, options);
    ASSERT_FALSE(summary);
    EXPECT_EQ(summary.error().code(), code) << summary.error().message();
    for (const std::string& fragment : fragments) {
      EXPECT_NE(summary.error().message().find(fragment), std::string::npos)
          << "no '" << fragment << "' in: " << summary.error().message();
    }
    EXPECT_TRUE(fs::is_empty(folder_.path()));
  }

  TemporaryFolder folder_;
};

}  // namespace tsq
