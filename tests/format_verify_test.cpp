// verify(): each kind of damage in the data section gives one finding with place, found, expected.
#include <gtest/gtest.h>

#include <functional>

#include "base/hash.h"
#include "format/verify.h"
#include "format_files.h"
#include "format_findings.h"

namespace tsq::format {
namespace {

// The sample after a change, its tensor digests and the rest made right again.
std::vector<Finding> findings_after(const std::function<void(Bytes&)>& change) {
  Bytes bytes = copy_of(sample_file().span());
  change(bytes);
  for (std::size_t i = 0; i < kSampleTensors; ++i) {
    const std::size_t body = 65536 + get<std::uint64_t>(bytes, record_at(bytes, i, 80));
    const std::size_t n = get<std::uint64_t>(bytes, record_at(bytes, i, 88));
    put(bytes, record_at(bytes, i, 112), xxh3(bytes.span().subspan(body, n)));
  }
  return findings_in(std::move(bytes));
}

std::size_t body_at(const Bytes& bytes, std::size_t tensor) {
  return 65536 + get<std::uint64_t>(bytes, record_at(bytes, tensor, 80));
}

template <class T>
std::function<void(Bytes&)> in_body(std::size_t tensor, std::size_t offset, T value) {
  return [=](Bytes& bytes) { put(bytes, body_at(bytes, tensor) + offset, value); };
}

void expect_one(const std::function<void(Bytes&)>& change, const Finding& expected) {
  format::expect_one(findings_after(change), expected);
}

TEST(Verify, FindsNothingInASoundFile) {
  EXPECT_TRUE(findings_after([](Bytes&) {}).empty());
}

TEST(Verify, ATensorsDigest) {
  Bytes bytes = copy_of(sample_file().span());
  const auto digest = get<std::uint64_t>(bytes, record_at(bytes, kBf16, 112));
  put(bytes, record_at(bytes, kBf16, 112), digest ^ 1);
  sign(bytes);
  const auto file = File::parse(bytes.span());
  ASSERT_TRUE(file);
  const auto report = verify(*file);
  ASSERT_EQ(report->findings.size(), 1u);
  EXPECT_EQ(report->findings[0].where, "tensor 'brain': XXH3-64 of its bytes");
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  EXPECT_EQ(report->findings[0].found, text);
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest ^ 1));
  EXPECT_EQ(report->findings[0].expected, text);
}

TEST(Verify, EveryByteOfATensorIsInItsDigest) {
  for (std::size_t i = 0; i < kSampleTensors; ++i) {
    const std::size_t n = get<std::uint64_t>(sample_file(), record_at(sample_file(), i, 88));
    for (const std::size_t offset : {std::size_t{0}, n / 2, n - 1}) {
      Bytes bytes = copy_of(sample_file().span());
      bytes[body_at(bytes, i) + offset] ^= std::byte{4};
      const auto file = File::parse(bytes.span());
      ASSERT_TRUE(file);
      const auto report = verify(*file);
      ASSERT_FALSE(report->findings.empty());
      EXPECT_NE(report->findings[0].where.find("XXH3-64"), std::string::npos);
    }
  }
}

// attn_q is 33 rows of 160 inputs: two row blocks of two groups of 1088 bytes.
TEST(Verify, CodesOfT2) {
  // Byte 65 of the second block is of row 0 of the block, which is row 32: a real weight.
  const auto findings = findings_after(in_body(kQ, 2176 + 65, std::uint8_t{0xff}));
  ASSERT_GE(findings.size(), 1u);
  EXPECT_EQ(findings[0].where,
            "tensor 'blk.0.attn_q.weight': bytes with a code that stands for no weight");
  EXPECT_EQ(findings[0].found, "1, the first at byte 2241 of its body");
  EXPECT_EQ(findings[0].expected, "none");
}

