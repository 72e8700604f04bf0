#include "format/verify.h"

#include <memory>
#include <string>

#include "arch/graph.h"
#include "base/errorf.h"
#include "commands.h"
#include "engine/token_probe.h"
#include "file_summary.h"
#include "model_file.h"
#include "support.h"

namespace tsq::tool {
namespace {

// Prints one line a check and counts the failures.
class Report {
 public:
  void ok(const std::string& check) { line("ok", check); }
  void skipped(const std::string& check) { line("skipped", check); }
  void failed(const std::string& check) {
    line("FAILED", check);
    ++failures_;
  }
  int failures() const { return failures_; }
  bool output_failed() const { return output_failed_; }

 private:
  void line(const char* verdict, const std::string& check) {
    output_failed_ = output_failed_ || !print(stringf("%-8s %s\n", verdict, check.c_str()));
  }
  int failures_ = 0;
  bool output_failed_ = false;
};

// The error of a check that could not be made.
Result<void> check_data(const format::File& file, Report& report) {
  ProgressBar bar("verify", ProgressBar::Unit::bytes);
  const auto checked = format::verify(file, [&](std::uint64_t done, std::uint64_t total) {
    bar.update(done, total);
    return true;
  });
  bar.clear();
  if (!checked) return checked.error();
  for (const auto& finding : checked->findings)
    report.failed(finding.where + ": found " + finding.found + ", expected " + finding.expected);
  if (checked->findings.empty()) {
    report.ok(stringf("%zu tensors, %s bytes: digests, codes, scales, padding",
                      file.tensors().size(), with_commas(file.data().size()).c_str()));
    report.ok(stringf("%zu rotation probes", file.rotation_probes().size()));
    if (const std::size_t n = file.optional_sections().size(); n > 0)
      report.ok(
          stringf("%zu optional sections that this build does not know: digests, padding", n));
  }
  return {};
}

// That the architecture's graph finds every weight, so that a file that passes also runs.
void check_graph(const format::File& file, Report& report) {
  const auto architecture = file.metadata().require_string("general.architecture");
  if (!architecture) return report.failed(architecture.error().message());
  const std::string name = printable(*architecture);
  if (!has_graph(*architecture)) return report.skipped("graph: tsq has none for '" + name + "'");
  if (const auto graph = make_graph(file); !graph) return report.failed(graph.error().message());
  report.ok("every weight has its place in the graph of '" + name + "'");
}

Result<void> check_probe(const std::string& path, const format::TokenProbe& probe, Report& report) {
  if (probe.state != format::TokenProbeState::present) {
    report.skipped("token probe: " + describe(probe));
    return {};
  }
  if (report.failures() > 0) {
    report.skipped("token probe: the data is damaged");
    return {};
  }
  ProgressBar bar("probe", ProgressBar::Unit::tokens);
  const auto checked = check_token_probe(path, probe, [&](int done, int total) {
    bar.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
    return true;
  });
  bar.clear();
  if (checked) {
    report.ok("token probe: " + describe(probe));
  } else if (checked.error().code() == ErrorCode::out_of_memory ||
             checked.error().code() == ErrorCode::io) {
    return checked.error();
  } else {
    report.failed("token probe: " + checked.error().message());
  }
  return {};
}

int verify(const std::string& path) {
  const auto opened = format::open(path);
  if (!opened) return fail(with_convert_hint(opened.error(), path));
  Report report;
  report.ok("header, sections and records");
  if (const auto done = check_data(opened->file, report); !done) return fail(done.error());
  check_graph(opened->file, report);
  if (const auto done = check_probe(path, opened->file.token_probe(), report); !done)
    return fail(done.error());
  if (report.output_failed()) return kFailure;
  if (report.failures() == 0) return kSuccess;
  return fail(
      errorf(ErrorCode::damaged, "%s: %d of the checks failed", path.c_str(), report.failures()));
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  const auto path = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("verify", "Check all of a .tsq file, and what its model says");
  command->alias("fsck");
  command->add_option("MODEL", *path, "a .tsq file")->required();
  command->callback([path, &exit_code] { exit_code = verify(*path); });
}

}  // namespace tsq::tool
