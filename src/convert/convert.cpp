#include "convert/convert.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <system_error>

#include "base/errorf.h"
#include "base/thread_pool.h"
#include "convert/plan.h"
#include "convert/rotation_probes.h"
#include "convert/write_tensor.h"
#include "format/probes.h"
#include "format/reader.h"
#include "import/blocks.h"
#include "import/open.h"

namespace tsq::convert {
namespace {

Result<void> write_tensors(format::Writer& writer, const importer::Checkpoint& checkpoint,
                           const ConvertOptions& options) {
  Progress progress = {};
  for (const importer::Tensor& tensor : checkpoint.tensors) {
    progress.bytes_total += tensor.rows() * importer::row_bytes(tensor.type, tensor.cols());
  }
  const auto advance = [&](std::uint64_t bytes) -> Result<void> {
    progress.bytes_done += bytes;
    if (!options.progress || options.progress(progress)) return {};
    return errorf(ErrorCode::cancelled, "cancelled");
  };
  ThreadPool pool(std::max(options.threads, 1));
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    progress.tensor = checkpoint.tensors[i].name;
    if (const auto go_on = advance(0); !go_on) return go_on;
    const auto written =
        write_tensor(writer, checkpoint.tensors[i], writer.contents().tensors[i], pool, advance);
    if (!written) return written;
  }
  return {};
}

// The reader's opinion of what was written, and its size.
Result<std::uint64_t> check_file(const std::filesystem::path& temporary,
                                 const ConvertOptions& options) {
  const auto opened = format::open(temporary);
  if (!opened) return opened.error();
  if (const auto probes = format::check_rotation_probes(opened->file); !probes) {
    return probes.error();
  }
  if (options.check_model) {
    if (const auto usable = options.check_model(opened->file); !usable) return usable.error();
  }
  return opened->file.file_bytes();
}

// Random weights give about ln(vocabulary) a token; so do a wrong rotation and a wrong graph.
Result<void> check_likelihood(const format::TokenProbe& probe, std::uint32_t vocabulary,
                              bool allow_random) {
  if (probe.state != format::TokenProbeState::present || allow_random) return {};
  const double limit = 0.9 * std::log(static_cast<double>(vocabulary));
  if (probe.mean_nll <= limit) return {};
  return errorf(ErrorCode::damaged,
                "the model predicts a plain text no better than chance: %.3f nats a token, "
                "expected at most %.3f (0.9 ln %u); random weights need --allow-random",
                probe.mean_nll, limit, vocabulary);
}

// Whether the file computes the same bits as its source: no value changed, and no tensor became
// ternary, which would have its activations rounded.
bool computes_the_same(std::span<const Fate> fates) {
  return std::ranges::all_of(fates,
                             [](Fate fate) { return fate == Fate::kept || fate == Fate::widened; });
}

// Of the file, once its parts have been moved.
struct Facts {
  std::uint32_t vocab_size;
  bool has_tokenizer;
};

Result<format::TokenProbe> make_token_probe(const importer::Checkpoint& checkpoint,
                                            std::span<const Fate> fates, const Facts& facts,
                                            const std::filesystem::path& temporary,
                                            const ConvertOptions& options) {
  format::TokenProbe probe;
  if (!options.token_probe) {
    const auto& kept = checkpoint.token_probe;
    if (kept && kept->state == format::TokenProbeState::present && computes_the_same(fates)) {
      return *kept;
    }
    probe.state = format::TokenProbeState::not_asked;
    return probe;
  }
  if (!facts.has_tokenizer) {
    probe.state = format::TokenProbeState::no_tokenizer;
    return probe;
  }
  auto made = options.token_probe(temporary);
  if (!made) return made;
  const auto likely = check_likelihood(*made, facts.vocab_size, options.allow_random);
  if (!likely) return likely.error();
  return made;
}

Result<Summary> write_file(importer::Checkpoint& checkpoint, const std::filesystem::path& target,
                           const ConvertOptions& options) {
  auto planned = plan(checkpoint, options.encoding, options.dense);
  if (!planned) return planned.error();
  checkpoint.vocabulary.reset();  // the section has all of it, and it may be large
  auto rotation_probes = rotation_probe_places(checkpoint);
  planned->contents.rotation_probes = rotation_probes;
  const Facts facts = {planned->contents.header.vocab_size, !planned->contents.tokenizer.empty()};

  auto writer = format::Writer::create(target, std::move(planned->contents));
  if (!writer) return writer.error();
  if (const auto written = write_tensors(*writer, checkpoint, options); !written) {
    return written.error();
  }
  fill_rotation_probes(checkpoint, writer->contents().tensors, planned->fates, rotation_probes);
  writer->set_rotation_probes(std::move(rotation_probes));
  if (const auto sealed = writer->seal({}); !sealed) return sealed.error();
  const auto file_bytes = check_file(writer->temporary_path(), options);
  if (!file_bytes) return file_bytes.error();

  const auto probe =
      make_token_probe(checkpoint, planned->fates, facts, writer->temporary_path(), options);
  if (!probe) return probe.error();
  if (const auto sealed = writer->seal(*probe); !sealed) return sealed.error();
  Summary summary = summarize(checkpoint, writer->contents(), planned->fates, *file_bytes, *probe);
  summary.beyond_f16 = std::move(planned->beyond_f16);
  if (const auto committed = writer->commit(); !committed) return committed.error();
  return summary;
}

Result<void> check_target(std::span<const std::filesystem::path> sources,
                          const std::filesystem::path& target) {
  for (const auto& source : sources) {
    std::error_code ignored;  // of a target that does not exist yet
    if (!std::filesystem::equivalent(source, target, ignored)) continue;
    return errorf(ErrorCode::invalid_argument,
                  "the target is the source itself, expected another file")
        .at(target.string());
  }
  return {};
}

}  // namespace

Result<Summary> convert_checkpoint(importer::Checkpoint checkpoint,
                                   const std::filesystem::path& target,
                                   const ConvertOptions& options) try {
  return write_file(checkpoint, target, options);
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "out of memory while converting");
} catch (const std::system_error& e) {
  return errorf(ErrorCode::io, "%s", e.what());
}

Result<Summary> convert(std::span<const std::filesystem::path> sources,
                        const std::filesystem::path& target, const ConvertOptions& options) {
  if (const auto other = check_target(sources, target); !other) return other.error();
  auto opened = importer::open(sources, options.layouts);
  if (!opened) return opened.error();
  if (const auto other = check_target(opened->paths, target); !other) return other.error();
  return convert_checkpoint(std::move(opened->checkpoint), target, options);
}

}  // namespace tsq::convert