TEST(Verify, CodesOfT1) {
  // ffn_down: one group, so scales 0-63, tail 64-319, body 320-1087. 1 is no byte of five digits.
  auto findings = findings_after(in_body(kDown, 320 + 128, std::uint8_t{1}));
  ASSERT_GE(findings.size(), 1u);
  EXPECT_EQ(findings[0].where,
            "tensor 'blk.0.ffn_down.weight': bytes with a code that stands for no weight");
  EXPECT_EQ(findings[0].found, "1, the first at byte 448 of its body");
  // ffn_up has six groups; the second super-block's tail has one. 2,1,1,1,2 there: the digits
  // behind the first have to be 1.
  findings = findings_after(in_body(
      kUp, 4416 + 64, static_cast<std::uint8_t>((256 * (2 * 81 + 27 + 9 + 3 + 2) + 242) / 243)));
  ASSERT_GE(findings.size(), 1u);
  EXPECT_EQ(findings[0].where,
            "tensor 'blk.0.ffn_up.weight': bytes with a code that stands for no weight");
  EXPECT_EQ(findings[0].found, "1, the first at byte 4480 of its body");
}

TEST(Verify, ZeroCounts) {
  for (const std::size_t tensor : {kQ, kDown, kUp}) {
    const auto count = get<std::uint64_t>(sample_file(), record_at(sample_file(), tensor, 72));
    ASSERT_GT(count, 0u);
    const std::string name = sample_contents().tensors[tensor].name;
    expect_one([&](Bytes& bytes) { put(bytes, record_at(bytes, tensor, 72), count - 1); },
               {"tensor '" + name + "': weights that are 0", std::to_string(count),
                std::to_string(count - 1)});
  }
}

TEST(Verify, PaddingOfTernaryTensors) {
  // t2, group 1 of block 0: inputs 160 to 255 are padding; input 160 is dword 2 of the group,
  // plane 0, byte 0. Row 1: byte 1088 + 64 + 256 + 4.
  expect_one(in_body(kQ, 1088 + 64 + 256 + 4, std::uint8_t{0x56}),
             {"tensor 'blk.0.attn_q.weight': padding weights that are not 0",
              "1, the first at row 1, input 160", "none"});
  // Block 1 has one row; row 33 is padding, its input 5 dword 0, plane 1, byte 1.
  expect_one(in_body(kQ, 2176 + 64 + 4 + 1, std::uint8_t{0x51}),
             {"tensor 'blk.0.attn_q.weight': padding weights that are not 0",
              "1, the first at row 33, input 5", "none"});
  // t1 of 3 rows x 48: row 3, input 21 is dword 1, digit 0, byte 1. 0,1,1,1,1.
  expect_one(in_body(kDown, 320 + 128 + 12 + 1, static_cast<std::uint8_t>((256 * 40 + 242) / 243)),
             {"tensor 'blk.0.ffn_down.weight': padding weights that are not 0",
              "1, the first at row 3, input 21", "none"});
  // The tail of row 0: input 120 is padding too.
  expect_one(in_body(kDown, 64, static_cast<std::uint8_t>((256 * (121 + 81) + 242) / 243)),
             {"tensor 'blk.0.ffn_down.weight': padding weights that are not 0",
              "1, the first at row 0, input 120", "none"});
  // Scales of padding rows: row 40 of t2, group 1; row 3 of t1.
  expect_one(in_body(kQ, 2176 + 1088 + 16, std::uint16_t{0x3c00}),
             {"tensor 'blk.0.attn_q.weight': scales of padding rows that are not +0",
              "1, the first at row 40, input 128", "none"});
  expect_one(in_body(kDown, 6, std::uint16_t{0x8000}),
             {"tensor 'blk.0.ffn_down.weight': scales of padding rows that are not +0",
              "1, the first at row 3, input 0", "none"});
}

TEST(Verify, ScalesThatAreNotFinite) {
  const char* const what = "scales or values that are infinite or not a number";
  // Not of the rows that the rotation probes read (32 of attn_q, 1 of ffn_down).
  expect_one(in_body(kQ, 1088 + 2 * 7, std::uint16_t{0xfc00}),
             {std::string("tensor 'blk.0.attn_q.weight': ") + what,
              "1, the first at row 7, input 128", "none"});
  expect_one(in_body(kUp, 64 * 2, std::uint16_t{0x7e01}),
             {std::string("tensor 'blk.0.ffn_up.weight': ") + what,
              "1, the first at row 0, input 256", "none"});
  expect_one(in_body(kEmbd, 100 + 20, std::uint16_t{0x7c00}),
             {std::string("tensor 'token_embd.weight': ") + what, "1, the first at row 1, input 32",
              "none"});
  expect_one(in_body(kEmbd, 100 + 20 + 2, std::uint16_t{0x7c00}),
             {std::string("tensor 'token_embd.weight': ") + what, "1, the first at row 1, input 32",
              "none"});
  expect_one(in_body(kQ8, 68 + 34, std::uint16_t{0xfe00}),
             {std::string("tensor 'eight': ") + what, "1, the first at row 1, input 32", "none"});
}

