#include <algorithm>
#include <vector>

#include "base/errorf.h"
#include "file_summary.h"
#include "import/blocks.h"
#include "inspect.h"
#include "support.h"

namespace tsq::tool {
namespace {

constexpr std::size_t kMaxElements = 8;  // of an array that a line shows

// Rows of cells, columns as wide as their widest cell; `right` columns end flush.
class Table {
 public:
  Table(std::vector<std::string> heads, std::vector<bool> right) : right_(std::move(right)) {
    add(std::move(heads));
  }

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string text() const {
    std::vector<std::size_t> widths(right_.size());
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string padding(widths[i] - row[i].size(), ' ');
        const std::string padded = right_[i] ? padding + row[i] : row[i] + padding;
        line.append(" ").append(padded).append(" ");
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

std::string dims_text(std::uint32_t n_dims, const std::array<std::uint64_t, 4>& dims) {
  std::string text;
  for (std::uint32_t i = 0; i < n_dims; ++i)
    text += (i == 0 ? "" : " x ") + std::to_string(dims[i]);
  return text;
}

template <class T, class ToText>
std::string elements_text(const std::optional<std::vector<T>>& elements, const ToText& to_text) {
  if (!elements) return "...";
  std::string text;
  for (std::size_t i = 0; i < std::min(elements->size(), kMaxElements); ++i)
    text += (i == 0 ? "" : ", ") + to_text((*elements)[i]);
  return elements->size() > kMaxElements ? text + ", ..." : text;
}

std::string value_text(const Value& value) {
  const auto float_text = [](double v) { return stringf("%.9g", v); };
  const auto integer_text = [](std::int64_t v) { return std::to_string(v); };
  const auto quoted = [](std::string_view v) {
    return stringf("\"%s\"", printable(v, 32).c_str());
  };
  switch (value.type()) {
    case ValueType::string:
      return printable(value.as_string().value_or(""), 200);
    case ValueType::boolean:
      return value.as_bool().value_or(false) ? "true" : "false";
    case ValueType::f32:
    case ValueType::f64:
      return float_text(value.as_f64().value_or(0));
    case ValueType::array:
      break;
    default:
      if (const auto number = value.as_u64()) return std::to_string(*number);
      return integer_text(value.as_i64().value_or(0));
  }
  switch (value.element_type()) {
    case ValueType::string:
      return elements_text(value.as_strings(), quoted);
    case ValueType::f32:
    case ValueType::f64:
      return elements_text(value.as_f64s(), float_text);
    default:
      return elements_text(value.as_i64s(), integer_text);
  }
}

std::string type_text(const Value& value) {
  if (value.type() != ValueType::array) return value_type_name(value.type());
  return stringf("%s[%llu]", value_type_name(value.element_type()),
                 static_cast<unsigned long long>(value.count()));
}

std::string metadata_text(const Metadata& metadata) {
  Table table({"key", "type", "value"}, {false, false, false});
  for (const auto& [key, value] : metadata.entries())
    table.add({printable(key, 80), type_text(value), value_text(value)});
  return stringf("\nmetadata (%zu)\n", metadata.entries().size()) + table.text();
}

std::string rotation_text(const format::File& file, std::uint32_t id) {
  if (id == format::kNoRotation) return "-";
  const auto& rotation = file.rotations()[id];
  return std::to_string(rotation.block) + (rotation.signs.empty() ? "" : " signs");
}

std::string tensors_text(const format::File& file) {
  Table table({"name", "encoding", "shape", "bytes", "bits/weight", "zeros", "scales", "rotation"},
              {false, false, false, true, true, true, false, false});
  for (const auto& tensor : file.tensors()) {
    const std::uint64_t weights = tensor.rows() * tensor.cols();
    const std::uint64_t bytes = tensor.body_bytes + tensor.scale_bytes + tensor.residual_bytes;
    std::string rotation = rotation_text(file, tensor.input_rotation);
    if (tensor.output_rotation != format::kNoRotation)
      rotation += " in, " + rotation_text(file, tensor.output_rotation) + " out";
    table.add({printable(tensor.name), format::encoding_name(tensor.encoding),
               dims_text(tensor.n_dims, tensor.dims), with_commas(bytes),
               stringf("%.3f", 8 * static_cast<double>(bytes) / static_cast<double>(weights)),
               format::is_ternary(tensor.encoding)
                   ? stringf("%.1f %%", 100 * static_cast<double>(tensor.zero_count) /
                                            static_cast<double>(weights))
                   : "-",
               scale_name(tensor.shape()), rotation});
  }
  return stringf("\ntensors (%zu)\n", file.tensors().size()) + table.text();
}

}  // namespace

std::string inspect_text(const format::File& file) {
  return stringf("%-13s .tsq, version 2\n", "format") + summary_text(file) +
         metadata_text(file.metadata()) + tensors_text(file);
}

std::string inspect_text(const importer::Checkpoint& checkpoint, const char* format) {
  std::uint64_t parameters = 0, bytes = 0;
  Table table({"name", "type", "shape", "bytes", "rotation"}, {false, false, false, true, false});
  for (const auto& tensor : checkpoint.tensors) {
    parameters += tensor.rows() * tensor.cols();
    bytes += tensor.data.size();
    const bool rotated = tensor.rotation != format::kNoRotation;
    table.add({printable(tensor.name), importer::source_type_name(tensor.type),
               dims_text(tensor.n_dims, tensor.dims), with_commas(tensor.data.size()),
               rotated ? std::to_string(checkpoint.rotations[tensor.rotation].block) : "-"});
  }
  return stringf("%-13s %s; 'tsq convert' makes a .tsq of it\n", "format", format) +
         stringf("%-13s %s\n", "parameters", with_commas(parameters).c_str()) +
         stringf("%-13s %s bytes = %s = %s\n", "tensor data", with_commas(bytes).c_str(),
                 human_bytes(bytes).c_str(), human_bytes_binary(bytes).c_str()) +
         metadata_text(checkpoint.metadata) +
         stringf("\ntensors (%zu)\n", checkpoint.tensors.size()) + table.text();
}

}  // namespace tsq::tool
