#include <nlohmann/json.hpp>
#include <vector>

#include "base/hash.h"
#include "file_summary.h"
#include "format/tokenizer_section.h"
#include "import/blocks.h"
#include "inspect.h"

namespace tsq::tool {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json value_json(const Value& value) {
  switch (value.type()) {
    case ValueType::string:
      return or_null(value.as_string());
    case ValueType::boolean:
      return or_null(value.as_bool());
    case ValueType::f32:
    case ValueType::f64:
      return or_null(value.as_f64());
    case ValueType::array:
      break;
    default:
      return value.as_u64() ? or_null(value.as_u64()) : or_null(value.as_i64());
  }
  switch (value.element_type()) {
    case ValueType::string:
      return or_null(value.as_strings());
    case ValueType::f32:
    case ValueType::f64:
      return or_null(value.as_f64s());
    default:
      return or_null(value.as_i64s());
  }
}

Json metadata_json(const Metadata& metadata) {
  Json json = Json::object();
  for (const auto& [key, value] : metadata.entries()) json[std::string(key)] = value_json(value);
  return json;
}

std::vector<std::uint64_t> dims_of(std::uint32_t n_dims, const std::array<std::uint64_t, 4>& dims) {
  return {dims.begin(), dims.begin() + n_dims};
}

Json rotations_json(std::span<const format::Rotation> rotations) {
  Json json = Json::array();
  for (const auto& rotation : rotations)
    json.push_back(
        {{"block", rotation.block}, {"width", rotation.width}, {"signs", !rotation.signs.empty()}});
  return json;
}

Json index_or_null(std::uint32_t index) {
  return index == format::kNoRotation ? Json() : Json(index);
}

Json tensor_json(const format::TensorRecord& tensor) {
  const double weights = static_cast<double>(tensor.rows() * tensor.cols());
  const std::uint64_t bytes = tensor.body_bytes + tensor.scale_bytes + tensor.residual_bytes;
  Json json = {{"name", tensor.name},
               {"encoding", format::encoding_name(tensor.encoding)},
               {"shape", dims_of(tensor.n_dims, tensor.dims)},
               {"bytes", bytes},
               {"bits_per_weight", 8 * static_cast<double>(bytes) / weights},
               {"group_size", tensor.group_size},
               {"input_rotation", index_or_null(tensor.input_rotation)},
               {"output_rotation", index_or_null(tensor.output_rotation)}};
  if (format::is_ternary(tensor.encoding)) {
    json["zeros"] = tensor.zero_count;
    json["zero_rate"] = static_cast<double>(tensor.zero_count) / weights;
    json["scales"] = scale_name(tensor.shape());
    json["activations"] = activations_name(tensor.activation_quant);
  }
  return json;
}

Json token_probe_json(const format::TokenProbe& probe) {
  if (probe.state != format::TokenProbeState::present) return Json();
  return {{"tokens", probe.tokens}, {"mean_nll", probe.mean_nll}, {"greedy", probe.greedy}};
}

Json summary_json(const format::File& file) {
  const FileSummary sum = summarise(file);
  Json json = {{"file_bytes", sum.file_bytes},
               {"gb", static_cast<double>(sum.file_bytes) / 1e9},
               {"gib", static_cast<double>(sum.file_bytes) / 1073741824.0},
               {"parameters", sum.parameters},
               {"ternary_weights", sum.ternary_weights}};
  if (sum.parameters > 0) json["bits_per_weight"] = sum.bits_per_weight();
  if (sum.ternary_weights > 0) {
    json["ternary_bits_per_weight"] = sum.ternary_bits_per_weight();
    json["zero_rate"] = sum.zero_rate();
  }
  return json;
}

// Names and texts of a file may be anything: what is no UTF-8 becomes U+FFFD.
std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string inspect_json(const format::File& file) {
  const auto& header = file.header();
  Json tensors = Json::array();
  for (const auto& tensor : file.tensors()) tensors.push_back(tensor_json(tensor));
  return dump({{"format", "tsq"},
               {"version", 2},
               {"name", header.model_name},
               {"quant_type", quant_type_name(header.quant_type)},
               {"hidden_size", header.hidden_size},
               {"num_layers", header.num_layers},
               {"vocab_size", header.vocab_size},
               {"hadamard_order", header.hadamard_order},
               {"summary", summary_json(file)},
               {"metadata", metadata_json(file.metadata())},
               {"rotations", rotations_json(file.rotations())},
               {"rotation_probes", file.rotation_probes().size()},
               {"token_probe", token_probe_json(file.token_probe())},
               {"tensors", tensors}});
}

std::string inspect_json(const importer::Checkpoint& checkpoint, const char* format) {
  Json tensors = Json::array();
  for (const auto& tensor : checkpoint.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"type", importer::source_type_name(tensor.type)},
                       {"shape", dims_of(tensor.n_dims, tensor.dims)},
                       {"bytes", tensor.data.size()},
                       {"rotation", index_or_null(tensor.rotation)}});
  return dump({{"format", format},
               {"metadata", metadata_json(checkpoint.metadata)},
               {"rotations", rotations_json(checkpoint.rotations)},
               {"tensors", tensors}});
}

}  // namespace tsq::tool
