// s34: its codec against blocks written by other programs and against FORMAT.md quad by quad; files
// that hold it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/half.h"
#include "base/hash.h"
#include "format/encodings.h"
#include "format/reader.h"
#include "format/verify.h"
#include "format_files.h"
#include "format_findings.h"

namespace tsq::format {
namespace {

using nlohmann::json;

const json& golden() {
  static const json blocks =
      json::parse(std::ifstream(std::string(TSQ_TEST_DATA) + "/golden-blocks.json"));
  return blocks["types"]["STQ1_0"];
}

// The code of -, 0 or +.
std::uint8_t code_of(char sign) { return sign == '-' ? 0 : sign == '0' ? 1 : 2; }

using Quad = std::array<std::uint8_t, 4>;

TEST(S34, QuadsAreThoseOfThePublishedTable) {
  const auto lanes = golden()["codebook"]["lanes"].get<std::string>();
  ASSERT_EQ(lanes.size(), 32u * 5 - 1);
  for (unsigned quad = 0; quad < 32; ++quad) {
    Quad expected;
    for (std::size_t p = 0; p < 4; ++p) expected[p] = code_of(lanes[5 * quad + p]);
    EXPECT_EQ(s34_codes(quad), expected) << quad;
    EXPECT_EQ(s34_quad(expected), quad);
  }
  EXPECT_EQ(s34_codes(6), (Quad{2, 1, 2, 0}));
  EXPECT_EQ(s34_quad({1, 1, 1, 1}), 0u);
}

// FORMAT.md's places, as a bit number in a group: of the low bit of a quad's nibble, of its sign.
std::size_t nibble_bit(std::size_t row, std::size_t quad) {
  for (std::size_t v = 0; v < 4; ++v) {
    for (std::size_t j = 0; j < 4; ++j) {
      const std::size_t byte = 64 + 128 * v + 4 * row + j;
      if (quad == 8 * v + j) return 8 * byte;
      if (quad == 8 * v + 4 + j) return 8 * byte + 4;
    }
  }
  std::abort();
}
std::size_t sign_bit(std::size_t row, std::size_t quad) {
  const std::size_t c = quad / 4, j = quad % 4;
  return 8 * (576 + 16 * c + (4 * row + j) / 8) + (4 * row + j) % 8;
}
void set_bits(std::vector<std::byte>& body, std::size_t group, std::size_t bit, unsigned value) {
  body[704 * group + bit / 8] |= static_cast<std::byte>(value << bit % 8);
}
void set_quad(std::vector<std::byte>& body, std::size_t group, std::size_t row, std::size_t quad,
              unsigned nibble, unsigned sign) {
  set_bits(body, group, nibble_bit(row, quad), nibble);
  set_bits(body, group, sign_bit(row, quad), sign);
}
void set_scale(std::vector<std::byte>& body, std::size_t group, std::size_t row,
               std::uint16_t bits) {
  std::memcpy(body.data() + 704 * group + 2 * row, &bits, 2);
}
// FORMAT.md's input of a lane.
std::size_t input_of(bool stride16, std::size_t quad, std::size_t p) {
  return stride16 ? 64 * (quad / 16) + quad % 16 + 16 * p : 4 * quad + p;
}

// A row of a body from each golden block: its nibbles and signs moved to where FORMAT.md has them.
TEST(S34, HoldsTheBlocksOfOtherPrograms) {
  const json& blocks = golden()["blocks"];
  ASSERT_GE(blocks.size(), 16u);
  ASSERT_LE(blocks.size(), 32u);
  const std::size_t rows = blocks.size();
  std::vector<std::byte> body(2 * 704);
  std::vector<std::uint8_t> codes(32 * 256, 1);
  std::vector<std::uint16_t> scales(32 * 2, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto hex = blocks[row]["hex"].get<std::string>();
    const auto byte = [&](std::size_t i) {
      return static_cast<unsigned>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    };
    const auto d = static_cast<std::uint16_t>(byte(40) | byte(41) << 8);
    const auto signs = blocks[row]["values_over_d"].get<std::string>();
    for (std::size_t quad = 0; quad < 64; ++quad)
      set_quad(body, quad / 32, row, quad % 32, byte(quad / 2) >> 4 * (quad % 2) & 15,
               byte(32 + quad / 8) >> quad % 8 & 1);
    for (std::size_t g = 0; g < 2; ++g) {
      set_scale(body, g, row, d);
      scales[2 * row + g] = d;
    }
    for (std::size_t i = 0; i < 256; ++i) codes[256 * row + i] = code_of(signs[i]);
  }

  const Shape shape{Encoding::s34, kFlagStride16, ScaleKind::per_group, rows, 256};
  ASSERT_EQ(body_bytes(shape), body.size());
  std::vector<std::byte> packed(body.size());
  pack_row_block(shape, codes.data(), scales.data(), packed.data());
  EXPECT_EQ(packed, body);
  float values[256];
  for (std::size_t row = 0; row < rows; ++row) {
    const auto d = static_cast<float>(blocks[row]["scale"].get<double>());
    decode_row(shape, {body}, row, values);
    for (std::size_t i = 0; i < 256; ++i)
      ASSERT_EQ(values[i], static_cast<float>(codes[256 * row + i] - 1) * d) << row << " " << i;
  }
  // The first block read as consecutive quads.
  const auto wrong = golden()["wrong_reading_of_random_0"]["values_over_d"].get<std::string>();
  decode_row({Encoding::s34, 0, ScaleKind::per_group, rows, 256}, {body}, 0, values);
  for (std::size_t i = 0; i < 256; ++i)
    ASSERT_EQ(values[i], static_cast<float>(code_of(wrong[i]) - 1)) << i;
}

class S34Unit : public testing::TestWithParam<bool> {
 protected:
  const bool stride16_ = GetParam();
  const std::uint32_t flags_ = stride16_ ? 4 : 0;
};

TEST_P(S34Unit, EveryQuadAndScaleLiesWhereFormatMdSays) {
  const Shape shape{Encoding::s34, flags_, ScaleKind::per_group, 32, 256};
  std::vector<std::uint8_t> codes(32 * 256, 1);
  std::vector<std::uint16_t> scales(32 * 2, 0);
  for (const std::size_t row : {0, 13, 31}) {
    for (std::size_t g = 0; g < 2; ++g) {
      for (std::size_t quad = 0; quad < 32; ++quad) {
        // 9 and 6 are the two halves of a nibble, each with each sign: 0 at lane 2, 0 at lane 1.
        for (const auto& [nibble, sign, lanes] :
             {std::tuple{9u, 0u, Quad{2, 0, 1, 2}}, {6u, 1u, Quad{0, 1, 0, 2}}}) {
          for (std::size_t p = 0; p < 4; ++p)
            codes[256 * row + 128 * g + input_of(stride16_, quad, p)] = lanes[p];
          scales[2 * row + g] = 0x1234;
          std::vector<std::byte> expected(2 * 704), body(2 * 704, std::byte{0xff});
          set_quad(expected, g, row, quad, nibble, sign);
          set_scale(expected, g, row, 0x1234);
          pack_row_block(shape, codes.data(), scales.data(), body.data());
          ASSERT_EQ(body, expected) << "row " << row << " quad " << quad;
          for (std::size_t other = 0; other < 32; ++other)
            ASSERT_EQ(s34_quad_at(body.data() + 704 * g + 64, row, other),
                      other == quad ? nibble + 16 * sign : 0u);
          std::fill(codes.begin(), codes.end(), 1);
          std::fill(scales.begin(), scales.end(), 0);
        }
      }
    }
  }
}

// Rows of random quads; padding stays as the caller gives it.
std::vector<std::uint8_t> random_codes(bool stride16, std::size_t rows, std::size_t cols,
                                       std::size_t stored) {
  std::mt19937 random(static_cast<unsigned>(rows * 10007 + cols));
  std::vector<std::uint8_t> codes((rows + 31) / 32 * 32 * stored, 1);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t quad = 0; quad < stored / 4; ++quad) {
      const std::size_t zero = random() % 4, first = 128 * (quad / 32);
      if (first + input_of(stride16, quad % 32, 0) >= cols) continue;
      for (std::size_t p = 0; p < 4; ++p)
        codes[row * stored + first + input_of(stride16, quad % 32, p)] =
            static_cast<std::uint8_t>(p == zero ? 1 : random() % 2 * 2);
    }
  }
  return codes;
}

