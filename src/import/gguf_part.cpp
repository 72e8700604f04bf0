#include "import/gguf_part.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "base/checked.h"
#include "base/errorf.h"
#include "format/sections.h"
#include "import/blocks.h"
#include "import/gguf_types.h"
#include "import/other_files.h"
#include "import/sized_types.h"

namespace tsq::importer {
namespace {

constexpr std::uint64_t kMaxAlignment = 1u << 20;
constexpr std::uint32_t kMaxParts = 99999;  // five digits in the name
constexpr std::uint64_t kMinTensorRecord = 8 + 1 + 4 + 8 + 4 + 8;

struct Counts {
  std::uint64_t tensors, entries;
};

Result<Counts> read_header(ByteReader& in, std::span<const std::byte> bytes) {
  const std::string_view magic = in.take_text(4);
  if (magic != "GGUF") return not_gguf(bytes);
  const auto version = in.read<std::uint32_t>();
  const Counts counts = {in.read<std::uint64_t>(), in.read<std::uint64_t>()};
  if (!in.ok()) {
    return errorf(ErrorCode::damaged, "header is cut off: %zu bytes, a GGUF header has 24",
                  bytes.size());
  }
  if (version != 0 && (version & 0xffffu) == 0) {
    return errorf(ErrorCode::unsupported, "big-endian GGUF (version %u), little-endian is read",
                  __builtin_bswap32(version));
  }
  if (version != 2 && version != 3) {
    return errorf(ErrorCode::unsupported, "GGUF version %u, versions 2 and 3 are read", version);
  }
  if (counts.tensors > in.left() / kMinTensorRecord) {
    return errorf(ErrorCode::damaged,
                  "header promises %" PRIu64
                  " tensors, the %zu bytes after it hold at most %" PRIu64,
                  counts.tensors, in.left(), in.left() / kMinTensorRecord);
  }
  if (counts.tensors > format::kMaxTensors) {
    return errorf(ErrorCode::unsupported, "%" PRIu64 " tensors, at most %" PRIu64 " are supported",
                  counts.tensors, format::kMaxTensors);
  }
  return counts;
}

Result<std::uint64_t> read_alignment(const Metadata& metadata) {
  const Value* value = metadata.find("general.alignment");
  if (!value) return std::uint64_t{32};
  const auto alignment = metadata.require_u64("general.alignment");
  if (!alignment) return alignment.error();
  if (*alignment == 0 || (*alignment & (*alignment - 1)) != 0 || *alignment > kMaxAlignment) {
    return errorf(ErrorCode::damaged,
                  "key 'general.alignment' is %" PRIu64 ", expected a power of two up to %" PRIu64,
                  *alignment, kMaxAlignment);
  }
  return *alignment;
}

// A tensor's record as it stands in the file.
struct Record {
  Tensor tensor;  // without data
  std::uint32_t type_id = 0;
  std::uint64_t weights = 0;
  std::uint64_t offset = 0;                // from the start of the data
  std::optional<SourceType> type;          // none: not read
  std::optional<std::uint64_t> data_size;  // unknown for some foreign types
};

// The number of weights, and where the type id says its blocks, the bytes of the tensor's data.
Result<void> set_size(Record& record) {
  const Tensor& tensor = record.tensor;
  std::optional<std::uint64_t> weights = 1;
  for (const std::uint64_t dim : tensor.dims) {
    if (weights) weights = checked_mul(*weights, dim);
  }
  record.type = source_type(record.type_id);
  const auto shape = record.type ? block_shape(*record.type) : foreign_block_shape(record.type_id);
  if (shape && tensor.dims[0] % shape->weights != 0) {
    return errorf(
        ErrorCode::damaged, "tensor '%s': %" PRIu64 " inputs a row, %s has blocks of %u",
        printable(tensor.name).c_str(), tensor.dims[0],
        record.type ? source_type_name(*record.type) : describe_type(record.type_id).c_str(),
        shape->weights);
  }
  if (weights && shape) record.data_size = checked_mul(*weights / shape->weights, shape->bytes);
  if (record.type && record.data_size) {
    const auto headers = checked_mul(*weights / tensor.dims[0], row_header_bytes(*record.type));
    record.data_size = headers ? checked_add(*record.data_size, *headers) : std::nullopt;
  }
  if (!weights || (shape && !record.data_size)) {
    return errorf(ErrorCode::damaged,
                  "tensor '%s': dims %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                  " wrap, a size has 64 bits",
                  printable(tensor.name).c_str(), tensor.dims[0], tensor.dims[1], tensor.dims[2],
                  tensor.dims[3]);
  }
  record.weights = *weights;
  return {};
}

Result<Record> read_record(ByteReader& in, std::uint64_t index) {
  const std::size_t start = in.offset();
  const auto cut_off = [&] {
    return errorf(ErrorCode::damaged, "record of tensor %" PRIu64 " at byte %zu is cut off", index,
                  start);
  };
  Record record;
  record.tensor.name = in.take_text(in.read<std::uint64_t>());
  record.tensor.n_dims = in.read<std::uint32_t>();
  if (!in.ok()) return cut_off();
  const std::string name = printable(record.tensor.name);
  if (name.empty()) {
    return errorf(ErrorCode::damaged, "tensor %" PRIu64 " at byte %zu has an empty name", index,
                  start);
  }
  if (record.tensor.name.size() > format::kMaxNameBytes || !format::is_text(record.tensor.name)) {
    return errorf(ErrorCode::damaged,
                  "tensor %" PRIu64
                  " at byte %zu has the name '%s' of %zu bytes, expected UTF-8 "
                  "text of at most %zu",
                  index, start, name.c_str(), record.tensor.name.size(), format::kMaxNameBytes);
  }
  if (record.tensor.n_dims == 0 || record.tensor.n_dims > 4) {
    return errorf(ErrorCode::damaged, "tensor '%s' has %u dims, expected 1 to 4", name.c_str(),
                  record.tensor.n_dims);
  }
  for (std::uint32_t i = 0; i < record.tensor.n_dims; ++i) {
    record.tensor.dims[i] = in.read<std::uint64_t>();
  }
  record.type_id = in.read<std::uint32_t>();
  record.offset = in.read<std::uint64_t>();
  if (!in.ok()) return cut_off();
  for (std::uint32_t i = 0; i < record.tensor.n_dims; ++i) {
    if (record.tensor.dims[i] == 0) {
      return errorf(ErrorCode::damaged, "tensor '%s': dim %u is 0, expected at least 1",
                    name.c_str(), i);
    }
  }
  if (const auto sized = set_size(record); !sized) return sized.error();
  return record;
}

Result<void> check_unique(const std::vector<Record>& records) {
  std::vector<std::string_view> names;
  for (const Record& record : records) names.push_back(record.tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return errorf(ErrorCode::damaged, "tensor '%s' is there twice, names are unique",
                printable(*twice).c_str());
}

Result<void> check_places(const std::vector<Record>& records, std::uint64_t alignment,
                          std::uint64_t data_size) {
  for (const Record& record : records) {
    const std::string name = printable(record.tensor.name);
    if (record.offset % alignment != 0) {
      return errorf(ErrorCode::damaged,
                    "tensor '%s': offset %" PRIu64 " is not a multiple of the alignment, %" PRIu64,
                    name.c_str(), record.offset, alignment);
    }
    const std::uint64_t size = record.data_size.value_or(1);
    if (record.offset > data_size || size > data_size - record.offset) {
      return errorf(ErrorCode::damaged,
                    "tensor '%s': %s%" PRIu64 " bytes at %" PRIu64 ", the data has %" PRIu64,
                    name.c_str(), record.data_size ? "" : "at least ", size, record.offset,
                    data_size);
    }
  }
  std::vector<const Record*> by_offset;
  for (const Record& record : records) by_offset.push_back(&record);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const Record* a, const Record* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const Record& before = *by_offset[i - 1];
    const Record& after = *by_offset[i];
    const std::uint64_t size = before.data_size.value_or(1);
    if (after.offset - before.offset < size) {
      return errorf(ErrorCode::damaged,
                    "tensors '%s' and '%s' overlap: %s%" PRIu64 " bytes at %" PRIu64
                    ", the next at %" PRIu64,
                    printable(before.tensor.name).c_str(), printable(after.tensor.name).c_str(),
                    before.data_size ? "" : "at least ", size, before.offset, after.offset);
    }
  }
  return {};
}

// The type and size of the tensors whose id does not say them.
Result<void> resolve_sized_types(std::vector<Record>& records, std::uint64_t alignment,
                                 std::uint64_t data_size, const AssumedLayouts& assumed) {
  std::vector<std::uint64_t> ends = {data_size};
  for (const Record& record : records) ends.push_back(record.offset);
  std::sort(ends.begin(), ends.end());
  for (const std::uint32_t id : kSizedTypes) {
    std::vector<SizedTensor> tensors;
    for (const Record& record : records) {
      if (record.type_id != id) continue;
      const std::uint64_t end = *std::upper_bound(ends.begin(), ends.end() - 1, record.offset);
      tensors.push_back(
          {record.tensor.name, record.weights, record.tensor.cols(), end - record.offset});
    }
    if (tensors.empty()) continue;
    const auto type = type_of_size(id, tensors, alignment, assumed);
    if (!type) return type.error();
    for (Record& record : records) {
      if (record.type_id != id) continue;
      record.type = *type;
      record.data_size = stored_bytes(*type, record.weights);
    }
  }
  return {};
}

Result<void> read_split_keys(GgufPart& part) {
  const auto number_of = [&](const char* key, std::uint64_t limit,
                             std::optional<std::uint64_t>& number) -> Result<void> {
    if (!part.metadata.find(key)) return {};
    const auto value = part.metadata.require_u64(key);
    if (!value) return value.error();
    if (*value > limit) {
      return errorf(ErrorCode::damaged, "key '%s' is %" PRIu64 ", expected at most %" PRIu64, key,
                    *value, limit);
    }
    number = *value;
    return {};
  };
  std::optional<std::uint64_t> count, number;
  if (const auto read = number_of("split.count", kMaxParts, count); !read) return read.error();
  if (count.value_or(0) <= 1) return {};
  if (const auto read = number_of("split.no", *count - 1, number); !read) return read.error();
  if (!number) {
    return errorf(ErrorCode::damaged, "key 'split.count' is %" PRIu64 ", but 'split.no' is missing",
                  *count);
  }
  part.n_parts = static_cast<std::uint32_t>(*count);
  part.number = static_cast<std::uint32_t>(*number);
  return number_of("split.tensors.count", UINT64_MAX, part.n_tensors);
}

void set_data(Tensor& tensor, std::span<const std::byte> stored) {
  const std::uint64_t bytes = row_bytes(tensor.type, tensor.cols()) * tensor.rows();
  tensor.data = stored.first(static_cast<std::size_t>(bytes));
  if (stored.size() > bytes) std::memcpy(&tensor.scale, stored.data() + bytes, sizeof tensor.scale);
}

}  // namespace

Result<GgufPart> parse_gguf_part(std::span<const std::byte> bytes, const AssumedLayouts& assumed) {
  ByteReader in(bytes);
  const auto counts = read_header(in, bytes);
  if (!counts) return counts.error();

  GgufPart part;
  auto metadata = Metadata::parse(in, counts->entries);
  if (!metadata) return metadata.error();
  part.metadata = std::move(*metadata);
  const auto alignment = read_alignment(part.metadata);
  if (!alignment) return alignment.error();
  if (const auto split = read_split_keys(part); !split) return split.error();

  std::vector<Record> records;
  records.reserve(static_cast<std::size_t>(counts->tensors));
  std::size_t names_bytes = 0;
  for (std::uint64_t i = 0; i < counts->tensors; ++i) {
    auto record = read_record(in, i);
    if (!record) return record.error();
    names_bytes += record->tensor.name.size();
    if (names_bytes > format::kMaxNamesBytes) {
      return errorf(ErrorCode::unsupported,
                    "the names of the tensors have more than %zu bytes, expected no more",
                    format::kMaxNamesBytes);
    }
    records.push_back(std::move(*record));
  }
  if (const auto unique = check_unique(records); !unique) return unique.error();

  const auto start = std::min<std::uint64_t>(round_up(in.offset(), *alignment), bytes.size());
  const auto data = bytes.subspan(static_cast<std::size_t>(start));
  if (const auto places = check_places(records, *alignment, data.size()); !places) {
    return places.error();
  }
  const auto resolved = resolve_sized_types(records, *alignment, data.size(), assumed);
  if (!resolved) return resolved.error();
  for (Record& record : records) {
    if (!record.type) {
      if (part.unread.count == 0) {
        part.unread.first_name = record.tensor.name;
        part.unread.first_type = record.type_id;
      }
      ++part.unread.count;
      continue;
    }
    record.tensor.type = *record.type;
    set_data(record.tensor, data.subspan(static_cast<std::size_t>(record.offset),
                                         static_cast<std::size_t>(*record.data_size)));
    part.tensors.push_back(record.tensor);
  }
  return part;
}

}  // namespace tsq::importer
