// The tiny models of tests/data/models and tests/data/qwen35: converted once a process, with their
// golden logits.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tsq/model.h"

namespace tsq::test {

// One prompt of NAME.json: logits of position positions[k] are row `row` + k.
struct GoldenPrompt {
  std::vector<Token> tokens;
  std::vector<std::size_t> positions;
  std::size_t row;
};

struct Golden {
  std::size_t vocab;
  std::vector<GoldenPrompt> prompts;
  std::vector<float> logits;

  const float* row(std::size_t i) const { return logits.data() + i * vocab; }
};

// The golden values that serve <file>: of the part of its name before the dot.
Golden read_golden(const std::string& file);

// The .tsq made from <file> (or folder), ternary weights as t2 or by the fixed
// rule: t1, or t2 where t1 cannot hold them.
std::filesystem::path converted(const std::string& file, bool t2 = false);

// The same, opened.
Model open_model(const std::string& file, bool t2 = false);

// Every .gguf and every folder of models.
std::vector<std::string> all_models();

// max |a - b| / max |b|: the error metric of every comparison of logits.
double logit_error(const float* a, const float* b, std::size_t n);

}  // namespace tsq::test
