// The GGUF reader: what it accepts, and every way of breaking a file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "gguf_builder.h"
#include "import/gguf.h"
#include "temporary_folder.h"

namespace tsq {
namespace {

using gguf::GgufBuilder;
using importer::Bytes;
using importer::SourceType;

Result<importer::Checkpoint> parse(const std::vector<std::byte>& file) {
  const Bytes parts[] = {file};
  return importer::parse_gguf(parts);
}

// A sound file with a matrix of most types.
GgufBuilder sample() {
  GgufBuilder file;
  file.set("general.architecture", gguf::text("llama"));
  file.set("general.name", gguf::text("sample"));
  file.set("llama.block_count", gguf::u32(1));
  file.add("token_embd.weight", gguf::kQ8_0, {32, 4}, gguf::some_bytes(4 * 34, 1));
  file.add("blk.0.attn_norm.weight", gguf::kF32, {3}, gguf::f32_bytes({1, 2, 3}));
  file.add("blk.0.attn_q.weight", gguf::kPTQ1_0, {128, 2}, gguf::some_bytes(2 * 28, 2));
  file.add("blk.0.ffn_up.weight", gguf::kTQ2_0, {256, 1}, gguf::some_bytes(66, 3));
  file.add("blk.0.ffn_down.weight", gguf::kF16, {2, 3, 2}, gguf::some_bytes(24, 4));
  return file;
}

TEST(Gguf, HoldsTensorsAndMetadata) {
  const auto file = sample().build();
  const auto checkpoint = parse(file);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  ASSERT_EQ(checkpoint->tensors.size(), 5u);
  const auto expected = sample();
  for (std::size_t i = 0; i < 5; ++i) {
    const auto& tensor = checkpoint->tensors[i];
    const auto& built = expected.tensors[i];
    EXPECT_EQ(tensor.name, built.name);
    EXPECT_TRUE(
        std::equal(tensor.data.begin(), tensor.data.end(), built.data.begin(), built.data.end()));
    EXPECT_EQ(tensor.n_dims, built.dims.size());
    EXPECT_EQ(tensor.rotation, format::kNoRotation);
  }
  EXPECT_EQ(checkpoint->tensors[0].type, SourceType::q8_0);
  EXPECT_EQ(checkpoint->tensors[2].type, SourceType::ptq1_0);
  EXPECT_EQ(checkpoint->tensors[3].type, SourceType::tq2_0);
  EXPECT_EQ(checkpoint->tensors[4].cols(), 2u);
  EXPECT_EQ(checkpoint->tensors[4].rows(), 6u);
  EXPECT_EQ(*checkpoint->metadata.require_string("general.name"), "sample");
  EXPECT_TRUE(checkpoint->rotations.empty());
  EXPECT_FALSE(checkpoint->vocabulary);
  EXPECT_NE(checkpoint->no_vocabulary.find("no tokenizer"), std::string::npos);
}

TEST(Gguf, ReadsVersion2) {
  auto file = sample();
  file.version = 2;
  EXPECT_TRUE(parse(file.build()));
}

TEST(Gguf, HonoursTheAlignment) {
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    auto file = sample();
    file.alignment = alignment;
    file.set("general.alignment", gguf::u32(alignment));
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_TRUE(std::equal(checkpoint->tensors[4].data.begin(), checkpoint->tensors[4].data.end(),
                           file.tensors[4].data.begin()));
  }
}

// Whatever the length, an error and no crash; the last tensor ends with the file.
TEST(Gguf, EveryCutIsAnError) {
  auto builder = sample();
  builder.set("tokenizer.ggml.model", gguf::text("gpt2"));
  builder.set("tokenizer.ggml.pre", gguf::text("gpt-2"));
  builder.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "ab"}));
  builder.set("tokenizer.ggml.merges", gguf::texts({"a b"}));
  const auto file = builder.build();
  ASSERT_TRUE(parse(file));
  for (std::size_t length = 0; length < file.size(); ++length) {
    // A buffer of its own, so that a sanitizer sees a read past its end.
    const std::vector<std::byte> cut(file.begin(),
                                     file.begin() + static_cast<std::ptrdiff_t>(length));
    const auto checkpoint = parse(cut);
    ASSERT_FALSE(checkpoint) << "cut to " << length;
    EXPECT_EQ(checkpoint.error().code(), ErrorCode::damaged) << checkpoint.error().message();
  }
}

