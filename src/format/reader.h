// A span of bytes in, the file's records and spans of its tensors out. Whatever the bytes, the
// answer is a File whose every promised byte is readable, or an Error that says where, what was
// found and what would be right.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/metadata.h"
#include "format/file.h"

namespace tsq::format {

struct ParseOptions {
  bool check_digests = true;  // header and small sections; fuzzers turn it off
};

// A section behind the data, of a feature that this build does not know. Nothing reads it but
// verify().
struct OptionalSection {
  std::uint32_t kind;
  std::uint64_t padding_at;            // byte of the file
  std::span<const std::byte> padding;  // between the section before and this one
  std::span<const std::byte> bytes;
  Sha256 digest;
};

class File {
 public:
  // bytes must outlive the File, everything it hands out is a view of them, and must start at a
  // multiple of 64. The data section is not read: verify() does that, and the rotation probes are
  // compared by check_rotation_probes().
  static Result<File> parse(std::span<const std::byte> bytes, const ParseOptions& options = {});

  const Header& header() const { return header_; }
  const Metadata& metadata() const { return metadata_; }
  std::span<const Rotation> rotations() const { return rotations_; }
  // From now on the blocks of the model's main rotation are of this size, whatever the file says.
  // invalid_argument: the model is not rotated, or a width is no multiple of the block.
  Result<void> override_main_block(std::uint32_t block);
  std::span<const TensorRecord> tensors() const { return tensors_; }
  const TensorRecord* find(std::string_view name) const;
  std::span<const RotationProbe> rotation_probes() const { return rotation_probes_; }
  const TokenProbe& token_probe() const { return token_probe_; }

  // Of a tensor of this file, at a multiple of 64.
  std::span<const std::byte> body(const TensorRecord& tensor) const;
  std::span<const float> scales(const TensorRecord& tensor) const;
  TensorBytes bytes(const TensorRecord& tensor) const { return {body(tensor), scales(tensor)}; }
  // The raw tokenizer section; empty where the file has none. TokenizerView reads it.
  std::span<const std::byte> tokenizer_section() const { return tokenizer_; }
  // The whole data section: the tensors and the zeros between them.
  std::span<const std::byte> data() const { return data_; }
  std::span<const OptionalSection> optional_sections() const { return optional_sections_; }
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  friend class Writer;  // has its own output checked before it writes the data
  // Parses a file of file_bytes bytes of which front is the start, up to the data section at least.
  static Result<File> parse_front(std::span<const std::byte> front, std::uint64_t file_bytes,
                                  const ParseOptions& options);
  Result<void> index_names();
  Result<void> check_derived_fields() const;

  std::span<const std::byte> data_, tokenizer_;
  std::vector<OptionalSection> optional_sections_;
  std::uint64_t file_bytes_ = 0;
  Header header_;
  Metadata metadata_;
  std::vector<Rotation> rotations_;
  std::vector<TensorRecord> tensors_;
  std::vector<std::uint32_t> by_name_;  // sorted
  std::vector<RotationProbe> rotation_probes_;
  TokenProbe token_probe_;
};

// A mapped file and its File. The path is put before every message.
struct OpenedFile {
  MappedFile map;
  File file;
};
Result<OpenedFile> open(const std::filesystem::path& path, const ParseOptions& options = {});

}  // namespace tsq::format
