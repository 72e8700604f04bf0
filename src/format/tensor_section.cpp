// The tensor directory: records of fixed size, then the names.
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <string>

#include "base/byte_reader.h"
#include "base/checked.h"
#include "base/errorf.h"
#include "base/zeros.h"
#include "format/sections.h"

namespace tsq::format {
namespace {

constexpr std::size_t kReservedBytes = 56;
// With activations per token the dot of a whole row is one int32: 127 * 2^24 < 2^31.
constexpr std::uint64_t kMaxTokenInputs = std::uint64_t{1} << 24;

bool is_encoding(Encoding encoding) {
  switch (encoding) {
    case Encoding::f32:
    case Encoding::f16:
    case Encoding::bf16:
    case Encoding::q8:
    case Encoding::q4:
    case Encoding::t2:
    case Encoding::t1:
    case Encoding::s34:
      return true;
  }
  return false;
}

bool is_storage(StorageEncoding storage) {
  switch (storage) {
    case StorageEncoding::plain:
    case StorageEncoding::rle:
    case StorageEncoding::mask:
    case StorageEncoding::zstd:
      return true;
  }
  return false;
}

// The flags that a record of this kind may have.
std::uint32_t allowed_flags(const TensorRecord& tensor) {
  std::uint32_t flags = 0;
  if (tensor.encoding == Encoding::q4) flags |= kFlagMinimum;
  if (tensor.encoding == Encoding::t2 && tensor.scale_kind == ScaleKind::per_group)
    flags |= kFlagHalfGroups;
  if (tensor.encoding == Encoding::s34) flags |= kFlagStride16;
  if (tensor.residual_bytes != 0) flags |= kFlagFusedResidual;
  return flags;
}

Result<void> check_kinds(const TensorRecord& tensor) {
  if (!is_encoding(tensor.encoding))
    return damaged("encoding is %u, expected 0 to 4 or 16 to 18",
                   static_cast<unsigned>(tensor.encoding));
  if (!is_storage(tensor.storage))
    return damaged("storage is %u, expected 0 to 3", static_cast<unsigned>(tensor.storage));
  const bool ternary = is_ternary(tensor.encoding);
  const auto scale_kind = static_cast<unsigned>(tensor.scale_kind);
  if (ternary ? scale_kind < 1 || scale_kind > 3 : scale_kind != 0)
    return damaged("scale_kind is %u, expected %s for %s", scale_kind, ternary ? "1 to 3" : "0",
                   encoding_name(tensor.encoding));
  const auto quant = static_cast<unsigned>(tensor.activation_quant);
  if (ternary ? quant < 1 || quant > 2 : quant != 0)
    return damaged("activation_quant is %u, expected %s for %s", quant, ternary ? "1 or 2" : "0",
                   encoding_name(tensor.encoding));
  if (const std::uint32_t excess = tensor.flags & ~allowed_flags(tensor); excess != 0)
    return damaged("flags are 0x%x, 0x%x is not allowed for %s", tensor.flags, excess,
                   encoding_name(tensor.encoding));
  const std::uint64_t missing = features_of(tensor) & ~kImplementedFeatures;
  if (missing != 0) {
    const auto bit = static_cast<unsigned>(std::countr_zero(missing));
    return errorf(ErrorCode::unsupported, "needs '%s' (feature bit %u), which this build lacks",
                  feature_name(bit), bit);
  }
  return {};
}

Result<void> check_dims(const TensorRecord& tensor) {
  if (tensor.n_dims < 1 || tensor.n_dims > tensor.dims.size())
    return damaged("n_dims is %u, expected 1 to 4", tensor.n_dims);
  std::uint64_t product = 1;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    const std::uint64_t dim = tensor.dims[d];
    if (dim == 0) return damaged("dims[%zu] is 0, expected at least 1", d);
    if (d >= tensor.n_dims && dim != 1)
      return damaged("dims[%zu] is %" PRIu64 ", expected 1 with n_dims %u", d, dim, tensor.n_dims);
    const auto next = checked_mul(product, dim);
    if (!next || *next >> 63 != 0)
      return damaged("the product of dims %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                     " is not below 2^63",
                     tensor.dims[0], tensor.dims[1], tensor.dims[2], tensor.dims[3]);
    product = *next;
  }
  const std::uint64_t unit = (tensor.flags & kFlagStride16) != 0 ? 64 : 4;
  if (tensor.encoding == Encoding::s34 && tensor.dims[0] % unit != 0)
    return damaged("dims[0] is %" PRIu64 ", expected a multiple of %" PRIu64
                   " for s34%s: a quad is inputs alone or padding alone",
                   tensor.dims[0], unit, unit == 64 ? " with stride 16" : "");
  if (tensor.activation_quant == ActivationQuant::per_token && tensor.dims[0] > kMaxTokenInputs)
    return damaged("dims[0] is %" PRIu64 ", at most 2^24 is possible with activations per token",
                   tensor.dims[0]);
  if (const std::uint32_t expected = group_size(tensor.shape()); tensor.group_size != expected)
    return damaged("group_size is %u, expected %u for %s", tensor.group_size, expected,
                   encoding_name(tensor.encoding));
  const std::uint64_t most = is_ternary(tensor.encoding) ? product : 0;
  if (tensor.zero_count > most)
    return damaged("zero_count is %" PRIu64 ", at most %" PRIu64 " is possible", tensor.zero_count,
                   most);
  return {};
}

Result<void> check_rotation(const TensorRecord& tensor, std::span<const Rotation> rotations) {
  if (tensor.input_rotation == kNoRotation) return {};
  if (tensor.input_rotation >= rotations.size())
    return damaged("input_rotation is %u, the file has %zu rotations", tensor.input_rotation,
                   rotations.size());
  const std::uint32_t width = rotations[tensor.input_rotation].width;
  if (width != tensor.cols())
    return damaged("input_rotation %u has width %u, expected the tensor's %" PRIu64 " inputs",
                   tensor.input_rotation, width, tensor.cols());
  return {};
}

// Checks the scale array's range; end is where the body ends, and becomes the end of the array.
Result<void> check_scale_array(const TensorRecord& tensor, std::uint64_t data_bytes,
                               std::uint64_t& end) {
  const auto bytes = scale_bytes(tensor.shape());
  if (!bytes)
    return damaged("a scale for each of %" PRIu64 " rows exceeds 2^64 bytes", tensor.rows());
  const std::uint64_t start = *bytes == 0 ? 0 : round_up(end, kAlignment);  // of a file: no wrap
  if (tensor.scale_offset != start)
    return damaged("scale_offset is %" PRIu64 ", expected %" PRIu64 "%s", tensor.scale_offset,
                   start, *bytes == 0 ? "" : ": behind the body at a multiple of 64");
  if (tensor.scale_bytes != *bytes)
    return damaged(
        "scale_bytes is %" PRIu64 ", expected %" PRIu64 " for scale_kind %u and %" PRIu64 " rows",
        tensor.scale_bytes, *bytes, static_cast<unsigned>(tensor.scale_kind), tensor.rows());
  if (*bytes == 0) return {};
  if (start > data_bytes || *bytes > data_bytes - start)
    return damaged("%" PRIu64 " bytes of scales at %" PRIu64
                   " of the data section, which has %" PRIu64,
                   *bytes, start, data_bytes);
  end = start + *bytes;
  return {};
}

// Checks the byte ranges of a record of a body and perhaps a scale array; end is where the tensor
// before it ends, and becomes the end of this one.
Result<void> check_placement(const TensorRecord& tensor, std::uint64_t data_bytes,
                             std::uint64_t& end) {
  const std::uint64_t start = round_up(end, kAlignment);  // end <= data_bytes: no wrap
  if (tensor.body_offset != start)
    return damaged("body_offset is %" PRIu64 ", expected %" PRIu64
                   ": tensors lie one behind the other at multiples of 64",
                   tensor.body_offset, start);
  const auto bytes = body_bytes(tensor.shape());
  if (!bytes)
    return damaged("dims of %" PRIu64 " rows x %" PRIu64 " inputs in %s exceed 2^64 bytes",
                   tensor.rows(), tensor.cols(), encoding_name(tensor.encoding));
  if (tensor.body_bytes != *bytes)
    return damaged("body_bytes is %" PRIu64 ", expected %" PRIu64 " for %s of %" PRIu64
                   " rows x %" PRIu64 " inputs",
                   tensor.body_bytes, *bytes, encoding_name(tensor.encoding), tensor.rows(),
                   tensor.cols());
  if (start > data_bytes || *bytes > data_bytes - start)
    return damaged("%" PRIu64 " bytes at %" PRIu64 " of the data section, which has %" PRIu64,
                   *bytes, start, data_bytes);
  end = start + *bytes;
  if (auto scales = check_scale_array(tensor, data_bytes, end); !scales) return scales;
  if (tensor.residual_offset != 0)
    return damaged("residual_offset is %" PRIu64 ", expected 0", tensor.residual_offset);
  return {};
}

TensorRecord read_record(ByteReader& in, std::uint32_t& name_bytes) {
  TensorRecord tensor;
  name_bytes = in.read<std::uint32_t>();
  tensor.encoding = static_cast<Encoding>(in.read<std::uint32_t>());
  tensor.storage = static_cast<StorageEncoding>(in.read<std::uint32_t>());
  tensor.flags = in.read<std::uint32_t>();
  tensor.n_dims = in.read<std::uint32_t>();
  tensor.group_size = in.read<std::uint32_t>();
  for (std::uint64_t& dim : tensor.dims) dim = in.read<std::uint64_t>();
  tensor.scale_kind = static_cast<ScaleKind>(in.read<std::uint32_t>());
  tensor.activation_quant = static_cast<ActivationQuant>(in.read<std::uint32_t>());
  tensor.input_rotation = in.read<std::uint32_t>();
  tensor.output_rotation = in.read<std::uint32_t>();
  tensor.zero_count = in.read<std::uint64_t>();
  tensor.body_offset = in.read<std::uint64_t>();
  tensor.body_bytes = in.read<std::uint64_t>();
  tensor.scale_offset = in.read<std::uint64_t>();
  tensor.scale_bytes = in.read<std::uint64_t>();
  tensor.digest = in.read<std::uint64_t>();
  tensor.residual_offset = in.read<std::uint64_t>();
  tensor.residual_bytes = in.read<std::uint64_t>();
  return tensor;
}

}  // namespace