struct Broken {
  const char* name;
  std::function<void(GgufBuilder&)> breaks;
  ErrorCode code;
  std::vector<std::string> message;  // fragments: where, what was found, what would be right
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class BrokenGguf : public testing::TestWithParam<Broken> {};

TEST_P(BrokenGguf, IsRefusedByName) {
  auto builder = sample();
  GetParam().breaks(builder);
  const auto file = builder.build();
  const auto checkpoint = parse(file);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().code(), GetParam().code) << checkpoint.error().message();
  for (const std::string& fragment : GetParam().message) {
    EXPECT_NE(checkpoint.error().message().find(fragment), std::string::npos)
        << "no '" << fragment << "' in: " << checkpoint.error().message();
  }
}

constexpr auto kDamaged = ErrorCode::damaged;
constexpr auto kUnsupported = ErrorCode::unsupported;

const Broken kBroken[] = {
    {"magic", [](auto& f) { f.magic = "GGUX"; }, kDamaged, {"'GGUX'", "'GGUF'"}},
    {"tsq", [](auto& f) { f.magic = std::string("TSQ\0", 4); }, kUnsupported, {".tsq file"}},
    {"old_ggml", [](auto& f) { f.magic = "tjgg"; }, kUnsupported, {"before GGUF"}},
    {"version_1", [](auto& f) { f.version = 1; }, kUnsupported, {"version 1", "2 and 3"}},
    {"version_0", [](auto& f) { f.version = 0; }, kUnsupported, {"version 0"}},
    {"version_4", [](auto& f) { f.version = 4; }, kUnsupported, {"version 4", "2 and 3"}},
    {"big_endian",
     [](auto& f) { f.version = 0x03000000; },
     kUnsupported,
     {"big-endian", "version 3"}},
    {"tensor_count",
     [](auto& f) { f.n_tensors = UINT64_MAX; },
     kDamaged,
     {"18446744073709551615 tensors", "at most"}},
    {"tensor_count_one_more", [](auto& f) { f.n_tensors = 6; }, kDamaged, {}},
    {"key_count", [](auto& f) { f.n_keys = UINT64_MAX; }, kDamaged, {"18446744073709551615"}},
    {"key_count_one_more", [](auto& f) { f.n_keys = 4; }, kDamaged, {}},
    {"key_twice", [](auto& f) { f.keys.push_back(f.keys[1]); }, kDamaged, {"general.name"}},
    {"key_empty", [](auto& f) { f.set("", gguf::u32(1)); }, kDamaged, {}},
    {"value_type",
     [](auto& f) { f.set("x", gguf::scalar(static_cast<ValueType>(13), 1)); },
     kDamaged,
     {"13"}},
    {"alignment_zero",
     [](auto& f) { f.set("general.alignment", gguf::u32(0)); },
     kDamaged,
     {"'general.alignment' is 0", "power of two"}},
    {"alignment_odd",
     [](auto& f) { f.set("general.alignment", gguf::u32(48)); },
     kDamaged,
     {"'general.alignment' is 48", "power of two"}},
    {"alignment_huge",
     [](auto& f) { f.set("general.alignment", gguf::u32(1u << 31)); },
     kDamaged,
     {"'general.alignment' is 2147483648", "power of two"}},
    {"alignment_text",
     [](auto& f) { f.set("general.alignment", gguf::text("32")); },
     kDamaged,
     {"'general.alignment' is string"}},
    {"name_empty", [](auto& f) { f.tensors[1].name = ""; }, kDamaged, {"tensor 1", "empty name"}},
    {"name_twice",
     [](auto& f) { f.tensors[1].name = f.tensors[0].name; },
     kDamaged,
     {"'token_embd.weight'", "twice"}},
    {"name_too_long",
     [](auto& f) { f.tensors[1].name = std::string(1025, 'x'); },
     kDamaged,
     {"tensor 1", "1025 bytes", "at most 1024"}},
    {"name_no_text",
     [](auto& f) { f.tensors[1].name = "a\nb\xff"; },
     kDamaged,
     {"'a\\x0ab\\xff'", "UTF-8"}},
    {"no_dims",
     [](auto& f) { f.tensors[1].dims = {}; },
     kDamaged,
     {"'blk.0.attn_norm.weight'", "0 dims", "1 to 4"}},
    {"five_dims",
     [](auto& f) {
       f.tensors[1].dims = {3, 1, 1, 1, 1};
     },
     kDamaged,
     {"'blk.0.attn_norm.weight'", "5 dims", "1 to 4"}},
    {"zero_dim",
     [](auto& f) { f.tensors[2].dims[1] = 0; },
     kDamaged,
     {"'blk.0.attn_q.weight'", "dim 1 is 0"}},
    {"dims_wrap",
     [](auto& f) {
       f.tensors[4].dims = {1ull << 32, 1ull << 31, 2};
     },
     kDamaged,
     {"'blk.0.ffn_down.weight'", "wrap"}},
    {"dims_wrap_to_zero_bytes",
     [](auto& f) {
       f.tensors[4].dims = {1ull << 32, 1ull << 31};
     },
     kDamaged,
     {"'blk.0.ffn_down.weight'", "wrap"}},
    {"dims_past_the_file",
     [](auto& f) {
       f.tensors[4].dims = {2, 3, 3};
     },
     kDamaged,
     {"'blk.0.ffn_down.weight'", "36 bytes", "the data has"}},
    {"partial_block",
     [](auto& f) {
       f.tensors[2].dims = {64, 4};
     },
     kDamaged,
     {"'blk.0.attn_q.weight'", "64 inputs", "blocks of 128"}},
    {"offset_odd",
     [](auto& f) { f.tensors[1].offset = 7; },
     kDamaged,
     {"'blk.0.attn_norm.weight'", "offset 7", "32"}},
    {"offset_past_the_file",
     [](auto& f) { f.tensors[4].offset = 1u << 20; },
     kDamaged,
     {"'blk.0.ffn_down.weight'", "24 bytes at 1048576", "the data has"}},
    {"offset_wraps",
     [](auto& f) { f.tensors[4].offset = UINT64_MAX - 31; },
     kDamaged,
     {"'blk.0.ffn_down.weight'", "18446744073709551584"}},
    {"overlap",
     [](auto& f) { f.tensors[2].offset = 0; },
     kDamaged,
     {"'token_embd.weight'", "'blk.0.attn_q.weight'", "overlap"}},
    {"row_headers_past_the_file",  // 13 bytes a row are there, not the scale before them
     [](auto& f) {
       f.add("output.weight", gguf::kIQ1_BN, {64, 64}, gguf::some_bytes(64 * 13, 9));
     },
     kDamaged,
     {"'output.weight'", "960 bytes"}},
    {"row_headers_wrap",
     [](auto& f) {
       f.add("output.weight", gguf::kIQ2_BN, {64, 1ull << 57}, gguf::some_bytes(64, 9));
     },
     kDamaged,
     {"'output.weight'", "2882303761517117440 bytes"}},
    {"type_known_by_name",
     [](auto& f) {
       f.add("output.weight", 10, {256, 1}, gguf::some_bytes(84, 9));
       f.add("blk.0.ffn_gate.weight", 11, {256, 1}, gguf::some_bytes(110, 9));
     },
     kUnsupported,
     {"2 tensors", "'output.weight'", "Q2_K, id 10", "Q6_K", "otherwise intact"}},
    {"type_of_many_meanings",
     [](auto& f) {
       f.add("output.weight", 40, {512, 1}, gguf::some_bytes(130, 9));
       f.add("blk.0.ffn_gate.weight", 40, {512, 1}, gguf::some_bytes(130, 9));
     },
     kUnsupported,
     {"2 tensors", "'output.weight'", "NVFP4 or a type of another fork, id 40",
      "otherwise intact"}},
    {"type_unknown",
     [](auto& f) { f.tensors[3].type = 999; },
     kUnsupported,
     {"'blk.0.ffn_up.weight'", "without a public name, id 999"}},
    {"unread_and_damaged",
     [](auto& f) {
       f.add("output.weight", 10, {256, 4}, gguf::some_bytes(84, 9));
     },
     kDamaged,
     {"'output.weight'", "336 bytes"}},
    {"split_number_missing",
     [](auto& f) { f.set("split.count", gguf::u16(2)); },
     kDamaged,
     {"'split.count' is 2", "'split.no' is missing"}},
    {"split_number",
     [](auto& f) { f.set("split.count", gguf::u16(2)).set("split.no", gguf::u16(2)); },
     kDamaged,
     {"'split.no' is 2", "at most 1"}},
    {"split_count",
     [](auto& f) { f.set("split.count", gguf::u32(100000)); },
     kDamaged,
     {"'split.count' is 100000"}},
    {"split_alone",
     [](auto& f) { f.set("split.count", gguf::u16(3)).set("split.no", gguf::u16(1)); },
     ErrorCode::not_found,
     {"part 1 of 3 is missing"}},
};

