// The safetensors reader and the index of a sharded model: what the format says, and every way in
// which a file can contradict it.
#include <gtest/gtest.h>

#include <string>

#include "import/safetensors.h"
#include "import/shard_index.h"
#include "safetensors_builder.h"

namespace tsq::importer {
namespace {

std::vector<std::byte> some_bytes(std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

void expect_refused(std::span<const std::byte> file, ErrorCode code, const std::string& fragment) {
  const auto parsed = parse_safetensors(file);
  ASSERT_FALSE(parsed) << fragment;
  EXPECT_EQ(parsed.error().code(), code) << parsed.error().message();
  EXPECT_NE(parsed.error().message().find(fragment), std::string::npos)
      << "no '" << fragment << "' in: " << parsed.error().message();
}

void expect_refused(std::string_view header, std::size_t data_bytes, ErrorCode code,
                    const std::string& fragment) {
  expect_refused(safetensors::file(header, some_bytes(data_bytes)), code, fragment);
}

TEST(SafetensorsTest, ReadsTensorsInTheOrderOfTheirData) {
  const auto data = some_bytes(29);
  const auto file = safetensors::file(
      R"({"__metadata__":{"format":"pt"},"late":{"dtype":"F32","shape":[2,3],"data_offsets":[5,29]},)"
      R"("none":{"dtype":"F16","shape":[0,7],"data_offsets":[5,5]},)"
      R"("early":{"dtype":"U8","shape":[5],"data_offsets":[1,5],"dtype ":1}})",
      data);
  ASSERT_FALSE(parse_safetensors(file));  // four fields, and a gap
  const auto good = safetensors::file(
      R"({"__metadata__":{"format":"pt"},"late":{"dtype":"F32","shape":[2,3],"data_offsets":[5,29]},)"
      R"("none":{"dtype":"F16","shape":[0,7],"data_offsets":[5,5]},)"
      R"("first":{"dtype":"I8","shape":[],"data_offsets":[0,1]},)"
      R"("\u0065arly":{"data_offsets":[1,5],"dtype":"BF16","shape":[1,2,1,1,1]}}   )",
      data);
  const auto parsed = parse_safetensors(good);
  ASSERT_TRUE(parsed) << parsed.error().message();
  const auto& tensors = parsed->tensors;
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].name, "first");
  EXPECT_EQ(tensors[0].n_dims, 0u);
  EXPECT_EQ(tensors[0].values(), 1u);
  EXPECT_EQ(tensors[1].name, "early");
  EXPECT_EQ(tensors[1].dtype, "BF16");
  EXPECT_EQ(tensors[1].n_dims, 5u);
  EXPECT_EQ(tensors[2].name, "none");
  EXPECT_EQ(tensors[2].values(), 0u);
  EXPECT_EQ(tensors[3].name, "late");
  EXPECT_EQ(tensors[3].n_dims, 2u);
  EXPECT_EQ(tensors[3].shape[0], 2u);
  EXPECT_EQ(tensors[3].shape[1], 3u);
  // At an odd address, behind a header that is no multiple of 8.
  EXPECT_EQ(tensors[3].data.data(), good.data() + good.size() - 24);
  EXPECT_EQ(tensors[3].data.size(), 24u);
}

TEST(SafetensorsTest, ReadsAFileWithoutTensors) {
  EXPECT_TRUE(parse_safetensors(safetensors::file("{}", {})));
  EXPECT_TRUE(parse_safetensors(safetensors::file(R"({"__metadata__":{}})", {})));
}

TEST(SafetensorsTest, EveryCutIsRefused) {
  const auto file = safetensors::Builder()
                        .add("a", "F32", {2, 2}, some_bytes(16))
                        .add("b", "BF16", {3}, some_bytes(6))
                        .build();
  ASSERT_TRUE(parse_safetensors(file));
  for (std::size_t n = 0; n < file.size(); ++n) {
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
    const auto parsed = parse_safetensors(cut);
    ASSERT_FALSE(parsed) << n;
    EXPECT_EQ(parsed.error().code(), ErrorCode::damaged) << n;
  }
}

TEST(SafetensorsTest, RefusesAHeaderThatCannotBe) {
  ByteWriter huge;
  huge.write(std::uint64_t{1} << 63);
  huge.write_text("{}");
  expect_refused(huge.bytes(), ErrorCode::damaged, "9223372036854775808 bytes by its length");
  const std::vector<std::byte> big(8 + 100'000'001, std::byte{' '});
  ByteWriter length;
  length.write(std::uint64_t{100'000'001});
  std::vector<std::byte> over = big;
  std::copy(length.bytes().begin(), length.bytes().end(), over.begin());
  expect_refused(over, ErrorCode::unsupported, "expected at most 100000000");
  expect_refused(" {}", 0, ErrorCode::damaged, "starts with ' {}', expected '{'");
  expect_refused("{\"a\":", 0, ErrorCode::damaged, "header: not JSON");
  expect_refused("{} {}", 0, ErrorCode::damaged, "header: not JSON");
  std::string deep = "{\"a\":";
  deep.append(1 << 20, '[');
  expect_refused(deep, 0, ErrorCode::unsupported, "deeper than 64");
}

TEST(SafetensorsTest, RefusesDuplicates) {
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                 R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                 2, ErrorCode::damaged, "key 'a' twice");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", 1,
                 ErrorCode::damaged, "key 'shape' twice");
}