TEST_P(S34Unit, UnpackAndDecodeRowGiveWhatWasPacked) {
  for (const std::size_t rows : {1, 3, 17, 32, 33}) {
    for (const std::size_t cols : {64, 128, 192, 256, 320, 640, 704, 1408}) {
      const Shape shape{Encoding::s34, flags_, ScaleKind::per_group, rows, cols};
      const std::size_t stored = (cols + 127) / 128 * 128, groups = stored / 128;
      const std::size_t blocks = (rows + 31) / 32, block = groups * 704;
      ASSERT_EQ(row_block_bytes(shape), block);
      ASSERT_EQ(body_bytes(shape), blocks * block);
      const auto codes = random_codes(stride16_, rows, cols, stored);
      std::vector<std::uint16_t> scales(blocks * 32 * groups, 0);
      for (std::size_t i = 0; i < rows * groups; ++i)
        scales[i] = static_cast<std::uint16_t>(1 + 7 * i);
      std::vector<std::byte> body(blocks * block);
      for (std::size_t b = 0; b < blocks; ++b) {
        pack_row_block(shape, &codes[32 * b * stored], &scales[32 * b * groups], &body[b * block]);
        std::vector<std::uint8_t> codes_back(32 * stored);
        std::vector<std::uint16_t> scales_back(32 * groups);
        EXPECT_TRUE(
            unpack_row_block(shape, &body[b * block], codes_back.data(), scales_back.data()));
        EXPECT_TRUE(std::equal(scales_back.begin(), scales_back.end(), &scales[32 * b * groups]));
        for (std::size_t i = 0; i < 32; ++i) {
          for (std::size_t col = 0; col < stored; ++col) {
            const bool padding = 32 * b + i >= rows || col >= cols;
            const std::size_t lane = stride16_ ? col % 64 / 16 : col % 4;
            const int expected = padding ? (lane == 0 ? 1 : 2) : codes[(32 * b + i) * stored + col];
            ASSERT_EQ(codes_back[i * stored + col], expected) << i << " " << col;
          }
        }
      }
      std::vector<float> values(cols);
      for (std::size_t row = 0; row < rows; ++row) {
        decode_row(shape, {body}, row, values.data());
        for (std::size_t col = 0; col < cols; ++col)
          ASSERT_EQ(values[col], static_cast<float>(codes[row * stored + col] - 1) *
                                     f16_to_f32(scales[row * groups + col / 128]))
              << row << " " << col;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Units, S34Unit, testing::Bool(), [](const auto& unit) {
  return unit.param ? std::string("Stride16") : std::string("Consecutive");
});

// --- files

// The sample with two tensors more: consecutive quads, 33 rows of 160 inputs, rotated; and stride
// 16, 2 rows of 192.
constexpr std::size_t kQuads = kSampleTensors, kStrided = kSampleTensors + 1;

FileContents s34_contents() {
  FileContents contents = sample_contents();
  TensorRecord tensor = contents.tensors[kQ];
  tensor.name = "quads";
  tensor.encoding = Encoding::s34;
  contents.tensors.push_back(tensor);
  tensor.name = "strided";
  tensor.flags = kFlagStride16;
  tensor.dims = {192, 2, 1, 1};
  tensor.input_rotation = kNoRotation;
  contents.tensors.push_back(tensor);
  contents.rotation_probes.push_back({.rotation = 0, .tensor = kQuads, .row = 32, .col = 77});
  return contents;
}

const Bytes& s34_file() {
  static const Bytes file = make_file(s34_contents(), sample_token_probe());
  return file;
}

TEST(S34File, IsOpenedAndSound) {
  const auto file = File::parse(s34_file().span());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->header().critical_features, 1u);
  EXPECT_EQ(file->tensors()[kQuads].body_bytes, 2 * 2 * 704u);
  EXPECT_EQ(file->tensors()[kStrided].body_bytes, 2 * 704u);
  EXPECT_EQ(file->tensors()[kQuads].group_size, 128u);
  EXPECT_EQ(file->tensors()[kQuads].zero_count, 33u * 160 / 4);
  EXPECT_EQ(file->tensors()[kStrided].zero_count, 2u * 192 / 4);
  const auto report = verify(*file);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->findings.empty()) << report->findings[0].where;
}

TEST(S34File, WrongFieldsAreNamed) {
  const struct {
    std::size_t tensor, field;
    std::uint32_t value;
    const char* message;
  } cases[] = {
      {kQuads, 24, 158,
       "tensor 'quads': dims[0] is 158, expected a multiple of 4 for s34: a quad is inputs alone "
       "or padding alone"},
      {kStrided, 24, 160,
       "tensor 'strided': dims[0] is 160, expected a multiple of 64 for s34 with stride 16: a quad "
       "is inputs alone or padding alone"},
      {kStrided, 12, 6, "tensor 'strided': flags are 0x6, 0x2 is not allowed for s34"},
      {kQ, 12, 4, "tensor 'blk.0.attn_q.weight': flags are 0x4, 0x4 is not allowed for t2"},
      {kQuads, 88, 2 * 2 * 704 - 1,
       "tensor 'quads': body_bytes is 2815, expected 2816 for s34 of 33 rows x 160 inputs"},
      {kQuads, 20, 64, "tensor 'quads': group_size is 64, expected 128 for s34"},
  };
  for (const auto& c : cases) {
    Bytes bytes = copy_of(s34_file().span());
    put(bytes, record_at(bytes, c.tensor, c.field), c.value);
    sign(bytes);
    const auto file = File::parse(bytes.span());
    ASSERT_FALSE(file) << c.message;
    EXPECT_EQ(file.error().code(), ErrorCode::damaged);
    EXPECT_EQ(file.error().message(), c.message);
  }
  Bytes bytes = copy_of(s34_file().span());
  put(bytes, 72, std::uint64_t{0});
  sign(bytes);
  const auto file = File::parse(bytes.span());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message(), "header: critical_features are 0x0, the tensors need 0x1");
}