INSTANTIATE_TEST_SUITE_P(Every, BrokenGguf, testing::ValuesIn(kBroken),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Gguf, SaysWhatOtherFilesAre) {
  const auto error_of = [](std::string_view content) {
    const auto bytes = std::as_bytes(std::span(content));
    const Bytes parts[] = {bytes};
    const auto checkpoint = importer::parse_gguf(parts);
    return checkpoint ? std::string() : checkpoint.error().message();
  };
  EXPECT_NE(error_of("").find("empty"), std::string::npos);
  EXPECT_NE(error_of("version https://git-lfs.github.com/spec/v1\noid").find("git-lfs pointer"),
            std::string::npos);
  EXPECT_NE(error_of("\n<!DOCTYPE html><html>").find("HTML page"), std::string::npos);
  EXPECT_NE(error_of("<HTML>").find("HTML page"), std::string::npos);
  EXPECT_NE(error_of(std::string_view("\x02\0\0\0\0\0\0\0{}", 10)).find("safetensors"),
            std::string::npos);
  EXPECT_NE(error_of("GGU").find("starts with 'GGU'"), std::string::npos);
}

// Every byte of the records changed, one at a time: an answer, and spans inside the file.
TEST(Gguf, SurvivesEveryChangedByte) {
  auto builder = sample();
  builder.set("tokenizer.ggml.model", gguf::text("gpt2"));
  builder.set("tokenizer.ggml.pre", gguf::text("gpt-2"));
  builder.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "ab"}));
  builder.set("tokenizer.ggml.merges", gguf::texts({"a b"}));
  const auto sound = builder.build();
  for (std::size_t i = 0; i < sound.size(); ++i) {
    for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
      auto file = sound;
      file[i] ^= static_cast<std::byte>(change);
      const auto checkpoint = parse(file);
      if (!checkpoint) continue;
      for (const auto& tensor : checkpoint->tensors) {
        ASSERT_GE(tensor.data.data(), file.data());
        ASSERT_LE(tensor.data.data() + tensor.data.size(), file.data() + file.size());
      }
    }
  }
}

