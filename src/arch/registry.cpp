// Architecture name -> graph.
#include <algorithm>
#include <string>

#include "arch/decoder.h"
#include "base/errorf.h"

namespace tsq {
namespace {

struct Architecture {
  std::string_view name;
  Result<std::unique_ptr<Graph>> (*make)(const format::File&, const WeightHook&);
};

constexpr Architecture kArchitectures[] = {
    {"llama", make_llama},
    {"qwen3", make_qwen3},
    {"qwen35", make_qwen35},
};

const Architecture* find(std::string_view name) {
  const auto* const found = std::ranges::find(kArchitectures, name, &Architecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
}

}  // namespace

bool has_graph(std::string_view architecture) { return find(architecture) != nullptr; }

Result<std::unique_ptr<Graph>> make_graph(const format::File& file, const WeightHook& hook) {
  const auto name = file.metadata().require_string("general.architecture");
  if (!name) return name.error();
  if (const Architecture* architecture = find(*name)) return architecture->make(file, hook);
  std::string known;
  for (const Architecture& a : kArchitectures) {
    known += (known.empty() ? "" : ", ") + std::string(a.name);
  }
  return errorf(ErrorCode::unsupported, "architecture '%s' has no graph in tsq (there are: %s)",
                printable(*name).c_str(), known.c_str());
}

}  // namespace tsq
