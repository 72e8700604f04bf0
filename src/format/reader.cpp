#include "format/reader.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>

#include "base/errorf.h"
#include "base/zeros.h"
#include "format/sections.h"

namespace tsq::format {
namespace {

// Keys whose content stands in another section.
const char* section_of_key(std::string_view key) {
  constexpr std::string_view kVocabulary[] = {"tokenizer.ggml.tokens", "tokenizer.ggml.scores",
                                              "tokenizer.ggml.token_type", "tokenizer.ggml.merges"};
  if (std::ranges::find(kVocabulary, key) != std::end(kVocabulary)) return "tokenizer";
  if (key.starts_with("prism.hadamard.")) return "rotations";
  return nullptr;
}

Result<Metadata> parse_metadata(std::span<const std::byte> section, std::uint64_t count) {
  ByteReader in(section);
  auto metadata = Metadata::parse(in, count);
  if (!metadata) return metadata.error().at("metadata section");
  if (in.left() != 0)
    return damaged("metadata section: %zu bytes follow the last entry, expected 0", in.left());
  for (const Entry& entry : metadata->entries()) {
    if (const char* const home = section_of_key(entry.key))
      return damaged("metadata key '%s' is not allowed: its content belongs in the %s section",
                     printable(entry.key).c_str(), home);
  }
  return metadata;
}

// What header and metadata both say must agree.
Result<void> check_against_metadata(const Header& header, const Metadata& metadata) {
  const Value* const architecture = metadata.find("general.architecture");
  if (architecture == nullptr || !architecture->as_string()) return {};
  struct Twin {
    const char *field, *key;
    std::uint32_t value;
  };
  const Twin twins[] = {{"hidden_size", ".embedding_length", header.hidden_size},
                        {"num_layers", ".block_count", header.num_layers}};
  for (const auto& [field, suffix, value] : twins) {
    const std::string key = std::string(*architecture->as_string()) + suffix;
    const Value* const twin = metadata.find(key);
    if (twin == nullptr || twin->as_u64() == value) continue;
    return damaged("header: %s is %u, metadata key '%s' says otherwise", field, value,
                   printable(key).c_str());
  }
  return {};
}

Result<void> check_digest(std::span<const std::byte> section, std::size_t index,
                          const Sha256& expected) {
  const Sha256 found = sha256(section);
  if (found == expected) return {};
  return damaged("%s: SHA-256 is %s..., the header says %s...", section_name(index),
                 hex(std::span(found).first(8)).c_str(), hex(std::span(expected).first(8)).c_str());
}

Result<void> check_rotations_are_used(std::span<const Rotation> rotations,
                                      std::span<const TensorRecord> tensors,
                                      std::span<const RotationProbe> probes) {
  std::vector<bool> used(rotations.size()), probed(rotations.size());
  for (const TensorRecord& tensor : tensors)
    if (tensor.input_rotation != kNoRotation) used[tensor.input_rotation] = true;
  for (const RotationProbe& probe : probes) probed[probe.rotation] = true;
  for (std::size_t i = 0; i < rotations.size(); ++i) {
    if (!used[i]) return damaged("rotation %zu is used by no tensor, expected at least one", i);
    if (!probed[i]) return damaged("rotation %zu has no rotation probe, expected at least one", i);
  }
  return {};
}

}  // namespace

Result<File> File::parse(std::span<const std::byte> bytes, const ParseOptions& options) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment != 0)
    return errorf(ErrorCode::invalid_argument, "the bytes must start at a multiple of 64");
  return parse_front(bytes, bytes.size(), options);
}