TEST(Verify, DenseValuesThatAreNotFinite) {
  const char* const what = "scales or values that are infinite or not a number";
  expect_one(in_body(kNorm, 4 * 9, 0x7f800000u),
             {std::string("tensor 'blk.0.attn_norm.weight': ") + what,
              "1, the first at row 0, input 9", "none"});
  expect_one(in_body(kF16, 2 * 6, std::uint16_t{0x7fff}),
             {std::string("tensor 'half': ") + what, "1, the first at row 0, input 6", "none"});
  expect_one(in_body(kBf16, 64 * 5 + 2 * 31, std::uint16_t{0xffff}),
             {std::string("tensor 'brain': ") + what, "1, the first at row 5, input 31", "none"});
}

TEST(Verify, PaddingOfDenseTensors) {
  // attn_norm has 150 inputs of 160 stored, half 7 of 32.
  expect_one(in_body(kNorm, 4 * 150, 0.5f),
             {"tensor 'blk.0.attn_norm.weight': padding weights that are not 0",
              "1, the first at row 0, input 150", "none"});
  expect_one(
      in_body(kF16, 2 * 31, std::uint16_t{1}),
      {"tensor 'half': padding weights that are not 0", "1, the first at row 0, input 31", "none"});
}

// q8 and q4 with 40 inputs: the second block has 24 of padding, whose codes are 0 (q8, q4 with a
// minimum) or 8 (q4). Its code byte 7 holds input 39, and in q4 the padding input 55.
TEST(Verify, PaddingOfBlocks) {
  const struct {
    Encoding encoding;
    std::uint32_t flags;
    std::size_t block_bytes, head;
    std::uint8_t sound;
  } cases[] = {{Encoding::q8, 0, 34, 2, 0},
               {Encoding::q4, 0, 18, 2, 0x88},
               {Encoding::q4, kFlagMinimum, 20, 4, 0}};
  for (const auto& c : cases) {
    FileContents contents = sample_contents();
    TensorRecord& tensor = contents.tensors[kQ8];
    tensor.encoding = c.encoding;
    tensor.flags = c.flags;
    tensor.dims = {40, 1, 1, 1};
    Bytes bytes = make_file(contents, sample_token_probe());
    const auto findings = [&] {
      const std::size_t body = body_at(bytes, kQ8);
      put(bytes, record_at(bytes, kQ8, 112), xxh3(bytes.span().subspan(body, 2 * c.block_bytes)));
      sign(bytes);
      const auto file = File::parse(bytes.span());
      EXPECT_TRUE(file);
      return verify(*file)->findings;
    };
    const std::size_t codes = body_at(bytes, kQ8) + c.block_bytes + c.head;
    for (std::size_t i = 0; i < c.block_bytes - c.head; ++i)
      bytes[codes + i] = static_cast<std::byte>(c.sound);
    EXPECT_TRUE(findings().empty()) << encoding_name(c.encoding);
    // Input 39 is a weight; input 40 and 63 are padding.
    bytes[codes + 7] ^= std::byte{0x01};
    EXPECT_TRUE(findings().empty()) << encoding_name(c.encoding);
    bytes[codes + 8] ^= std::byte{0x01};
    ASSERT_EQ(findings().size(), 1u);
    EXPECT_EQ(findings()[0].found, "1, the first at row 0, input 40");
    bytes[codes + 8] ^= std::byte{0x01};
    bytes[codes + c.block_bytes - c.head - 1] ^= std::byte{0x10};
    ASSERT_EQ(findings().size(), 1u);
    EXPECT_EQ(findings()[0].found, "1, the first at row 0, input 63");
  }
}

