// Scales of half groups, rows and tensors, and activations per token: the codec against FORMAT.md,
// files that hold them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/half.h"
#include "base/hash.h"
#include "format/encodings.h"
#include "format/probes.h"
#include "format/reader.h"
#include "format/verify.h"
#include "format_files.h"
#include "format_findings.h"
#include "temporary_folder.h"

namespace tsq::format {
namespace {

constexpr std::size_t kCols =
    1404;  // of 1408 stored: a whole super-block of t1, one of 5, one of 1

struct Kind {
  Encoding encoding;
  std::uint32_t flags;
  ScaleKind kind;

  Shape shape() const { return {encoding, flags, kind, 40, kCols}; }
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << encoding_name(kind.encoding) << " kind " << static_cast<unsigned>(kind.kind) << " flags "
       << kind.flags;
}

// Codes that every encoding can hold: one 1 in each quad of inputs side by side.
std::vector<std::uint8_t> make_codes(std::mt19937& random) {
  std::vector<std::uint8_t> codes(64 * 1408, 1);
  for (std::size_t row = 0; row < 40; ++row) {
    for (std::size_t quad = 0; quad < kCols / 4; ++quad) {
      const std::size_t zero = random() % 4;
      for (std::size_t p = 0; p < 4; ++p)
        codes[1408 * row + 4 * quad + p] =
            static_cast<std::uint8_t>(p == zero ? 1 : random() % 2 * 2);
    }
  }
  return codes;
}

class ScaleKinds : public testing::TestWithParam<Kind> {
 protected:
  ScaleKinds() {
    std::mt19937 random(5);
    codes_ = make_codes(random);
    lines_ = scale_lines(shape_);
    halves_.resize(64 * 11 * lines_, 0);
    for (std::size_t i = 0; i < 40 * 11 * lines_; ++i)
      halves_[i] = static_cast<std::uint16_t>(0x2000 + random() % 0x2000);
    array_.resize(*scale_bytes(shape_) / 4, 0);
    for (std::size_t i = 0; i < std::min<std::size_t>(array_.size(), 40); ++i)
      array_[i] = static_cast<float>(random() % 100000 + 1) / 99991;
    block_bytes_ = row_block_bytes(shape_);
    body_.resize(*body_bytes(shape_));
    for (std::size_t b = 0; b < 2; ++b)
      pack_row_block(shape_, &codes_[32 * 1408 * b], halves_.data() + 32 * 11 * lines_ * b,
                     &body_[block_bytes_ * b]);
  }
  float scale(std::size_t row, std::size_t col) const {
    if (shape_.scale_kind == ScaleKind::per_row) return array_[row];
    if (shape_.scale_kind == ScaleKind::per_tensor) return array_[0];
    const std::size_t width = lines_ == 2 ? 64 : 128;
    return f16_to_f32(halves_[row * (1408 / width) + col / width]);
  }

  const Shape shape_ = GetParam().shape();
  std::size_t lines_, block_bytes_;
  std::vector<std::uint8_t> codes_;
  std::vector<std::uint16_t> halves_;
  std::vector<float> array_;
  std::vector<std::byte> body_;
};

// FORMAT.md draws a body with one line a group, which the other tests hold against it: without the
// lines, or with two, the rest is the same.
TEST_P(ScaleKinds, AreTheScaleLinesOfTheBody) {
  Shape grouped = shape_;
  grouped.flags &= ~kFlagHalfGroups;
  grouped.scale_kind = ScaleKind::per_group;
  std::vector<std::uint16_t> zeros(32 * 11, 0);
  std::vector<std::byte> with_lines(row_block_bytes(grouped));
  for (std::size_t b = 0; b < 2; ++b) {
    pack_row_block(grouped, &codes_[32 * 1408 * b], zeros.data(), with_lines.data());
    std::vector<std::byte> expected;
    const auto line = [&](std::size_t g, std::size_t l) {
      for (std::size_t row = 32 * b; row < 32 * b + 32; ++row) {
        const unsigned bits = halves_[(row * 11 + g) * lines_ + l];
        expected.push_back(static_cast<std::byte>(bits & 255));
        expected.push_back(static_cast<std::byte>(bits >> 8));
      }
    };
    auto from = with_lines.begin();
    const std::size_t together = shape_.encoding == Encoding::t1 ? 5 : 1;  // groups
    for (std::size_t first = 0; first < 11; first += together) {
      const std::size_t r = std::min(together, 11 - first);
      const std::size_t codes = shape_.encoding == Encoding::t1   ? 256 + 768 * r
                                : shape_.encoding == Encoding::t2 ? 1024
                                                                  : 640;
      for (std::size_t g = first; g < first + r; ++g)
        for (std::size_t l = 0; l < lines_; ++l) line(g, l);
      from += static_cast<std::ptrdiff_t>(64 * r);
      expected.insert(expected.end(), from, from + static_cast<std::ptrdiff_t>(codes));
      from += static_cast<std::ptrdiff_t>(codes);
    }
    ASSERT_EQ(expected.size(), block_bytes_);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), &body_[block_bytes_ * b])) << b;
  }
}