Result<std::vector<TensorRecord>> parse_tensors(std::span<const std::byte> section,
                                                std::uint64_t count,
                                                std::span<const Rotation> rotations,
                                                std::uint64_t data_bytes) {
  if (count > section.size() / kTensorRecordBytes)
    return damaged("tensor directory: %" PRIu64 " records are promised, the section has %zu bytes",
                   count, section.size());
  const std::size_t records_bytes = static_cast<std::size_t>(count) * kTensorRecordBytes;
  if (count > kMaxTensors || section.size() - records_bytes > kMaxNamesBytes)
    return errorf(ErrorCode::unsupported,
                  "tensor directory: %" PRIu64 " tensors with %zu bytes of names, at most %" PRIu64
                  " with %zu are supported",
                  count, section.size() - records_bytes, kMaxTensors, kMaxNamesBytes);
  std::vector<TensorRecord> tensors;
  tensors.reserve(count);
  ByteReader records(section.first(records_bytes));
  ByteReader names(section.subspan(records_bytes));
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string where = stringf("tensor record %" PRIu64, i);
    std::uint32_t name_bytes = 0;
    TensorRecord tensor = read_record(records, name_bytes);
    const auto reserved = records.take(kReservedBytes);
    if (name_bytes == 0 || name_bytes > kMaxNameBytes)
      return damaged("%s: name_bytes is %u, expected 1 to %zu", where.c_str(), name_bytes,
                     kMaxNameBytes);
    if (name_bytes > names.left())
      return damaged("%s: its name needs %u bytes, %zu are left", where.c_str(), name_bytes,
                     names.left());
    tensor.name = names.take_text(name_bytes);
    if (!is_text(tensor.name))
      return damaged("%s: name '%s' is not UTF-8 without control characters", where.c_str(),
                     printable(tensor.name).c_str());

    const std::string name = stringf("tensor '%s'", printable(tensor.name).c_str());
    if (auto kinds = check_kinds(tensor); !kinds) return kinds.error().at(name);
    if (auto dims = check_dims(tensor); !dims) return dims.error().at(name);
    if (auto rotation = check_rotation(tensor, rotations); !rotation)
      return rotation.error().at(name);
    if (auto placed = check_placement(tensor, data_bytes, end); !placed)
      return placed.error().at(name);
    if (first_nonzero(reserved)) return damaged("%s: a reserved byte is not 0", name.c_str());
    tensors.push_back(std::move(tensor));
  }
  if (names.left() != 0)
    return damaged("tensor directory: %zu bytes follow the last name, expected 0", names.left());
  if (data_bytes != round_up(end, kAlignment))
    return damaged("data section has %" PRIu64 " bytes, its tensors end at %" PRIu64
                   ": expected that, rounded up to 64",
                   data_bytes, end);
  return tensors;
}

void write_tensors(ByteWriter& out, std::span<const TensorRecord> tensors) {
  for (const TensorRecord& tensor : tensors) {
    out.write(static_cast<std::uint32_t>(tensor.name.size()));
    out.write(static_cast<std::uint32_t>(tensor.encoding));
    out.write(static_cast<std::uint32_t>(tensor.storage));
    out.write(tensor.flags);
    out.write(tensor.n_dims);
    out.write(tensor.group_size);
    for (const std::uint64_t dim : tensor.dims) out.write(dim);
    out.write(static_cast<std::uint32_t>(tensor.scale_kind));
    out.write(static_cast<std::uint32_t>(tensor.activation_quant));
    out.write(tensor.input_rotation);
    out.write(tensor.output_rotation);
    out.write(tensor.zero_count);
    out.write(tensor.body_offset);
    out.write(tensor.body_bytes);
    out.write(tensor.scale_offset);
    out.write(tensor.scale_bytes);
    out.write(tensor.digest);
    out.write(tensor.residual_offset);
    out.write(tensor.residual_bytes);
    out.write_bytes(std::array<std::byte, kReservedBytes>{});
  }
  for (const TensorRecord& tensor : tensors) out.write_text(tensor.name);
}

}  // namespace tsq::format