TEST(Verify, TheBytesBetweenTensors) {
  // token_embd ends at 600; the next tensor starts at 640. eight ends 8 bytes into its last 64.
  expect_one(in_body(kEmbd, 639, std::uint8_t{9}), {"the bytes behind tensor 'token_embd.weight'",
                                                    "9 at byte 639 of the data section", "0"});
  expect_one(in_body(kQ8, 136, std::uint8_t{1}),
             {"the bytes behind tensor 'eight'", "1 at byte 12808 of the data section", "0"});
}

TEST(Verify, RotationProbes) {
  const std::size_t value = section_at(sample_file(), 5) + 216 + 24;
  const auto findings =
      findings_after([&](Bytes& bytes) { put(bytes, value, get<double>(bytes, value) + 1); });
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].where,
            "rotation 0, tensor 'blk.0.attn_q.weight', un-rotated weight of row 32, input 77");
  EXPECT_NEAR(std::stod(findings[0].expected) - std::stod(findings[0].found), 1, 1e-6);
}

TEST(Verify, TheTokenizerSection) {
  const auto findings = findings_after([](Bytes& bytes) { put(bytes, section_at(bytes, 4), 99u); });
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].where, "tokenizer section");
  EXPECT_NE(findings[0].found.find("99"), std::string::npos) << findings[0].found;
}

TEST(Verify, AnEmptyTokenProbe) {
  expect_one([](Bytes& bytes) { std::memset(bytes.data() + section_at(bytes, 5), 0, 216); },
             {"token probe", "an empty slot: the file was never finished",
              "tokens, or the reason why there are none"});
}

TEST(Verify, ATokenProbeThatDisagreesWithTheTokenizer) {
  expect_one(
      [](Bytes& bytes) {
        std::memset(bytes.data() + section_at(bytes, 5), 0, 216);
        put(bytes, section_at(bytes, 5), 4u);
      },
      {"token probe", "that there is no tokenizer, and a tokenizer section", "one of the two"});
  FileContents contents = sample_contents();
  contents.tokenizer.clear();
  const Bytes bytes = make_file(contents, sample_token_probe());
  const auto findings = verify(*File::parse(bytes.span()))->findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].where, "token probe");
  EXPECT_EQ(findings[0].found, "tokens, but no tokenizer section");
}

// Slots are the words behind the offsets and the merges of section 4 (FORMAT.md, section 6).
TEST(Verify, LookupsOfTheTokenizerSection) {
  const std::size_t section = section_at(sample_file(), 4);
  const auto tokens = get<std::uint32_t>(sample_file(), section + 12);
  const auto merges = get<std::uint32_t>(sample_file(), section + 16);
  const auto string_slots = get<std::uint32_t>(sample_file(), section + 28);
  const std::size_t strings = section + 64 + 4 * (tokens + 1) + 12 * merges;
  const auto slot_of = [&](std::size_t table, std::uint32_t value) {
    std::size_t at = table;
    while (get<std::uint32_t>(sample_file(), at) != value) at += 4;
    return at;
  };
  const auto found_after_clearing = [&](std::size_t slot) {
    const auto findings = findings_after([&](Bytes& bytes) { put(bytes, slot, 0xffffffffu); });
    EXPECT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].where, "tokenizer section");
    return findings[0].found;
  };
  EXPECT_EQ(found_after_clearing(slot_of(strings, 2)),
            "tokenizer: token 2 'ab' is not found by its bytes");
  EXPECT_EQ(found_after_clearing(slot_of(strings + 4 * string_slots, 1)),
            "tokenizer: merge 1 is not found by its pair");
}

TEST(Verify, CountsWhatItFinds) {
  const auto findings = findings_after([](Bytes& bytes) {
    for (std::size_t i = 0; i < 3; ++i)
      put(bytes, body_at(bytes, kBf16) + 64 * (i + 2), std::uint16_t{0x7fc0});
  });
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].found, "3, the first at row 2, input 0");
}

TEST(Verify, ShowsItsProgressAndStops) {
  const auto file = File::parse(sample_file().span());
  ASSERT_TRUE(file);
  std::vector<std::uint64_t> shown;
  ASSERT_TRUE(verify(*file, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, file->data().size());
    shown.push_back(done);
    return true;
  }));
  EXPECT_EQ(shown, (std::vector<std::uint64_t>{file->data().size()}));
  const auto stopped = verify(*file, [](std::uint64_t, std::uint64_t) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace tsq::format