TEST_P(ScaleKinds, UnpackIsTheInverse) {
  std::vector<std::uint8_t> codes(32 * 1408);
  std::vector<std::uint16_t> halves(32 * 11 * lines_);
  for (std::size_t b = 0; b < 2; ++b) {
    EXPECT_TRUE(unpack_row_block(shape_, &body_[block_bytes_ * b], codes.data(), halves.data()));
    EXPECT_TRUE(std::equal(halves.begin(), halves.end(), halves_.begin() + 32 * 11 * lines_ * b));
    for (std::size_t row = 32 * b; row < std::min<std::size_t>(40, 32 * b + 32); ++row) {
      for (std::size_t col = 0; col < kCols; ++col) {
        ASSERT_EQ(codes[row % 32 * 1408 + col], codes_[row * 1408 + col]) << row << " " << col;
        if (shape_.encoding == Encoding::s34) continue;
        ASSERT_EQ(ternary_code(shape_, &body_[block_bytes_ * b], row % 32, col),
                  codes_[row * 1408 + col])
            << row << " " << col;
      }
    }
  }
}

TEST_P(ScaleKinds, DecodeRowGivesWeightTimesScale) {
  std::vector<float> values(kCols);
  for (std::size_t row = 0; row < 40; ++row) {
    decode_row(shape_, {body_, array_}, row, values.data());
    for (std::size_t col = 0; col < kCols; ++col)
      ASSERT_EQ(values[col], static_cast<float>(codes_[row * 1408 + col] - 1) * scale(row, col))
          << row << " " << col;
    std::vector<float> part(101);
    decode_row_part(shape_, {body_, array_}, row, 600, part);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), values.begin() + 600)) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScaleKinds,
                         testing::Values(Kind{Encoding::t2, 0, ScaleKind::per_group},
                                         Kind{Encoding::t2, kFlagHalfGroups, ScaleKind::per_group},
                                         Kind{Encoding::t2, 0, ScaleKind::per_row},
                                         Kind{Encoding::t2, 0, ScaleKind::per_tensor},
                                         Kind{Encoding::t1, 0, ScaleKind::per_row},
                                         Kind{Encoding::t1, 0, ScaleKind::per_tensor},
                                         Kind{Encoding::s34, 0, ScaleKind::per_row},
                                         Kind{Encoding::s34, 0, ScaleKind::per_tensor}));

// --- files

// The sample with these tensors more, the last one's scale at the end of the file.
enum : std::size_t { kHalves = kSampleTensors, kRows, kToken, kOne };

FileContents scales_contents() {
  FileContents contents = sample_contents();
  const auto add = [&](const char* name, Encoding encoding, std::uint32_t flags, ScaleKind kind,
                       ActivationQuant quant, std::uint64_t cols, std::uint64_t rows) {
    TensorRecord tensor = contents.tensors[kUp];
    tensor.name = name;
    tensor.encoding = encoding;
    tensor.flags = flags;
    tensor.scale_kind = kind;
    tensor.activation_quant = quant;
    tensor.dims = {cols, rows, 1, 1};
    contents.tensors.push_back(tensor);
  };
  using enum ActivationQuant;
  add("halves", Encoding::t2, kFlagHalfGroups, ScaleKind::per_group, per_group, 160, 33);
  add("rows", Encoding::t1, 0, ScaleKind::per_row, per_token, 160, 33);
  add("token", Encoding::t2, 0, ScaleKind::per_group, per_token, 100, 3);
  add("one", Encoding::s34, kFlagStride16, ScaleKind::per_tensor, per_token, 192, 2);
  contents.tensors[kHalves].input_rotation = contents.tensors[kRows].input_rotation = 0;
  contents.rotation_probes.push_back({.rotation = 0, .tensor = kHalves, .row = 32, .col = 77});
  contents.rotation_probes.push_back({.rotation = 0, .tensor = kRows, .row = 32, .col = 140});
  return contents;
}

