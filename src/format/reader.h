// A span of bytes in, the file's records and spans of its tensors out. Whatever the bytes, the
// answer is a File whose every promised byte is readable, or an Error that says where, what was
// found and what would be right.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/metadata.h"
#include "format/file.h"

namespace tsq::format {

struct ParseOptions {
  bool check_digests = true;  // header and small sections; fuzzers turn it off
};

class File {
 public:
  // bytes must outlive the File: everything it hands out is a view of them.
  static Result<File> parse(std::span<const std::byte> bytes, const ParseOptions& options = {});

  const Header& header() const { return header_; }
  const Metadata& metadata() const { return metadata_; }
  std::span<const Rotation> rotations() const { return rotations_; }
  std::span<const TensorRecord> tensors() const { return tensors_; }
  const TensorRecord* find(std::string_view name) const;
  std::span<const RotationProbe> rotation_probes() const { return rotation_probes_; }
  const TokenProbe& token_probe() const { return token_probe_; }

  std::span<const std::byte> body(const TensorRecord& tensor) const;
  std::span<const float> scales(const TensorRecord& tensor) const;
  // The raw tokenizer section; empty where the file has none. TokenizerView reads it.
  std::span<const std::byte> tokenizer_section() const { return tokenizer_; }
  std::uint64_t file_bytes() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_, data_, tokenizer_;
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
