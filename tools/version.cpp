#include "version.h"

#include <span>

#include "base/errorf.h"
#include "kernels/dispatch.h"

namespace tsq::tool {
namespace {

std::string names(std::span<const kernels::Isa> isas) {
  std::string text;
  for (const kernels::Isa isa : isas) {
    if (!text.empty()) text += ", ";
    text += kernels::isa_name(isa);
  }
  return text;
}

}  // namespace

std::string version_text() {
  const kernels::Choice& choice = kernels::chosen();
  const std::string chosen = choice.kernels == nullptr
                                 ? "none: " + printable(choice.error, 400)
                                 : std::string(kernels::isa_name(choice.kernels->isa));
  return stringf("tsq %s\n", kVersion) +
         stringf("commit    %s\n", *kCommit == '\0' ? "unknown" : kCommit) +
         stringf("compiler  %s, %s\n", kCompiler, kBuildType) +
         stringf("levels    %s\n", names(kernels::built_isas()).c_str()) +
         stringf("this CPU  %s\n", names(kernels::supported_isas()).c_str()) +
         stringf("chosen    %s", chosen.c_str());
}

}  // namespace tsq::tool