// One change of a tensor's body, its digest made right again.
std::vector<Finding> findings_after(std::size_t tensor, std::size_t offset, std::uint16_t value) {
  Bytes bytes = copy_of(s34_file().span());
  const std::size_t body = 65536 + get<std::uint64_t>(bytes, record_at(bytes, tensor, 80));
  put(bytes, body + offset, value);
  const std::size_t n = get<std::uint64_t>(bytes, record_at(bytes, tensor, 88));
  put(bytes, record_at(bytes, tensor, 112), xxh3(bytes.span().subspan(body, n)));
  return findings_in(std::move(bytes));
}

TEST(S34File, VerifyChecksItsPadding) {
  const std::string quads = "tensor 'quads': ", strided = "tensor 'strided': ";
  const char* const what = "padding quads that are not nibble 0, sign 0";
  // Group 1 of block 0: inputs 160 on are padding, quad 8 there. Its nibble in row 2 is the low one
  // of byte 64 + 128 + 8, its sign bit 0 of byte 576 + 32 + 1.
  expect_one(findings_after(kQuads, 704 + 64 + 128 + 8, 0x0001),
             {quads + what, "1, the first at row 2, input 160", "none"});
  expect_one(findings_after(kQuads, 704 + 576 + 32 + 1, 0x0001),
             {quads + what, "1, the first at row 2, input 160", "none"});
  // Block 1 holds row 32 alone: row 33, quad 1.
  expect_one(findings_after(kQuads, 2 * 704 + 64 + 4 + 1, 0x0008),
             {quads + what, "1, the first at row 33, input 4", "none"});
  // Stride 16: group 1 has inputs 128 to 191; quad 16 starts at input 192. Row 1, high nibble none.
  expect_one(findings_after(kStrided, 704 + 64 + 2 * 128 + 4, 0x0002),
             {strided + what, "1, the first at row 1, input 192", "none"});
  expect_one(findings_after(kStrided, 704 + 64 + 4 * 2 + 1, 0x0f00),
             {strided + what, "1, the first at row 2, input 130", "none"});
  expect_one(findings_after(kStrided, 2 * 5, 0x8000),
             {strided + "scales of padding rows that are not +0", "1, the first at row 5, input 0",
              "none"});
  expect_one(findings_after(kStrided, 704 + 2, 0x7c00),
             {strided + "scales or values that are infinite or not a number",
              "1, the first at row 1, input 128", "none"});
}

TEST(S34File, VerifyChecksTheZeroCount) {
  for (const auto& [tensor, name, count] :
       {std::tuple{kQuads, "quads", 1320u}, {kStrided, "strided", 96u}}) {
    Bytes bytes = copy_of(s34_file().span());
    put(bytes, record_at(bytes, tensor, 72), std::uint64_t{count - 1});
    sign(bytes);
    const auto file = File::parse(bytes.span());
    ASSERT_TRUE(file);
    expect_one(verify(*file)->findings, {std::string("tensor '") + name + "': weights that are 0",
                                         std::to_string(count), std::to_string(count - 1)});
  }
}

}  // namespace
}  // namespace tsq::format
