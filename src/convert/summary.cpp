#include "convert/summary.h"

#include <algorithm>

namespace tsq::convert {
namespace {

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// As much as now where that encoding cannot hold it.
std::uint64_t bytes_as(const format::TensorRecord& record, format::Encoding encoding) {
  format::Shape shape = record.shape();
  if ((shape.flags & format::kFlagHalfGroups) == 0) shape.encoding = encoding;
  return format::body_bytes(shape).value_or(0) + format::scale_bytes(shape).value_or(0);
}

EncodingTotal& total_of(std::vector<EncodingTotal>& totals, format::Encoding encoding) {
  const auto place = std::lower_bound(
      totals.begin(), totals.end(), encoding,
      [](const EncodingTotal& total, format::Encoding e) { return total.encoding < e; });
  if (place != totals.end() && place->encoding == encoding) return *place;
  return *totals.insert(place, EncodingTotal{.encoding = encoding});
}

}  // namespace

double Summary::bits_per_weight() const { return 8 * ratio(weight_bytes, weights); }
double Summary::bits_per_ternary_weight() const {
  return 8 * ratio(ternary_bytes, ternary_weights);
}
double Summary::zero_rate() const { return ratio(ternary_zeros, ternary_weights); }

Summary summarize(const importer::Checkpoint& checkpoint, const format::FileContents& contents,
                  std::span<const Fate> fates, std::uint64_t file_bytes,
                  const format::TokenProbe& probe) {
  Summary summary;
  summary.file_bytes = file_bytes;
  for (std::size_t i = 0; i < contents.tensors.size(); ++i) {
    const format::TensorRecord& record = contents.tensors[i];
    const std::uint64_t weights = record.rows() * record.cols();
    const std::uint64_t bytes = record.body_bytes + record.scale_bytes;
    EncodingTotal& total = total_of(summary.encodings, record.encoding);
    total.tensors += 1;
    total.weights += weights;
    total.bytes += bytes;
    summary.weights += weights;
    summary.weight_bytes += bytes;
    if (format::is_ternary(record.encoding)) {
      summary.ternary_weights += weights;
      summary.ternary_bytes += bytes;
      summary.ternary_zeros += record.zero_count;
      summary.ternary_bytes_as_t1 += bytes_as(record, format::Encoding::t1);
      summary.ternary_bytes_as_t2 += bytes_as(record, format::Encoding::t2);
    }
    if (fates[i] == Fate::widened) ++summary.widened_tensors, summary.widened_bytes += bytes;
    if (fates[i] == Fate::narrowed) ++summary.narrowed_tensors;
    if (fates[i] == Fate::as_q4) ++summary.ternary_as_q4;
    if (fates[i] == Fate::recognised) ++summary.recognised_tensors;
    if (record.input_rotation != format::kNoRotation) ++summary.rotated_tensors;
  }
  summary.rotations = contents.rotations;
  summary.has_tokenizer = !contents.tokenizer.empty();
  summary.no_tokenizer = checkpoint.no_vocabulary;
  summary.dropped_merges = checkpoint.dropped_merges;
  summary.token_probe = probe;
  summary.warnings = checkpoint.warnings;
  return summary;
}

}  // namespace tsq::convert
