// What bounds the memory that a file can make its reader take. Counts that are refused cost
// nothing: the sections here are zeros that nobody looks at.
#include <gtest/gtest.h>

#include <vector>

#include "format/sections.h"
#include "format/tokenizer_section.h"
#include "format_files.h"

namespace tsq::format {
namespace {

template <class T>
void expect_unsupported(const Result<T>& result, const std::string& message) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::unsupported);
  EXPECT_EQ(result.error().message(), message);
}

TEST(FormatLimits, Tensors) {
  const std::uint64_t n = kMaxTensors + 1;
  const std::vector<std::byte> section(n * kTensorRecordBytes);
  expect_unsupported(parse_tensors(section, n, {}, 0),
                     "tensor directory: 32769 tensors with 0 bytes of names, at most 32768 with "
                     "8388608 are supported");
  // One fewer is looked at.
  EXPECT_EQ(parse_tensors(section, n - 1, {}, 0).error().message(),
            "tensor record 0: name_bytes is 0, expected 1 to 1024");
}

TEST(FormatLimits, NamesOfTensors) {
  const std::vector<std::byte> section(kTensorRecordBytes + kMaxNamesBytes + 1);
  expect_unsupported(parse_tensors(section, 1, {}, 0),
                     "tensor directory: 1 tensors with 8388609 bytes of names, at most 32768 with "
                     "8388608 are supported");
}

TEST(FormatLimits, Rotations) {
  const std::vector<std::byte> section(kMaxRotationsBytes + 1);
  expect_unsupported(parse_rotations(section, 1),
                     "rotations: 8388609 bytes, at most 8388608 are "
                     "supported");
}

// A section of zeros that has the size its header promises.
Result<TokenizerView> tokenizer(std::uint32_t tokens, std::uint32_t text_bytes,
                                std::uint32_t merges) {
  Bytes section(64 + 4 * (std::size_t{tokens} + 1 + 3 * std::size_t{merges} + 2) + tokens +
                text_bytes);
  for (const std::size_t one : {0, 4, 28, 32}) put(section, one, 1u);  // kinds, slots
  put(section, 12, tokens);
  put(section, 16, merges);
  put(section, 36, text_bytes);
  for (const std::size_t id : {40, 44, 48, 52}) put(section, id, kNoToken);
  return TokenizerView::parse(section.span(), tokens);
}

TEST(FormatLimits, Tokenizer) {
  const std::string most = ", at most 294912 of 3145728 and 589824 are supported";
  expect_unsupported(tokenizer(kMaxTokens + 1, 0, 0),
                     "tokenizer: 294913 tokens of 0 bytes and 0 merges" + most);
  expect_unsupported(tokenizer(2, kMaxTextBytes + 1, 0),
                     "tokenizer: 2 tokens of 3145729 bytes and 0 merges" + most);
  expect_unsupported(tokenizer(2, 0, kMaxMerges + 1),
                     "tokenizer: 2 tokens of 0 bytes and 589825 merges" + most);
  // Within them the contents are looked at.
  EXPECT_EQ(tokenizer(kMaxTokens, kMaxTextBytes, 0).error().message(),
            "tokenizer: the last token ends at byte 0 of the text, expected 3145728");
}

}  // namespace
}  // namespace tsq::format
