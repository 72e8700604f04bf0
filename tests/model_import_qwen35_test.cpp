// What an importer of qwen35 can get wrong, one defect at a time: none of them gives the logits of
// the un-rotated twin.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "convert/convert.h"
#include "import/blocks.h"
#include "import/gguf.h"
#include "models.h"
#include "temporary_folder.h"
#include "tsq/loader.h"
#include "tsq/session.h"

namespace tsq {
namespace {

namespace fs = std::filesystem;
using importer::Checkpoint;
using importer::Tensor;

class ModelImportQwen35 : public testing::Test {
 protected:
  // The worst error of the file's logits (f32 path) after this has been done to its import.
  double error(const std::string& file, const std::function<void(Checkpoint&)>& defect) const {
    const fs::path source[] = {fs::path(TSQ_TEST_DATA) / "qwen35" / file};
    auto opened = importer::open_gguf(source);
    if (!opened) throw std::runtime_error(opened.error().message());
    defect(opened->checkpoint);
    const fs::path target = folder_.path() / "model.tsq";
    const auto made = convert::convert_checkpoint(opened->checkpoint, target);
    if (!made) throw std::runtime_error(made.error().message());
    const auto model = Loader().load(target);
    if (!model) throw std::runtime_error(model.error().message());
    const test::Golden golden = test::read_golden(file);
    double worst = 0;
    for (const auto& prompt : golden.prompts) {
      auto session = Session::create(*model, {.activations = Activations::f32});
      const auto logits = session->append(prompt.tokens, Logits::all);
      if (!logits) throw std::runtime_error(logits.error().message());
      for (std::size_t k = 0; k < prompt.positions.size(); ++k) {
        worst =
            std::max(worst, test::logit_error(logits->data() + prompt.positions[k] * golden.vocab,
                                              golden.row(prompt.row + k), golden.vocab));
      }
    }
    return worst;
  }

  TemporaryFolder folder_;
};

Tensor& find(Checkpoint& checkpoint, std::string_view name) {
  return *std::ranges::find(checkpoint.tensors, name, &Tensor::name);
}

// Puts f32 values in the place of a tensor's.
void replace(Checkpoint& checkpoint, Tensor& tensor,
             const std::function<void(std::vector<float>& row)>& change) {
  const auto owned = std::make_shared<std::vector<float>>();
  std::vector<float> row(tensor.cols());
  for (std::uint64_t i = 0; i < tensor.rows(); ++i) {
    importer::decode_row(tensor, i, row.data());
    change(row);
    owned->insert(owned->end(), row.begin(), row.end());
  }
  tensor.type = importer::SourceType::f32;
  tensor.tiled_rows = tensor.tiled_cols = {};
  tensor.data = std::as_bytes(std::span(*owned));
  checkpoint.owned.push_back(owned);
}

// x H, orthonormal, of each block.
void transform(std::vector<float>& x, std::size_t block) {
  for (std::size_t h = 1; h < block; h *= 2) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if ((i & h) != 0) continue;
      const float a = x[i], b = x[i + h];
      x[i] = a + b;
      x[i + h] = a - b;
    }
  }
  for (float& value : x) value /= std::sqrt(static_cast<float>(block));
}

// W' S H S H: multiplied with H (s x) this gives what W' gives with s (H x).
void swap_signs_and_transform(Checkpoint& checkpoint, std::string_view name) {
  Tensor& tensor = find(checkpoint, name);
  const format::Rotation& rotation = checkpoint.rotations[tensor.rotation];
  replace(checkpoint, tensor, [&](std::vector<float>& row) {
    for (int twice = 0; twice < 2; ++twice) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if ((rotation.signs[i / 32] >> (i % 32) & 1) != 0) row[i] = -row[i];
      }
      transform(row, rotation.block);
    }
  });
}

struct Defect {
  const char* what;
  std::function<void(Checkpoint&)> make;
};

TEST_F(ModelImportQwen35, EveryDefectShowsInTheLogitsOfARotatedModel) {
  const auto not_grouped = [](const char* name) {
    return [=](Checkpoint& c) { find(c, name).tiled_rows = {}; };
  };
  const auto not_rotated = [](const char* name) {
    return [=](Checkpoint& c) { find(c, name).rotation = format::kNoRotation; };
  };
  const auto rotated = [](const char* name) {
    return
        [=](Checkpoint& c) { find(c, name).rotation = find(c, "blk.0.attn_qkv.weight").rotation; };
  };
  const auto transform_first = [](const char* name) {
    return [=](Checkpoint& c) { swap_signs_and_transform(c, name); };
  };
  const auto one_more = [](const char* name) {
    return [=](Checkpoint& c) {
      replace(c, find(c, name), [](std::vector<float>& row) {
        for (float& value : row) value += 1;
      });
    };
  };
  const Defect kDefects[] = {
      {"v of attn_qkv tiled", not_grouped("blk.0.attn_qkv.weight")},
      {"attn_gate tiled", not_grouped("blk.0.attn_gate.weight")},
      {"ssm_alpha tiled", not_grouped("blk.0.ssm_alpha.weight")},
      {"ssm_beta tiled", not_grouped("blk.0.ssm_beta.weight")},
      {"grouped columns of ssm_out grouped again",
       [](Checkpoint& c) {
         replace(c, find(c, "blk.0.ssm_out.weight"), [](std::vector<float>& row) {
           const importer::TiledHeads heads{0, 64, 2, 3};
           const std::vector<float> stored = row;
           for (std::size_t i = 0; i < row.size(); ++i) row[i] = stored[heads.stored(i)];
         });
       }},
      {"the transform before the signs, attn_qkv", transform_first("blk.0.attn_qkv.weight")},
      {"the transform before the signs, output", transform_first("output.weight")},
      {"the signs before the transform, embedding", transform_first("token_embd.weight")},
      {"rows of the embedding as they lie", not_rotated("token_embd.weight")},
      {"a head that is not rotated", not_rotated("output.weight")},
      {"alpha rotated", rotated("blk.0.ssm_alpha.weight")},
      {"beta rotated", rotated("blk.0.ssm_beta.weight")},
      {"1 + w twice, attn_norm", one_more("blk.0.attn_norm.weight")},
      {"1 + w twice, post_attention_norm", one_more("blk.1.post_attention_norm.weight")},
      {"1 + w of ssm_norm", one_more("blk.0.ssm_norm.weight")},
  };
  for (const char* file : {"qwen35_rot128.ptq1_0.gguf", "qwen35_rot128.pq2_0.gguf"}) {
    EXPECT_LE(error(file, [](Checkpoint&) {}), 1e-4) << file;
  }
  for (const Defect& defect : kDefects) {
    EXPECT_GT(error("qwen35_rot128.ptq1_0.gguf", defect.make), 1e-2) << defect.what;
  }
}

TEST_F(ModelImportQwen35, TiledColumnsShowInTheLogitsOfAPlainModel) {
  const char* const file = "qwen35_tiled.q2_0.gguf";
  EXPECT_LE(error(file, [](Checkpoint&) {}), 1e-4);
  EXPECT_GT(error(file, [](Checkpoint& c) { find(c, "blk.0.ssm_out.weight").tiled_cols = {}; }),
            1e-2);
}

}  // namespace
}  // namespace tsq