// ---- split files ----

class SplitGguf : public testing::Test {
 protected:
  // Part `number` of three: the first holds the keys and no tensor, as some writers do.
  static GgufBuilder part(std::uint32_t number) {
    GgufBuilder file;
    if (number == 0) file.set("general.architecture", gguf::text("llama"));
    file.set("split.no", gguf::u16(static_cast<std::uint16_t>(number)));
    file.set("split.count", gguf::u16(3));
    file.set("split.tensors.count", gguf::i32(3));
    if (number == 1) {
      file.add("token_embd.weight", gguf::kF32, {4}, gguf::f32_bytes({1, 2, 3, 4}));
      file.add("output_norm.weight", gguf::kF32, {2}, gguf::f32_bytes({5, 6}));
    }
    if (number == 2) file.add("output.weight", gguf::kF32, {1}, gguf::f32_bytes({7}));
    return file;
  }
  std::filesystem::path write(std::uint32_t number, const GgufBuilder& file) {
    const auto name = "model-0000" + std::to_string(number + 1) + "-of-00003.gguf";
    return write_as(name, file);
  }
  std::filesystem::path write_as(const std::string& name, const GgufBuilder& file) {
    const auto path = folder_.path() / name;
    const auto bytes = file.build();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  static Result<importer::OpenedCheckpoint> open(std::vector<std::filesystem::path> paths) {
    return importer::open_gguf(paths);
  }

  TemporaryFolder folder_;
};

TEST_F(SplitGguf, OpensFromAnyPart) {
  std::vector<std::filesystem::path> paths;
  for (std::uint32_t i = 0; i < 3; ++i) paths.push_back(write(i, part(i)));
  for (const auto& path : paths) {
    const auto opened = open({path});
    ASSERT_TRUE(opened) << opened.error().message();
    ASSERT_EQ(opened->checkpoint.tensors.size(), 3u);
    EXPECT_EQ(opened->checkpoint.tensors[2].name, "output.weight");
    EXPECT_EQ(*opened->checkpoint.metadata.require_string("general.architecture"), "llama");
    EXPECT_EQ(opened->paths.size(), 3u);
  }
  const auto all = open({paths[2], paths[0], paths[1]});
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_EQ(all->checkpoint.tensors[2].name, "output.weight");
}

TEST_F(SplitGguf, NamesTheMissingPart) {
  write(0, part(0));
  const auto last = write(2, part(2));
  const auto opened = open({last});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::not_found);
  EXPECT_NE(opened.error().message().find("model-00002-of-00003.gguf: part 2 of 3 is missing"),
            std::string::npos)
      << opened.error().message();
}