Result<File> File::parse_front(std::span<const std::byte> front, std::uint64_t file_bytes,
                               const ParseOptions& options) {
  auto block = parse_header(front, file_bytes, options.check_digests);
  if (!block) return block.error();
  File file;
  file.header_ = std::move(block->header);
  file.file_bytes_ = file_bytes;

  std::array<std::span<const std::byte>, kData> sections;
  std::uint64_t end = kHeaderBytes;
  for (std::size_t k = 0; k < kSections; ++k) {
    const SectionEntry& entry = block->sections[k];
    const auto gap = front.subspan(end, entry.offset - end);
    if (first_nonzero(gap))
      return damaged("padding before section '%s': a byte from %" PRIu64 " on is not 0",
                     section_name(k), end);
    if (k == kData) break;
    sections[k] = front.subspan(entry.offset, entry.bytes);
    end = entry.offset + entry.bytes;
    if (!options.check_digests) continue;
    if (auto sound = check_digest(sections[k], k, entry.digest); !sound) return sound.error();
  }
  const SectionEntry& data = block->sections[kData];
  if (file_bytes == front.size()) {
    file.data_ = front.subspan(data.offset, data.bytes);
    end = data.offset + data.bytes;
    for (const auto& [kind, entry] : block->optional) {
      file.optional_sections_.push_back({kind, end, front.subspan(end, entry.offset - end),
                                         front.subspan(entry.offset, entry.bytes), entry.digest});
      end = entry.offset + entry.bytes;
    }
  }
  file.tokenizer_ = sections[kTokenizer];

  auto metadata = parse_metadata(sections[kMetadata], block->sections[kMetadata].count);
  if (!metadata) return metadata.error();
  file.metadata_ = std::move(*metadata);
  if (auto agree = check_against_metadata(file.header_, file.metadata_); !agree)
    return agree.error();

  auto rotations = parse_rotations(sections[kRotations], block->sections[kRotations].count);
  if (!rotations) return rotations.error();
  file.rotations_ = std::move(*rotations);

  auto tensors = parse_tensors(sections[kTensors], block->sections[kTensors].count, file.rotations_,
                               data.bytes);
  if (!tensors) return tensors.error();
  file.tensors_ = std::move(*tensors);
  if (auto indexed = file.index_names(); !indexed) return indexed.error();

  auto probes = parse_probes(sections[kProbes], block->sections[kProbes].count,
                             file.header_.vocab_size, file.rotations_, file.tensors_);
  if (!probes) return probes.error();
  file.token_probe_ = std::move(probes->token);
  file.rotation_probes_ = std::move(probes->rotation);
  if (auto used = check_rotations_are_used(file.rotations_, file.tensors_, file.rotation_probes_);
      !used)
    return used.error();
  if (auto agree = file.check_derived_fields(); !agree) return agree.error();
  return file;
}

Result<void> File::index_names() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  const auto name_of = [&](std::uint32_t i) -> std::string_view { return tensors_[i].name; };
  std::ranges::sort(by_name_, {}, name_of);
  const auto twin = std::ranges::adjacent_find(by_name_, {}, name_of);
  if (twin != by_name_.end())
    return damaged("tensor '%s' stands twice, expected once", printable(name_of(*twin)).c_str());
  return {};
}

Result<void> File::check_derived_fields() const {
  const DerivedFields fields = derive_fields(tensors_, rotations_);
  if (header_.quant_type != fields.quant_type)
    return damaged("header: quant_type is %u, expected %u from the tensors",
                   static_cast<unsigned>(header_.quant_type),
                   static_cast<unsigned>(fields.quant_type));
  if (header_.hadamard_order != fields.hadamard_order)
    return damaged("header: hadamard_order is %u, expected %u from the rotations",
                   header_.hadamard_order, fields.hadamard_order);
  if (header_.critical_features != fields.critical_features)
    return damaged("header: critical_features are 0x%" PRIx64 ", the tensors need 0x%" PRIx64,
                   header_.critical_features, fields.critical_features);
  return {};
}

Result<void> File::override_main_block(std::uint32_t block) {
  if (header_.hadamard_order == 0)
    return Error(ErrorCode::invalid_argument, "the weights of this model are not rotated");
  const std::uint32_t stored = std::uint32_t{1} << header_.hadamard_order;
  for (std::size_t i = 0; i < rotations_.size(); ++i)
    if (rotations_[i].block == stored && rotations_[i].width % block != 0)
      return errorf(ErrorCode::invalid_argument,
                    "rotation %zu has a width of %u, expected a multiple of the block of %u", i,
                    rotations_[i].width, block);
  for (Rotation& rotation : rotations_)
    if (rotation.block == stored) rotation.block = block;
  header_.hadamard_order = static_cast<std::uint32_t>(std::bit_width(block) - 1);
  return {};
}

const TensorRecord* File::find(std::string_view name) const {
  const auto name_of = [&](std::uint32_t i) -> std::string_view { return tensors_[i].name; };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  if (found == by_name_.end() || name_of(*found) != name) return nullptr;
  return &tensors_[*found];
}

std::span<const std::byte> File::body(const TensorRecord& tensor) const {
  return data_.subspan(tensor.body_offset, tensor.body_bytes);
}

std::span<const float> File::scales(const TensorRecord& tensor) const {
  const auto bytes = data_.subspan(tensor.scale_offset, tensor.scale_bytes);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

Result<OpenedFile> open(const std::filesystem::path& path, const ParseOptions& options) {
  auto map = MappedFile::open(path);
  if (!map) return map.error().at(path.string());
  auto file = File::parse(map->bytes(), options);
  if (!file) return file.error().at(path.string());
  return OpenedFile{std::move(*map), std::move(*file)};
}

}  // namespace tsq::format
