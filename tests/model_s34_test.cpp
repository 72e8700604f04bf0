// A whole model with s34: the same bits as the same weights give as t1, at every CPU level.
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "convert/convert.h"
#include "engine/load_hooks.h"
#include "engine/session_hooks.h"
#include "import/blocks.h"
#include "import/gguf.h"
#include "kernels/dispatch.h"
#include "temporary_folder.h"
#include "tsq/loader.h"

namespace tsq {
namespace {

namespace fs = std::filesystem;

// The tensor as PQ2_0 (fp16 scale, 32 bytes of four codes), its weights changed so that each quad
// holds one zero.
std::vector<std::byte> with_quads(const importer::Tensor& tensor, bool stride16) {
  std::vector<std::byte> out;
  std::vector<std::uint8_t> codes(tensor.cols());
  std::vector<std::uint16_t> scales(tensor.cols() / 128);
  for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
    EXPECT_TRUE(importer::decode_ternary_row(tensor, row, codes.data(), scales.data()));
    for (std::size_t quad = 0; quad < tensor.cols() / 4; ++quad) {
      const std::size_t q = quad % 16, zero = (row + quad) * 7 / 3 % 4;
      for (std::size_t p = 0; p < 4; ++p) {
        std::uint8_t& code = codes[quad / 16 * 64 + (stride16 ? q + 16 * p : 4 * q + p)];
        if (p == zero) {
          code = 1;
        } else if (code == 1) {
          code = static_cast<std::uint8_t>((row + q) % 2 * 2);
        }
      }
    }
    for (std::size_t i = 0; i < codes.size(); i += 4) {
      if (i % 128 == 0) {
        out.push_back(static_cast<std::byte>(scales[i / 128] & 255));
        out.push_back(static_cast<std::byte>(scales[i / 128] >> 8));
      }
      out.push_back(static_cast<std::byte>(codes[i] | codes[i + 1] << 2 | codes[i + 2] << 4 |
                                           codes[i + 3] << 6));
    }
  }
  return out;
}

TEST(S34Model, GivesTheBitsOfT1) {
  const TemporaryFolder folder;
  const fs::path sources[] = {fs::path(TSQ_TEST_DATA) / "models/qwen3_rot128_wide.ptq1_0.gguf"};
  auto source = importer::open_gguf(sources);
  ASSERT_TRUE(source) << source.error().message();
  std::vector<std::vector<std::byte>> data;
  for (importer::Tensor& tensor : source->checkpoint.tensors) {
    if (!importer::is_ternary(tensor.type)) continue;
    data.push_back(with_quads(tensor, data.size() % 2 != 0));
    tensor.type = importer::SourceType::pq2_0;
    tensor.data = data.back();
  }
  ASSERT_GT(data.size(), 2u);
  std::vector<Model> models;
  for (const auto encoding : {convert::TernaryEncoding::t1, convert::TernaryEncoding::automatic}) {
    const fs::path target = folder.path() / std::to_string(models.size());
    const auto made =
        convert::convert_checkpoint(source->checkpoint, target, {.encoding = encoding});
    ASSERT_TRUE(made) << made.error().message();
    const bool s34 = encoding == convert::TernaryEncoding::automatic;
    std::size_t tensors = 0;
    for (const auto& total : made->encodings)
      if (total.encoding == (s34 ? format::Encoding::s34 : format::Encoding::t1))
        tensors = total.tensors;
    EXPECT_EQ(tensors, data.size());
    auto model = Loader().load(target);
    ASSERT_TRUE(model) << model.error().message();
    models.push_back(std::move(*model));
  }

  // One token takes the kernels of one column, eleven those of many.
  const std::vector<Token> tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
  const auto logits = [&](const Model& model, Activations activations, kernels::Isa isa) {
    auto session = create_session(model, {.activations = activations},
                                  {.kernels = kernels::table(isa), .threads = 2, .observer = {}});
    EXPECT_TRUE(session);
    std::vector<float> all;
    for (const std::span<const Token> part :
         {std::span<const Token>(tokens), std::span<const Token>(tokens).first(1)}) {
      const auto got = session->append(part, Logits::all);
      EXPECT_TRUE(got);
      all.insert(all.end(), got->begin(), got->end());
    }
    return all;
  };
  for (const Activations activations : {Activations::int8, Activations::f32}) {
    const auto expected = logits(models[0], activations, kernels::Isa::scalar);
    for (const kernels::Isa isa : kernels::supported_isas()) {
      EXPECT_EQ(logits(models[1], activations, isa), expected) << kernels::isa_name(isa);
      // Repacked for this level; every level runs it.
      const kernels::Kernels* const level = kernels::table(isa);
      const auto repacked =
          load_model(folder.path() / "1", {.repack = Repack::automatic}, {.kernels = level});
      ASSERT_TRUE(repacked) << repacked.error().message();
      const bool has_form = level->s34_best != kernels::PackedForm::none;
      EXPECT_EQ(repacked->repacked().tensors, has_form ? data.size() : 0);
      for (const kernels::Isa any : kernels::supported_isas()) {
        EXPECT_EQ(logits(*repacked, activations, any), expected) << kernels::isa_name(any);
      }
    }
  }
}

}  // namespace
}  // namespace tsq
