#include "models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convert/convert.h"
#include "temporary_folder.h"
#include "tsq/loader.h"

namespace tsq::test {
namespace {

namespace fs = std::filesystem;

// Where the models are, each with its golden values.
const fs::path kFolders[] = {fs::path(TSQ_TEST_DATA) / "models",
                             fs::path(TSQ_TEST_DATA) / "qwen35"};

fs::path in_its_folder(const std::string& file) {
  return (fs::exists(kFolders[1] / file) ? kFolders[1] : kFolders[0]) / file;
}

const fs::path& scratch_folder() {
  static const TemporaryFolder folder;
  return folder.path();
}

}  // namespace

Golden read_golden(const std::string& file) {
  const std::string stem = file.substr(0, file.find('.'));
  const fs::path path = in_its_folder(stem + ".json");
  std::ifstream text(path);
  const auto json = nlohmann::json::parse(text);
  Golden golden{json.at("vocab"), {}, {}};
  for (const auto& prompt : json.at("prompts")) {
    golden.prompts.push_back({prompt.at("tokens"), prompt.at("positions"), prompt.at("row")});
  }
  golden.logits.resize(golden.vocab * json.at("rows").get<std::size_t>());
  std::ifstream in(path.parent_path() / json.at("logits").get<std::string>(), std::ios::binary);
  in.read(reinterpret_cast<char*>(golden.logits.data()),
          static_cast<std::streamsize>(golden.logits.size() * sizeof(float)));
  EXPECT_TRUE(in) << stem;
  return golden;
}

fs::path converted(const std::string& file, bool t2) {
  const fs::path target = scratch_folder() / (file + (t2 ? ".t2" : ".auto") + ".tsq");
  if (fs::exists(target)) return target;
  const std::vector<fs::path> sources = {in_its_folder(file)};
  const auto made = convert::convert(
      sources, target,
      {.encoding = t2 ? convert::TernaryEncoding::t2 : convert::TernaryEncoding::automatic});
  EXPECT_TRUE(made) << (made ? "" : made.error().message());
  return target;
}

Model open_model(const std::string& file, bool t2) {
  auto model = Loader().load(converted(file, t2));
  if (!model) {
    ADD_FAILURE() << model.error().message();
    std::abort();
  }
  return std::move(*model);
}

std::vector<std::string> all_models() {
  std::vector<std::string> files;
  for (const fs::path& folder : kFolders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".gguf" || entry.is_directory()) {
        files.push_back(entry.path().filename().string());
      }
    }
  }
  std::ranges::sort(files);
  return files;
}

double logit_error(const float* a, const float* b, std::size_t n) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= difference)) difference = d;  // a NaN is kept
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return difference / largest;
}

}  // namespace tsq::test