const Bytes& scales_file() {
  static const Bytes file = make_file(scales_contents(), sample_token_probe());
  return file;
}

TEST(ScalesFile, IsOpenedAndSound) {
  const auto file = File::parse(scales_file().span());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->header().critical_features, 0x1fu);
  const TensorRecord &halves = file->tensors()[kHalves], &rows = file->tensors()[kRows],
                     &one = file->tensors()[kOne];
  EXPECT_EQ(halves.body_bytes, 2 * 2 * 1152u);
  EXPECT_EQ(halves.group_size, 64u);
  EXPECT_EQ(rows.body_bytes, 2 * (768 * 2 + 256u));
  EXPECT_EQ(rows.scale_offset, rows.body_offset + rows.body_bytes);
  EXPECT_EQ(rows.scale_bytes, 4 * 64u);
  EXPECT_EQ(one.body_bytes, 2 * 640u);
  EXPECT_EQ(one.scale_bytes, 4u);
  EXPECT_EQ(file->scales(rows).size(), 64u);
  EXPECT_GT(file->scales(one)[0], 0);
  EXPECT_EQ(file->data().size(), one.scale_offset + 64);
  EXPECT_TRUE(check_rotation_probes(*file));
  const auto report = verify(*file);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->findings.empty()) << report->findings[0].where;
}

TEST(ScalesFile, WrongFieldsAreNamed) {
  const struct {
    std::size_t tensor, field;
    std::uint64_t value;
    std::size_t bytes;  // of the field
    std::string message;
  } cases[] = {
      {kHalves, 20, 128, 4, "'halves': group_size is 128, expected 64 for t2"},
      {kHalves, 56, 2, 4, "'halves': flags are 0x2, 0x2 is not allowed for t2"},
      {kUp, 12, 2, 4, "'blk.0.ffn_up.weight': flags are 0x2, 0x2 is not allowed for t1"},
      {kHalves, 104, 4, 8, "'halves': scale_bytes is 4, expected 0 for scale_kind 1 and 33 rows"},
      {kHalves, 96, 64, 8, "'halves': scale_offset is 64, expected 0"},
      {kRows, 20, 128, 4, "'rows': group_size is 128, expected 0 for t1"},
      {kRows, 104, 4 * 33, 8,
       "'rows': scale_bytes is 132, expected 256 for scale_kind 2 and 33 rows"},
      {kRows, 56, 3, 4, "'rows': scale_bytes is 256, expected 4 for scale_kind 3 and 33 rows"},
      {kRows, 24, (1u << 24) + 1, 8,
       "'rows': dims[0] is 16777217, at most 2^24 is possible with activations per token"},
      {kOne, 104, 8, 8, "'one': scale_bytes is 8, expected 4 for scale_kind 3 and 2 rows"},
      {kToken, 60, 3, 4, "'token': activation_quant is 3, expected 1 or 2 for t2"},
  };
  for (const auto& c : cases) {
    Bytes bytes = copy_of(scales_file().span());
    std::memcpy(bytes.data() + record_at(bytes, c.tensor, c.field), &c.value, c.bytes);
    sign(bytes);
    const auto file = File::parse(bytes.span());
    ASSERT_FALSE(file) << c.message;
    EXPECT_EQ(file.error().code(), ErrorCode::damaged);
    EXPECT_EQ(file.error().message(), "tensor " + c.message);
  }
  Bytes bytes = copy_of(scales_file().span());
  const auto offset = get<std::uint64_t>(bytes, record_at(bytes, kRows, 96));
  put(bytes, record_at(bytes, kRows, 96), offset + 64);
  sign(bytes);
  EXPECT_EQ(File::parse(bytes.span()).error().message(),
            "tensor 'rows': scale_offset is " + std::to_string(offset + 64) + ", expected " +
                std::to_string(offset) + ": behind the body at a multiple of 64");
}

// The data section ends before the last scale.
TEST(ScalesFile, ScalesHaveToBeThere) {
  const Bytes whole = copy_of(scales_file().span());
  Bytes bytes = copy_of(whole.span().first(whole.size() - 64));
  const std::size_t at = 96 + 64 * 6 + 16;
  const auto data_bytes = get<std::uint64_t>(bytes, at) - 64;
  put(bytes, at, data_bytes);
  sign(bytes);
  const auto file = File::parse(bytes.span());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message(),
            "tensor 'one': 4 bytes of scales at " + std::to_string(data_bytes) +
                " of the data section, which has " + std::to_string(data_bytes));
}

