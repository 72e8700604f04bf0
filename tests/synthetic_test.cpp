// Models of real sizes with random weights, as make_synthetic writes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "format/probes.h"
#include "format/reader.h"
#include "format/verify.h"
#include "synthetic_model.h"
#include "temporary_folder.h"

namespace tsq {
namespace {

const test::SyntheticShape& shape_of(std::string_view name) {
  return *std::ranges::find(test::synthetic_shapes(), name, &test::SyntheticShape::name);
}

// The published sizes of Ternary-Bonsai 2 27B: 26,869,760,000 ternary weights.
TEST(SyntheticTest, Bonsai2IsAsLargeAsTheRealOne) {
  const auto size = test::synthetic_size(shape_of("bonsai2-27b"), {});
  ASSERT_TRUE(size) << size.error().message();
  EXPECT_EQ(size->ternary_weights, 26869760000u);
  EXPECT_LE(8.0 * static_cast<double>(size->ternary_bytes), 1.73 * 26869760000.0);
  EXPECT_LE(size->file_bytes, 5900000000u);
}

class SyntheticFile : public testing::Test {
 protected:
  void write(const test::SyntheticShape& shape) {
    const auto written = test::write_synthetic(path(), shape, {});
    ASSERT_TRUE(written) << written.error().message();
    const auto size = test::synthetic_size(shape, {});
    ASSERT_TRUE(size);
    EXPECT_EQ(std::filesystem::file_size(path()), size->file_bytes);
  }
  std::filesystem::path path() const { return folder_.path() / "model.tsq"; }
  TemporaryFolder folder_;
};

TEST_F(SyntheticFile, Bonsai2TinyIsSoundAndOfItsStructure) {
  write(shape_of("bonsai2-tiny"));
  const auto opened = format::open(path());
  ASSERT_TRUE(opened) << opened.error().message();
  const auto report = format::verify(opened->file);
  ASSERT_TRUE(report);
  for (const auto& finding : report->findings) ADD_FAILURE() << finding.where << finding.found;
  EXPECT_TRUE(format::check_rotation_probes(opened->file));

  std::map<std::uint32_t, std::size_t> widths;
  for (const auto& rotation : opened->file.rotations()) {
    EXPECT_EQ(rotation.block, 128u);
    EXPECT_FALSE(rotation.signs.empty());
    ++widths[rotation.width];
  }
  EXPECT_EQ(widths, (std::map<std::uint32_t, std::size_t>{{256, 1}, {384, 1}, {640, 1}}));

  std::uint64_t weights = 0, zeros = 0;
  std::map<format::Encoding, std::size_t> encodings;
  for (const auto& tensor : opened->file.tensors()) {
    ++encodings[tensor.encoding];
    EXPECT_EQ(format::is_ternary(tensor.encoding), tensor.input_rotation != format::kNoRotation);
    if (!format::is_ternary(tensor.encoding)) continue;
    weights += tensor.rows() * tensor.cols();
    zeros += tensor.zero_count;
  }
  // Of 4 layers 3 have a gated DeltaNet: 6 matrices, alpha and beta, 6 others; one has attention: 7
  // and 4; outside are 2 and a norm. By the same count 64 layers have 402, 96 and 353.
  EXPECT_EQ(encodings[format::Encoding::t1], 3 * 6 + 7 + 2u);
  EXPECT_EQ(encodings[format::Encoding::bf16], 3 * 2u);
  EXPECT_EQ(encodings[format::Encoding::f32], 3 * 6 + 4 + 1u);
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(weights), 0.328, 0.001);
  // A state fades.
  const auto& record = *opened->file.find("blk.0.ssm_a");
  std::vector<float> decays(record.cols());
  format::decode_row(record.shape(), opened->file.bytes(record), 0, decays.data());
  for (const float decay : decays) EXPECT_LT(decay, 0);
}

}  // namespace
}  // namespace tsq
