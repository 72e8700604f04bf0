#include "import/safetensors.h"

#include <algorithm>
#include <cinttypes>
#include <iterator>
#include <optional>

#include "base/byte_reader.h"
#include "base/checked.h"
#include "base/errorf.h"

namespace tsq::importer {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMaxHeaderValues = 1u << 20;      // of some 100,000 tensors

struct Dtype {
  std::string_view name;
  std::uint32_t bits;
};
constexpr Dtype kDtypes[] = {
    {"BOOL", 8},    {"U8", 8},          {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},
    {"F16", 16},    {"BF16", 16},       {"I32", 32},        {"U32", 32},    {"F32", 32},
    {"F64", 64},    {"I64", 64},        {"U64", 64},        {"C64", 64},    {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

// A tensor's record as it stands in the header.
struct Record {
  SafeTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

std::string shown(const Record& record) { return printable(record.tensor.name); }

Error wrong_field(const Record& record, const char* field, const Json& found,
                  const char* expected) {
  return errorf(ErrorCode::damaged, "tensor '%s': '%s' is %s, expected %s", shown(record).c_str(),
                field, json_text(found).c_str(), expected);
}

Result<Json> find_field(const Record& record, const Json& entry, const char* field) {
  const auto value = entry.find(field);
  if (value) return *value;
  return errorf(ErrorCode::damaged, "tensor '%s': '%s' is missing", shown(record).c_str(), field);
}

Result<std::uint32_t> read_dtype(Record& record, const Json& entry) {
  const auto field = find_field(record, entry, "dtype");
  if (!field) return field.error();
  const auto name = field->as_string();
  if (!name) return wrong_field(record, "dtype", *field, "a string");
  const auto* const dtype = std::ranges::find(kDtypes, *name, &Dtype::name);
  if (dtype == std::end(kDtypes)) {
    std::string names;
    for (const Dtype& known : kDtypes) names += ' ' + std::string(known.name);
    return errorf(ErrorCode::unsupported, "tensor '%s': dtype %s is not one of%s",
                  shown(record).c_str(), json_text(*field).c_str(), names.c_str());
  }
  record.tensor.dtype = dtype->name;
  return dtype->bits;
}

// The bits that the shape needs.
Result<std::uint64_t> read_shape(Record& record, const Json& entry, std::uint32_t value_bits) {
  const auto field = find_field(record, entry, "shape");
  if (!field) return field.error();
  if (field->kind() != JsonKind::array) return wrong_field(record, "shape", *field, "an array");
  if (field->size() > record.tensor.shape.size()) {
    return errorf(ErrorCode::unsupported, "tensor '%s' has %zu dims, expected at most %zu",
                  shown(record).c_str(), field->size(), record.tensor.shape.size());
  }
  std::optional<std::uint64_t> bits = value_bits;
  for (const auto& [key, item] : *field) {
    const auto dim = item.as_u64();
    if (!dim) return wrong_field(record, "shape", item, "whole numbers from 0 on");
    record.tensor.shape[record.tensor.n_dims++] = *dim;
    // A later 0 does not excuse a product that wraps.
    if (bits) bits = checked_mul(*bits, std::max<std::uint64_t>(*dim, 1));
  }
  if (!bits) {
    return errorf(ErrorCode::damaged, "tensor '%s': its shape wraps, a size has 64 bits",
                  shown(record).c_str());
  }
  return record.tensor.values() == 0 ? 0 : *bits;
}

Result<void> read_offsets(Record& record, const Json& entry, std::uint64_t data_bytes) {
  const auto field = find_field(record, entry, "data_offsets");
  if (!field) return field.error();
  std::uint64_t ends[2] = {};
  std::size_t n = 0;
  for (const auto& [key, item] : *field) {
    const auto offset = item.as_u64();
    if (!offset || n == 2) break;
    ends[n++] = *offset;
  }
  if (field->kind() != JsonKind::array || field->size() != 2 || n != 2) {
    return wrong_field(record, "data_offsets", *field, "an array of two whole numbers");
  }
  record.begin = ends[0];
  record.end = ends[1];
  if (record.begin <= record.end && record.end <= data_bytes) return {};
  return errorf(ErrorCode::damaged,
                "tensor '%s': bytes %" PRIu64 " to %" PRIu64 ", the data has %" PRIu64,
                shown(record).c_str(), record.begin, record.end, data_bytes);
}

Result<Record> read_record(std::string_view name, const Json& entry, std::uint64_t data_bytes) {
  Record record;
  record.tensor.name = name;
  if (entry.kind() != JsonKind::object) {
    return errorf(ErrorCode::damaged, "tensor '%s' is %s, expected an object",
                  shown(record).c_str(), json_text(entry).c_str());
  }
  if (entry.size() > 3) {
    return errorf(ErrorCode::damaged,
                  "tensor '%s' has %zu fields, expected dtype, shape and data_offsets",
                  shown(record).c_str(), entry.size());
  }
  const auto value_bits = read_dtype(record, entry);
  if (!value_bits) return value_bits.error();
  const auto bits = read_shape(record, entry, *value_bits);
  if (!bits) return bits.error();
  if (const auto offsets = read_offsets(record, entry, data_bytes); !offsets) {
    return offsets.error();
  }
  const std::uint64_t bytes = record.end - record.begin;
  if (*bits % 8 != 0 || *bits / 8 != bytes) {
    return errorf(ErrorCode::damaged,
                  "tensor '%s' takes %" PRIu64 " bytes, its shape needs %" PRIu64 " of %.*s",
                  shown(record).c_str(), bytes, *bits / 8,
                  static_cast<int>(record.tensor.dtype.size()), record.tensor.dtype.data());
  }
  return record;
}

Result<void> check_notes(const Json& notes) {
  bool all_text = notes.kind() == JsonKind::object;
  for (const auto& [key, value] : notes) all_text &= value.kind() == JsonKind::string;
  if (all_text) return {};
  return errorf(ErrorCode::damaged, "'__metadata__' is %s, expected an object of strings",
                notes.kind() == JsonKind::object ? "an object of other values"
                                                 : json_kind_name(notes.kind()));
}

// records: in the order of their data.
Result<void> check_cover(const std::vector<Record>& records, std::uint64_t data_bytes) {
  std::uint64_t covered = 0;
  for (const Record& record : records) {
    if (record.begin != covered) {
      return errorf(ErrorCode::damaged,
                    "tensor '%s' starts at %" PRIu64 " of the data, expected %" PRIu64
                    ", where the one before ends: they %s",
                    shown(record).c_str(), record.begin, covered,
                    record.begin < covered ? "overlap" : "leave a gap");
    }
    covered = record.end;
  }
  if (covered == data_bytes) return {};
  return errorf(ErrorCode::damaged,
                "the data has %" PRIu64 " bytes, the tensors end at %" PRIu64 ", expected no more",
                data_bytes, covered);
}

Result<std::string_view> read_header(std::span<const std::byte> file) {
  ByteReader in(file);
  const auto header_bytes = in.read<std::uint64_t>();
  if (!in.ok()) {
    return errorf(ErrorCode::damaged, "%zu bytes, a safetensors file has at least 10", file.size());
  }
  if (header_bytes > in.left()) {
    return errorf(ErrorCode::damaged,
                  "the header has %" PRIu64 " bytes by its length, the file %zu after it",
                  header_bytes, in.left());
  }
  if (header_bytes > kMaxHeaderBytes) {
    return errorf(ErrorCode::unsupported,
                  "the header has %" PRIu64 " bytes, expected at most %" PRIu64, header_bytes,
                  kMaxHeaderBytes);
  }
  const std::string_view text = in.take_text(header_bytes);
  if (text.starts_with('{')) return text;
  return errorf(ErrorCode::damaged, "the header starts with '%s', expected '{'",
                printable(text.substr(0, 4)).c_str());
}

}  // namespace

Result<Safetensors> parse_safetensors(std::span<const std::byte> file) {
  const auto text = read_header(file);
  if (!text) return text.error();
  auto header = JsonDocument::parse(*text, {.values = kMaxHeaderValues});
  if (!header) return header.error().at("header");
  const auto data = file.subspan(8 + text->size());

  std::vector<Record> records;
  records.reserve(header->root().size());
  for (const auto& [name, entry] : header->root()) {
    if (name == "__metadata__") {
      if (const auto notes = check_notes(entry); !notes) return notes.error();
      continue;
    }
    auto record = read_record(name, entry, data.size());
    if (!record) return record.error();
    records.push_back(*record);
  }
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  if (const auto covered = check_cover(records, data.size()); !covered) return covered.error();

  Safetensors result{std::move(*header), {}};
  result.tensors.reserve(records.size());
  for (Record& record : records) {
    record.tensor.data = data.subspan(static_cast<std::size_t>(record.begin),
                                      static_cast<std::size_t>(record.end - record.begin));
    result.tensors.push_back(record.tensor);
  }
  return result;
}

}  // namespace tsq::importer