// One change in the data section, as an offset from the tensor's body or from its scales; its
// digest made right again unless it is what the test is about.
std::vector<Finding> findings_after(std::size_t tensor, std::size_t field, std::size_t offset,
                                    std::uint32_t value, bool digest = true) {
  Bytes bytes = copy_of(scales_file().span());
  const auto at = [&](std::size_t f) {
    return 65536 + get<std::uint64_t>(bytes, record_at(bytes, tensor, f));
  };
  put(bytes, at(field) + offset, value);
  if (digest) {
    Xxh3Stream stream;
    stream.update(bytes.span().subspan(at(80), at(88) - 65536));
    stream.update(bytes.span().subspan(at(96), at(104) - 65536));
    put(bytes, record_at(bytes, tensor, 112), stream.digest());
  }
  return findings_in(std::move(bytes));
}

TEST(ScalesFile, VerifyChecksTheScales) {
  constexpr std::size_t kBody = 80, kScales = 96;
  constexpr const char* kInfinite = "scales or values that are infinite or not a number";
  constexpr const char* kPadding = "scales of padding rows that are not +0";
  expect_one(findings_after(kRows, kScales, 4 * 31, 0x7f800000),
             {std::string("tensor 'rows': ") + kInfinite, "1, the first at scale 31 of its array",
              "none"});
  expect_one(
      findings_after(kRows, kScales, 4 * 33, 0x80000000),
      {std::string("tensor 'rows': ") + kPadding, "1, the first at scale 33 of its array", "none"});
  expect_one(
      findings_after(kOne, kScales, 0, 0x7fc00000),
      {std::string("tensor 'one': ") + kInfinite, "1, the first at scale 0 of its array", "none"});
  // The second line of group 1 in block 0: rows 2 and 3 there; the padding row 33 in block 1.
  expect_one(
      findings_after(kHalves, kBody, 1152 + 64 + 4, 0x2c007c00),
      {std::string("tensor 'halves': ") + kInfinite, "1, the first at row 2, input 192", "none"});
  expect_one(
      findings_after(kHalves, kBody, 2 * 1152 + 64 + 2, 0x00000001),
      {std::string("tensor 'halves': ") + kPadding, "1, the first at row 33, input 64", "none"});
  // Without lines a group starts with its codes: all bits set stand for no weight.
  const auto unused = findings_after(kHalves, kBody, 128, 0xffffffff);
  ASSERT_FALSE(unused.empty());
  EXPECT_EQ(unused[0].where, "tensor 'halves': bytes with a code that stands for no weight");
  EXPECT_EQ(unused[0].found, "4, the first at byte 128 of its body");
}

TEST(ScalesFile, VerifyChecksDigestAndGaps) {
  const auto digest = findings_after(kRows, 96, 0, 0x3f800001, false);
  ASSERT_EQ(digest.size(), 1u);
  EXPECT_EQ(digest[0].where, "tensor 'rows': XXH3-64 of its bytes");
  expect_one(findings_after(kOne, 96, 8, 1),
             {"the bytes behind tensor 'one'",
              "1 at byte " + std::to_string(File::parse(scales_file().span())->data().size() - 56) +
                  " of the data section",
              "0"});
}

TEST(ScalesFile, TheWriterWantsEveryScale) {
  const TemporaryFolder folder;
  FileContents contents = sample_contents();
  TensorRecord tensor = contents.tensors[kUp];
  tensor.scale_kind = ScaleKind::per_row;
  contents.tensors = {tensor};
  contents.rotations.clear();
  contents.rotation_probes.clear();
  auto writer = Writer::create(folder.path() / "x.tsq", std::move(contents));
  ASSERT_TRUE(writer) << writer.error().message();
  const std::vector<std::byte> body(writer->contents().tensors[0].body_bytes);
  ASSERT_TRUE(writer->append(body));
  const std::vector<float> scales(32);
  const auto too_few = writer->end_tensor(std::span(scales).first(31), 0);
  ASSERT_FALSE(too_few);
  EXPECT_EQ(too_few.error().message(),
            "tensor 'blk.0.ffn_up.weight': 5120 body and 124 scale bytes were added, expected 5120 "
            "and 128");
  EXPECT_TRUE(writer->end_tensor(scales, 0));
}

}  // namespace
}  // namespace tsq::format
