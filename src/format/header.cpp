// The header of a .tsq file, its section directory, and the fields that follow from the records.
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "base/byte_reader.h"
#include "base/checked.h"
#include "base/errorf.h"
#include "base/utf8.h"
#include "base/zeros.h"
#include "format/sections.h"

namespace tsq::format {
namespace {

constexpr std::array<std::byte, 4> kMagic = {std::byte{'T'}, std::byte{'S'}, std::byte{'Q'},
                                             std::byte{0}};
constexpr std::uint32_t kVersion = 2;
constexpr const char* kFeatureNames[] = {
    "s34",
    "half groups",
    "scales per row",
    "scales per tensor",
    "activations per token",
    "output rotation",
    "residual",
    "rle storage",
    "mask storage",
    "zstd storage",
    "fused residual",
};
constexpr unsigned kFeatures = std::size(kFeatureNames);

std::string short_hex(const Sha256& digest) { return hex(std::span(digest).first(8)) + "..."; }

Result<std::string> parse_model_name(std::string_view field) {
  const std::string_view name = field.substr(0, std::min(field.find('\0'), field.size()));
  if (!is_text(name))
    return damaged("header: model_name '%s' is not UTF-8 without control characters",
                   printable(name).c_str());
  if (field.find_first_not_of('\0', name.size()) != std::string_view::npos)
    return damaged("header: model_name goes on after its NUL, expected NULs up to byte 63");
  return std::string(name);
}

Result<void> check_features(std::uint64_t critical) {
  const std::uint64_t unknown = critical >> kFeatures << kFeatures;
  if (unknown == 0) return {};
  std::string bits;
  for (unsigned bit = kFeatures; bit < 64; ++bit) {
    if ((unknown >> bit & 1) != 0) bits += (bits.empty() ? "" : ", ") + std::to_string(bit);
  }
  return errorf(ErrorCode::unsupported,
                "header: critical feature bit %s is not known, this build knows 0 to %u: a newer "
                "tsq is needed",
                bits.c_str(), kFeatures - 1);
}

Result<void> parse_directory(ByteReader& in, std::uint32_t n_sections, HeaderBlock& block) {
  std::uint64_t end = kHeaderBytes;
  std::uint32_t last_kind = 0;
  for (std::uint32_t k = 0; k < n_sections; ++k) {
    const auto kind = in.read<std::uint32_t>();
    const auto reserved = in.read<std::uint32_t>();
    SectionEntry entry;
    entry.offset = in.read<std::uint64_t>();
    entry.bytes = in.read<std::uint64_t>();
    entry.count = in.read<std::uint64_t>();
    const auto digest = in.take(sizeof entry.digest);
    std::copy(digest.begin(), digest.end(), entry.digest.begin());

    const std::string where = stringf("section directory: entry %u", k);
    if (k < kSections && kind != k + 1)
      return damaged("%s has kind %u, expected %u (%s)", where.c_str(), kind, k + 1,
                     section_name(k));
    if (k >= kSections && kind <= last_kind)
      return damaged("%s has kind %u, expected more than %u", where.c_str(), kind, last_kind);
    last_kind = kind;
    if (reserved != 0)
      return damaged("%s: reserved field is %u, expected 0", where.c_str(), reserved);
    const auto start = checked_round_up(end, k == kData ? kDataAlignment : kAlignment);
    if (!start || entry.offset != *start)
      return damaged("%s (%s) starts at byte %" PRIu64 ", expected %" PRIu64, where.c_str(),
                     section_name(k), entry.offset, start.value_or(0));
    if (entry.offset > block.file_bytes || entry.bytes > block.file_bytes - entry.offset)
      return damaged("%s (%s) has %" PRIu64 " bytes at byte %" PRIu64 ", the file has %" PRIu64,
                     where.c_str(), section_name(k), entry.bytes, entry.offset, block.file_bytes);
    end = entry.offset + entry.bytes;
    if (k >= kSections) {
      block.optional.push_back({kind, entry});
      continue;
    }
    const bool counts = k == kMetadata || k == kRotations || k == kTensors || k == kProbes;
    if (!counts && entry.count != 0)
      return damaged("%s (%s) has count %" PRIu64 ", expected 0", where.c_str(), section_name(k),
                     entry.count);
    if (k == kRunLengthIndex && entry.bytes != 0)
      return damaged("%s (%s) has %" PRIu64 " bytes, expected 0 without rle storage", where.c_str(),
                     section_name(k), entry.bytes);
    if (k == kData && entry.digest != Sha256{})
      return damaged("%s (%s) has a digest, expected zeros", where.c_str(), section_name(k));
    block.sections[k] = entry;
  }
  if (end != block.file_bytes)
    return damaged("section directory: the last section ends at byte %" PRIu64
                   ", the file has %" PRIu64,
                   end, block.file_bytes);
  const auto unused = in.take(kDirectoryEntryBytes * (kMaxSections - n_sections));
  if (first_nonzero(unused))
    return damaged("section directory: an entry from %u on is not 0", n_sections);
  return {};
}

}  // namespace

Error damaged(const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return {ErrorCode::damaged, text};
}

bool is_text(std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return utf8_is_valid(text) && std::ranges::none_of(text, is_control);
}

const char* section_name(std::size_t section) {
  constexpr const char* kNames[] = {"run-length index", "metadata", "rotations", "tensor directory",
                                    "tokenizer",        "probes",   "data"};
  return section < std::size(kNames) ? kNames[section] : "optional section";
}

const char* feature_name(unsigned bit) { return bit < kFeatures ? kFeatureNames[bit] : nullptr; }

std::uint64_t features_of(const TensorRecord& tensor) {
  const bool needed[kFeatures] = {
      tensor.encoding == Encoding::s34,
      (tensor.flags & kFlagHalfGroups) != 0,
      tensor.scale_kind == ScaleKind::per_row,
      tensor.scale_kind == ScaleKind::per_tensor,
      tensor.activation_quant == ActivationQuant::per_token,
      tensor.output_rotation != kNoRotation,
      tensor.residual_bytes != 0,
      tensor.storage == StorageEncoding::rle,
      tensor.storage == StorageEncoding::mask,
      tensor.storage == StorageEncoding::zstd,
      (tensor.flags & kFlagFusedResidual) != 0,
  };
  std::uint64_t bits = 0;
  for (unsigned bit = 0; bit < kFeatures; ++bit) bits |= std::uint64_t{needed[bit]} << bit;
  return bits;
}

DerivedFields derive_fields(std::span<const TensorRecord> tensors,
                            std::span<const Rotation> rotations) {
  DerivedFields fields{QuantType::dense, 0, 0};
  std::size_t ternary = 0, sparse = 0, rotated = 0;
  std::map<std::uint32_t, std::uint64_t> weights;  // by block of the input rotation
  for (const TensorRecord& tensor : tensors) {
    fields.critical_features |= features_of(tensor);
    if (!is_ternary(tensor.encoding)) continue;
    ++ternary;
    if (tensor.encoding == Encoding::s34) ++sparse;
    if (tensor.input_rotation != kNoRotation || tensor.output_rotation != kNoRotation) ++rotated;
    if (tensor.input_rotation < rotations.size())
      weights[rotations[tensor.input_rotation].block] += tensor.rows() * tensor.cols();
  }
  if (ternary != 0) {
    fields.quant_type = sparse == ternary    ? QuantType::sparse_ternary
                        : sparse != 0        ? QuantType::mixed
                        : rotated == ternary ? QuantType::ternary_hadamard
                        : rotated == 0       ? QuantType::ternary
                                             : QuantType::mixed;
  }
  std::uint64_t most = 0;
  for (const auto& [block, count] : weights) {  // ascending: the larger block wins a tie
    if (count < most) continue;
    most = count;
    fields.hadamard_order = static_cast<std::uint32_t>(std::bit_width(block) - 1);
  }
  return fields;
}

Result<HeaderBlock> parse_header(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                                 bool check_digest) {
  const auto magic = bytes.first(std::min(bytes.size(), kMagic.size()));
  if (!std::ranges::equal(magic, std::span(kMagic).first(magic.size())))
    return damaged("not a .tsq file: it starts with %s, expected %s", hex(magic).c_str(),
                   hex(kMagic).c_str());
  if (bytes.size() < kHeaderBytes)
    return damaged("header: the file has %zu bytes, a header has %zu", bytes.size(), kHeaderBytes);
  ByteReader in(bytes.first(kHeaderBytes));
  in.take(kMagic.size());
  if (const auto version = in.read<std::uint32_t>(); version != kVersion)
    return errorf(ErrorCode::unsupported, "header: version is %u, this build reads version %u",
                  version, kVersion);
  if (check_digest) {
    const Sha256 found = sha256(bytes.first(kHeaderDigestAt));
    Sha256 expected;
    std::memcpy(expected.data(), bytes.data() + kHeaderDigestAt, sizeof expected);
    if (found != expected)
      return damaged("header: SHA-256 of bytes 0-991 is %s, bytes 992-1023 say %s",
                     short_hex(found).c_str(), short_hex(expected).c_str());
  }

  HeaderBlock block;
  Header& header = block.header;
  header.hidden_size = in.read<std::uint32_t>();
  header.num_layers = in.read<std::uint32_t>();
  header.vocab_size = in.read<std::uint32_t>();
  header.quant_type = static_cast<QuantType>(in.read<std::uint32_t>());
  header.hadamard_order = in.read<std::uint32_t>();
  const auto first_section = in.read<std::uint32_t>();
  auto name = parse_model_name(in.take_text(kModelNameBytes));
  if (!name) return name.error();
  header.model_name = std::move(*name);
  block.file_bytes = in.read<std::uint64_t>();
  header.critical_features = in.read<std::uint64_t>();
  header.optional_features = in.read<std::uint64_t>();
  const auto n_sections = in.read<std::uint32_t>();
  const auto reserved = in.read<std::uint32_t>();

  if (block.file_bytes != file_bytes)
    return damaged("header: file_bytes is %" PRIu64 ", the file has %" PRIu64, block.file_bytes,
                   file_bytes);
  if (auto known = check_features(header.critical_features); !known) return known.error();
  const std::pair<const char*, std::uint32_t> sizes[] = {{"hidden_size", header.hidden_size},
                                                         {"num_layers", header.num_layers},
                                                         {"vocab_size", header.vocab_size}};
  for (const auto& [field, value] : sizes) {
    if (value == 0) return damaged("header: %s is 0, expected at least 1", field);
  }
  if (first_section != kHeaderBytes)
    return damaged("header: zero_point_offset is %u, expected %zu", first_section, kHeaderBytes);
  if (n_sections < kSections || n_sections > kMaxSections)
    return damaged("header: n_sections is %u, expected %zu to %zu", n_sections,
                   std::size_t{kSections}, kMaxSections);
  if (reserved != 0)
    return damaged("header: the reserved field at byte 92 is %u, expected 0", reserved);
  if (auto parsed = parse_directory(in, n_sections, block); !parsed) return parsed.error();
  return block;
}

std::array<std::byte, kHeaderBytes> write_header(const HeaderBlock& block) {
  const Header& header = block.header;
  ByteWriter out;
  out.write_bytes(kMagic);
  out.write(kVersion);
  out.write(header.hidden_size);
  out.write(header.num_layers);
  out.write(header.vocab_size);
  out.write(static_cast<std::uint32_t>(header.quant_type));
  out.write(header.hadamard_order);
  out.write(static_cast<std::uint32_t>(kHeaderBytes));
  out.write_text(header.model_name);
  out.pad_to(2 * kModelNameBytes);
  out.write(block.file_bytes);
  out.write(header.critical_features);
  out.write(header.optional_features);
  out.write(static_cast<std::uint32_t>(kSections));
  out.write(std::uint32_t{0});
  for (std::size_t k = 0; k < kSections; ++k) {
    const SectionEntry& entry = block.sections[k];
    out.write(static_cast<std::uint32_t>(k + 1));
    out.write(std::uint32_t{0});
    out.write(entry.offset);
    out.write(entry.bytes);
    out.write(entry.count);
    out.write_bytes(entry.digest);
  }
  std::array<std::byte, kHeaderBytes> bytes{};
  std::memcpy(bytes.data(), out.bytes().data(), out.size());
  const Sha256 digest = sha256(std::span(bytes).first(kHeaderDigestAt));
  std::memcpy(bytes.data() + kHeaderDigestAt, digest.data(), digest.size());
  return bytes;
}

}  // namespace tsq::format