TEST_F(SplitGguf, RefusesPartsThatDisagree) {
  const auto expect_error = [&](const std::string& fragment) {
    const auto opened = open({folder_.path() / "model-00001-of-00003.gguf"});
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message().find(fragment), std::string::npos)
        << opened.error().message();
  };
  write(0, part(0));
  write(1, part(1));
  write(2, part(1));
  expect_error("part 2 of 3, its name 3 of 3");

  auto twice = part(2);
  twice.add("token_embd.weight", gguf::kF32, {1}, gguf::f32_bytes({1}));
  write(2, twice);
  expect_error("'split.tensors.count' is 3, the parts hold 4");
  for (std::uint32_t i = 0; i < 3; ++i) {
    auto file = i == 2 ? twice : part(i);
    write(i, file.erase("split.tensors.count"));
  }
  expect_error("'token_embd.weight' is in two parts");
}

// Its contract in a part that nobody reads would leave weights rotated and unmarked.
TEST_F(SplitGguf, RefusesKeysOutsideTheFirstPart) {
  write(0, part(0));
  write(2, part(2));
  const auto path = write(1, part(1).set("prism.hadamard.version", gguf::u32(1)));
  const auto opened = open({path});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("'prism.hadamard.version' of part 2 is not in part 1"),
            std::string::npos)
      << opened.error().message();
  write(0, part(0).set("llama.block_count", gguf::u32(1)));
  write(1, part(1).set("llama.block_count", gguf::u32(1)));
  EXPECT_TRUE(open({path}));
  write(1, part(1).set("llama.block_count", gguf::u32(2)));
  const auto other = open({path});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message().find("'llama.block_count' of part 2 has another value"),
            std::string::npos)
      << other.error().message();
}

TEST_F(SplitGguf, RefusesUnusualNamesUnlessAllPartsAreGiven) {
  std::vector<std::filesystem::path> paths;
  for (std::uint32_t i = 0; i < 3; ++i) {
    paths.push_back(write_as("part" + std::to_string(i) + ".gguf", part(i)));
  }
  const auto one = open({paths[1]});
  ASSERT_FALSE(one);
  EXPECT_NE(one.error().message().find("NAME-00002-of-00003.gguf"), std::string::npos)
      << one.error().message();
  EXPECT_TRUE(open(paths));
  const auto two = open({paths[0], paths[2]});
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message().find("part 2 of 3 is missing"), std::string::npos)
      << two.error().message();
  const auto same = open({paths[0], paths[0], paths[1]});
  ASSERT_FALSE(same);
  EXPECT_NE(same.error().message().find("'split.no' is 0 in two parts"), std::string::npos)
      << same.error().message();
}

TEST_F(SplitGguf, SaysThatAFileIsMissing) {
  const auto opened = open({folder_.path() / "nothing.gguf"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::not_found);
  EXPECT_NE(opened.error().message().find("nothing.gguf"), std::string::npos);
}

}  // namespace
}  // namespace tsq