TEST(SafetensorsTest, RefusesEntriesThatAreNone) {
  for (const char* entry : {"1", "null", "\"x\"", "[]"}) {
    expect_refused(std::string("{\"a\":") + entry + "}", 0, ErrorCode::damaged,
                   "expected an object");
  }
  expect_refused(R"({"__metadata__":[]})", 0, ErrorCode::damaged, "expected an object of strings");
  expect_refused(R"({"__metadata__":{"a":1}})", 0, ErrorCode::damaged,
                 "expected an object of strings");
  const struct {
    const char *entry, *fragment;
    ErrorCode code = ErrorCode::damaged;
  } kCases[] = {
      {R"({"shape":[1],"data_offsets":[0,1]})", "'dtype' is missing"},
      {R"({"dtype":"U8","data_offsets":[0,1]})", "'shape' is missing"},
      {R"({"dtype":"U8","shape":[1]})", "'data_offsets' is missing"},
      {R"({"dtype":8,"shape":[1],"data_offsets":[0,1]})", "'dtype' is 8, expected a string"},
      {R"({"dtype":"u8","shape":[1],"data_offsets":[0,1]})", "dtype 'u8' is not one of BOOL U8",
       ErrorCode::unsupported},
      {R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})", "'shape' is 1, expected an array"},
      {R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})", "'shape' is -1, expected whole"},
      {R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})", "'shape' is 1, expected whole"},
      {R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]})", "has 9 dims",
       ErrorCode::unsupported},
      {R"({"dtype":"U8","shape":[1],"data_offsets":[0]})", "array of two whole numbers"},
      {R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,1]})", "array of two whole numbers"},
      {R"({"dtype":"U8","shape":[1],"data_offsets":{"a":0,"b":1}})", "array of two whole numbers"},
      {R"({"dtype":"U8","shape":[1],"data_offsets":[0,-1]})", "array of two whole numbers"},
      {R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":0})", "has 4 fields"},
  };
  for (const auto& bad : kCases) {
    expect_refused(std::string("{\"a\":") + bad.entry + "}", 1, bad.code, bad.fragment);
  }
}

