#include "check_hadamard.h"

#include <algorithm>

#include "backend/tracing.h"
#include "base/errorf.h"
#include "engine/model_state.h"
#include "engine/session_hooks.h"
#include "log.h"
#include "support.h"

namespace tsq::tool {
namespace {

// Before and after the rotation; "-" for what there is not.
std::string two(bool first, double before, bool second, double after) {
  const auto text = [](bool known, double value) {
    return known ? stringf(" %9.4g", value) : stringf(" %9s", "-");
  };
  return text(first, before) + text(second, after);
}

std::string line(const TracedStage& stage) {
  const VectorStatistics &before = stage.before, &after = stage.after;
  const bool rotated = stage.rotation != nullptr, rounded = stage.quantised;
  std::string text = stringf("%-32s %6s", stage.name.c_str(),
                             rotated ? std::to_string(stage.rotation->block).c_str() : "-");
  text += two(true, before.rms(), rotated, after.rms());
  text += two(true, before.absmax(), rotated, after.absmax());
  text += two(true, before.crest(), rotated, after.crest());
  text += two(rounded, 100 * before.int8_error(), rounded && rotated, 100 * after.int8_error());
  text += rotated ? stringf(" %8.3g", stage.deviation) : stringf(" %8s", "-");
  return text + (stage.sound() ? "" : "  WRONG");
}

void print_table(const ActivationTrace& trace) {
  info("%-32s %6s %19s %19s %19s %19s", "", "", "rms", "absmax", "crest", "int8 error %");
  std::string heads = stringf("%-32s %6s", "stage", "block");
  for (int i = 0; i < 4; ++i) heads += stringf(" %9s %9s", "before", "after");
  info("%s %8s", heads.c_str(), "check");
  for (const TracedStage& stage : trace.stages()) info("%s", line(stage).c_str());
  info(
      "check: the rotation's largest deviation from its definition in double, over what f32 may "
      "round away");
}

}  // namespace

Result<void> check_hadamard(const Model& model, const EngineOptions& options,
                            std::span<const Token> tokens) {
  if (model.state().opened.file.rotations().empty()) {
    info_fact("rotation", "none: the model's weights are not rotated", {});
    return {};
  }
  ActivationTrace trace;
  SessionOptions wanted = session_options(options);
  wanted.context = static_cast<std::int32_t>(tokens.size());
  SessionHooks hooks;
  hooks.trace = &trace;
  auto session = tsq::create_session(model, wanted, hooks);
  if (!session) return session.error();
  ProgressBar bar("rotations", ProgressBar::Unit::tokens);
  const auto read =
      session->append(tokens, Logits::last, [&](std::int32_t done, std::int32_t total) {
        bar.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
        return !interrupted();
      });
  bar.clear();
  if (!read) return read.error();
  print_table(trace);
  const auto wrong = std::ranges::find_if_not(trace.stages(), &TracedStage::sound);
  if (wrong == trace.stages().end()) {
    info_fact("rotations", "sound: every check is below 1", {});
    return {};
  }
  return errorf(ErrorCode::numeric,
                "%s: the rotation is not what its definition says (%g times "
                "what f32 may round away)",
                wrong->name.c_str(), wrong->deviation);
}

}  // namespace tsq::tool
