#include "file_summary.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/errorf.h"
#include "format/tokenizer_section.h"
#include "support.h"

namespace tsq::tool {
namespace {

double bits_each(std::uint64_t bytes, std::uint64_t weights) {
  return 8 * static_cast<double>(bytes) / static_cast<double>(weights);
}

std::string line(const char* label, const std::string& value) {
  return stringf("%-13s %s\n", label, value.c_str());
}

std::string architecture_text(const format::File& file) {
  const auto& header = file.header();
  const auto name = file.metadata().require_string("general.architecture");
  std::string text = name ? printable(*name) : "unnamed";
  text += stringf(", %u layers, hidden size %u, vocabulary %u", header.num_layers,
                  header.hidden_size, header.vocab_size);
  if (!name) return text;
  const auto context = file.metadata().require_u64(std::string(*name) + ".context_length");
  if (context) text += ", context " + std::to_string(*context);
  return text;
}

std::string rotations_text(const format::File& file) {
  if (file.rotations().empty()) return "none";
  std::map<std::string, int> kinds;
  for (const auto& rotation : file.rotations()) ++kinds[describe(rotation)];
  std::string text;
  for (const auto& [kind, count] : kinds) {
    if (!text.empty()) text += "; ";
    text += kind;
    if (count > 1) text += stringf(" (%d times)", count);
  }
  return text + stringf("; %zu probes", file.rotation_probes().size());
}

// What is not one scale a group of 128, of weights and of activations; empty where all is.
std::string scales_text(const format::File& file) {
  std::map<std::string, int> kinds;
  for (const auto& tensor : file.tensors()) {
    const bool per_token = tensor.activation_quant == format::ActivationQuant::per_token;
    const std::string name = scale_name(tensor.shape());
    if (!format::is_ternary(tensor.encoding) || (name == "group" && !per_token)) continue;
    ++kinds["per " + name + (per_token ? ", activations per token" : "")];
  }
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += stringf("%s%s (%d tensors)", text.empty() ? "" : "; ", kind.c_str(), count);
  return text;
}

std::string tokenizer_text(const format::File& file) {
  if (file.tokenizer_section().empty()) return "none";
  const auto view =
      format::TokenizerView::parse(file.tokenizer_section(), file.header().vocab_size);
  if (!view) return view.error().message();
  return stringf("byte-level BPE, %u tokens", view->size());
}

}  // namespace

double FileSummary::bits_per_weight() const { return bits_each(file_bytes, parameters); }
double FileSummary::ternary_bits_per_weight() const {
  return bits_each(ternary_bytes, ternary_weights);
}
double FileSummary::zero_rate() const {
  return static_cast<double>(ternary_zeros) / static_cast<double>(ternary_weights);
}

FileSummary summarise(const format::File& file) {
  FileSummary sum;
  sum.file_bytes = file.file_bytes();
  for (const auto& tensor : file.tensors()) {
    const std::uint64_t weights = tensor.rows() * tensor.cols();
    sum.parameters += weights;
    if (!format::is_ternary(tensor.encoding)) continue;
    sum.ternary_weights += weights;
    sum.ternary_bytes += tensor.body_bytes + tensor.scale_bytes;
    sum.ternary_zeros += tensor.zero_count;
  }
  return sum;
}

const char* quant_type_name(format::QuantType type) {
  switch (type) {
    case format::QuantType::dense:
      return "dense";
    case format::QuantType::ternary_hadamard:
      return "ternary_hadamard";
    case format::QuantType::ternary:
      return "ternary";
    case format::QuantType::sparse_ternary:
      return "sparse_ternary";
    case format::QuantType::mixed:
      return "mixed";
  }
  return "unknown";
}

const char* scale_name(const format::Shape& shape) {
  switch (shape.scale_kind) {
    case format::ScaleKind::per_group:
      return format::scale_lines(shape) == 2 ? "half group" : "group";
    case format::ScaleKind::per_row:
      return "row";
    case format::ScaleKind::per_tensor:
      return "tensor";
    case format::ScaleKind::none:
      break;
  }
  return "-";
}

const char* activations_name(format::ActivationQuant quant) {
  switch (quant) {
    case format::ActivationQuant::per_group:
      return "group";
    case format::ActivationQuant::per_token:
      return "token";
    case format::ActivationQuant::none:
      break;
  }
  return "-";
}

std::string describe(const format::Rotation& rotation) {
  return stringf("block %u over %u, %s", rotation.block, rotation.width,
                 rotation.signs.empty() ? "no signs" : "signs");
}

std::string describe(const format::TokenProbe& probe) {
  switch (probe.state) {
    case format::TokenProbeState::present:
      return stringf("mean NLL %.4f over %zu tokens, %zu greedy ids", probe.mean_nll,
                     probe.tokens.size(), probe.greedy.size());
    case format::TokenProbeState::not_asked:
      return "none (left out when the file was made)";
    case format::TokenProbeState::no_graph:
      return "none (tsq had no graph for the architecture)";
    case format::TokenProbeState::no_tokenizer:
      return "none (tsq had no tokenizer for the model)";
    case format::TokenProbeState::empty:
      break;
  }
  return "none (the file was never finished)";
}

std::string summary_text(const format::File& file) {
  const FileSummary sum = summarise(file);
  std::string text;
  text += line("name", printable(file.header().model_name));
  text += line("architecture", architecture_text(file));
  text += line("quantisation", quant_type_name(file.header().quant_type));
  text += line("file", with_commas(sum.file_bytes) + " bytes = " + human_bytes(sum.file_bytes) +
                           " = " + human_bytes_binary(sum.file_bytes));
  text += line("parameters", with_commas(sum.parameters) + ", " + with_commas(sum.ternary_weights) +
                                 " of them ternary");
  if (sum.parameters > 0)
    text += line("bits/weight", stringf("%.3f over the whole file", sum.bits_per_weight()));
  if (sum.ternary_weights > 0)
    text += line("", stringf("%.3f over the ternary weights, %.1f %% of them zero",
                             sum.ternary_bits_per_weight(), 100 * sum.zero_rate()));
  if (const auto scales = scales_text(file); !scales.empty()) text += line("scales", scales);
  text += line("rotation", rotations_text(file));
  text += line("tokenizer", tokenizer_text(file));
  text += line("token probe", describe(file.token_probe()));
  return text;
}

}  // namespace tsq::tool