TEST(SafetensorsTest, RefusesRangesThatDoNotFit) {
  const struct {
    const char *shape, *dtype, *offsets, *fragment;
  } kCases[] = {
      {"[2]", "U8", "[0,3]", "bytes 0 to 3, the data has 2"},
      {"[2]", "U8", "[1,0]", "bytes 1 to 0, the data has 2"},
      {"[2]", "U8", "[0,18446744073709551615]", "the data has 2"},
      {"[1]", "U8", "[0,2]", "takes 2 bytes, its shape needs 1 of U8"},
      {"[1]", "F32", "[0,2]", "takes 2 bytes, its shape needs 4 of F32"},
      {"[0]", "U8", "[0,2]", "takes 2 bytes, its shape needs 0 of U8"},
      {"[3]", "F4", "[0,2]", "takes 2 bytes, its shape needs 1 of F4"},  // 12 bits
      {"[4294967296,4294967296]", "U8", "[0,2]", "its shape wraps"},
      {"[2305843009213693953]", "F64", "[0,2]", "its shape wraps"},
      {"[4294967296,4294967296,0]", "U8", "[0,2]", "its shape wraps"},
      {"[1]", "U8", "[0,1]", "the data has 2 bytes, the tensors end at 1"},
      {"[1]", "U8", "[1,2]",
       "starts at 1 of the data, expected 0, where the one before ends: "
       "they leave a gap"},
  };
  for (const auto& bad : kCases) {
    expect_refused(std::string(R"({"a":{"dtype":")") + bad.dtype + R"(","shape":)" + bad.shape +
                       R"(,"data_offsets":)" + bad.offsets + "}}",
                   2, ErrorCode::damaged, bad.fragment);
  }
  expect_refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                 R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                 3, ErrorCode::damaged, "tensor 'b' starts at 1 of the data, expected 2");
}

TEST(SafetensorsTest, ReadsFourBitsAValue) {
  const auto file = safetensors::Builder().add("a", "F4", {3, 2}, some_bytes(3)).build();
  EXPECT_TRUE(parse_safetensors(file));
}

void expect_index_refused(std::string_view text, const std::string& fragment) {
  const auto index = parse_shard_index(text);
  ASSERT_FALSE(index) << fragment;
  EXPECT_EQ(index.error().code(), ErrorCode::damaged);
  EXPECT_NE(index.error().message().find(fragment), std::string::npos) << index.error().message();
}

TEST(ShardIndexTest, ListsFilesAndPlaces) {
  const auto index = parse_shard_index(
      R"({"metadata":{"total_size":3},"weight_map":{"z":"b.safetensors","m":"a.safetensors",)"
      R"("a":"b.safetensors"}})");
  ASSERT_TRUE(index) << index.error().message();
  EXPECT_EQ(index->files, (std::vector<std::string>{"a.safetensors", "b.safetensors"}));
  ASSERT_EQ(index->places.size(), 3u);
  EXPECT_EQ(index->places[0].tensor, "a");
  EXPECT_EQ(index->places[0].file, 1u);
  EXPECT_EQ(index->places[1].tensor, "m");
  EXPECT_EQ(index->places[1].file, 0u);
}

TEST(ShardIndexTest, RefusesWhatIsNoMapOfFilesInTheFolder) {
  expect_index_refused("[]", "'weight_map' is missing");
  expect_index_refused(R"({"weight_map":[]})", "'weight_map' is an array");
  expect_index_refused(R"({"weight_map":{}})", "'weight_map' is empty");
  for (const char* name :
       {"1", "\"\"", "\"a.bin\"", "\"../a.safetensors\"", "\"/a.safetensors\"",
        "\"a\\\\b.safetensors\"", "\"x/a.safetensors\"", "\"a\\u0000.safetensors\"", "null"}) {
    expect_index_refused(std::string(R"({"weight_map":{"t":)") + name + "}}",
                         "for 't', expected the name of a .safetensors file in the same folder");
  }
  expect_index_refused(R"({"weight_map":{"t":"a.safetensors","t":"b.safetensors"}})",
                       "key 't' twice");
}

}  // namespace
}  // namespace tsq::importer
