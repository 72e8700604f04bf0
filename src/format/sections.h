// The header and the small sections as values, and back: what reader and writer share. FORMAT.md
// has the tables. Every parse function checks each field that it reads; messages do not hold the
// file's path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/byte_writer.h"
#include "base/hash.h"
#include "format/file.h"
#include "tsq/error.h"

namespace tsq::format {

inline constexpr std::size_t kHeaderBytes = 1024;
inline constexpr std::size_t kHeaderDigestAt = 992;
inline constexpr std::size_t kDirectoryAt = 96;
inline constexpr std::size_t kDirectoryEntryBytes = 64;
inline constexpr std::size_t kMaxSections = 14;
inline constexpr std::size_t kModelNameBytes = 32;
inline constexpr std::uint64_t kAlignment = 64;  // of sections and tensors
inline constexpr std::uint64_t kDataAlignment = 65536;
inline constexpr std::size_t kTensorRecordBytes = 192;
inline constexpr std::size_t kMaxNameBytes = 1024;
// Far above any model: what bounds the memory that opening a file takes.
inline constexpr std::uint64_t kMaxTensors = 32768;
inline constexpr std::size_t kMaxNamesBytes = 8u << 20;      // of all tensors
inline constexpr std::size_t kMaxRotationsBytes = 8u << 20;  // of the section
inline constexpr std::uint32_t kMaxRotationBlock = 16384;

// The seven sections, in the order of the file.
enum Section : std::size_t {
  kRunLengthIndex,
  kMetadata,
  kRotations,
  kTensors,
  kTokenizer,
  kProbes,
  kData,
  kSections,
};
const char* section_name(std::size_t section);

struct SectionEntry {
  std::uint64_t offset = 0, bytes = 0, count = 0;
  Sha256 digest{};
};

struct HeaderBlock {
  Header header;
  std::uint64_t file_bytes = 0;
  std::array<SectionEntry, kSections> sections;
  struct Optional {
    std::uint32_t kind;
    SectionEntry entry;
  };
  std::vector<Optional> optional;  // behind the data, in their order
};

// bytes: the start of the file, file_bytes of which there are.
Result<HeaderBlock> parse_header(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                                 bool check_digest);
std::array<std::byte, kHeaderBytes> write_header(const HeaderBlock& block);

Result<std::vector<Rotation>> parse_rotations(std::span<const std::byte> section,
                                              std::uint64_t count);
void write_rotations(ByteWriter& out, std::span<const Rotation> rotations);

Result<std::vector<TensorRecord>> parse_tensors(std::span<const std::byte> section,
                                                std::uint64_t count,
                                                std::span<const Rotation> rotations,
                                                std::uint64_t data_bytes);
void write_tensors(ByteWriter& out, std::span<const TensorRecord> tensors);

struct Probes {
  TokenProbe token;
  std::vector<RotationProbe> rotation;
};
Result<Probes> parse_probes(std::span<const std::byte> section, std::uint64_t count,
                            std::uint32_t vocab_size, std::span<const Rotation> rotations,
                            std::span<const TensorRecord> tensors);
void write_probes(ByteWriter& out, const TokenProbe& token,
                  std::span<const RotationProbe> rotation);

// The header fields that follow from the records.
struct DerivedFields {
  QuantType quant_type;
  std::uint32_t hadamard_order;
  std::uint64_t critical_features;
};
DerivedFields derive_fields(std::span<const TensorRecord> tensors,
                            std::span<const Rotation> rotations);

// Critical features: their bits, those of a record, and the name of a bit (null: not defined).
inline constexpr std::uint64_t kImplementedFeatures = 0x1f;
std::uint64_t features_of(const TensorRecord& tensor);
const char* feature_name(unsigned bit);

// Valid UTF-8 without control characters.
bool is_text(std::string_view text);

[[gnu::format(printf, 1, 2)]] Error damaged(const char* format, ...);

}  // namespace tsq::format
