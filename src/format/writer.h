// Records and tensor bytes in, a .tsq file out: under a temporary name until commit().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/output_file.h"
#include "format/file.h"

namespace tsq::format {

// Everything but the tensors' bytes. What follows from other fields is filled by the writer,
// whatever stood there: the header's quant_type, hadamard_order and critical_features; the tensors'
// group sizes, offsets, sizes, digests and zero counts. A model name that is too long is cut at a
// character.
struct FileContents {
  Header header;
  std::uint64_t n_metadata = 0;
  std::vector<std::byte> metadata;  // n_metadata entries, see base/metadata.h
  std::vector<Rotation> rotations;
  std::vector<TensorRecord> tensors;
  std::vector<std::byte> tokenizer;  // build_tokenizer_section's bytes; may be empty
  std::vector<RotationProbe> rotation_probes;
};

class Writer {
 public:
  // Refuses what the reader would refuse (duplicate or empty names, bad rotations, sizes that
  // wrap): invalid_argument, or unsupported, before anything is written. The path is put before
  // messages about the file itself (io, not_found), here and in the calls below.
  static Result<Writer> create(const std::filesystem::path& target, FileContents contents);

  // Tensors come in the order of contents.tensors, each as body bytes in any number of pieces,
  // then its scales (empty without a side array).
  Result<void> append(std::span<const std::byte> body);
  Result<void> end_tensor(std::span<const float> scales, std::uint64_t zero_count);

  // Rotation probes may be given late, when the tensors have been seen; before seal(). Their
  // number is fixed by contents.rotation_probes; their places have to make sense from the start.
  void set_rotation_probes(std::vector<RotationProbe> probes);

  // Writes the sections and the header: temporary_path() is now a whole, sound file whose token
  // probe is `probe`. May be called again with another probe. invalid_argument if a tensor is
  // missing, or if the probes are not what the reader accepts.
  Result<void> seal(const TokenProbe& probe);
  const std::filesystem::path& temporary_path() const { return out_->temporary_path(); }
  // Syncs and renames. Nothing stays behind if this is never reached.
  Result<void> commit();

  const FileContents& contents() const { return contents_; }
  std::uint64_t file_bytes() const { return data_offset_ + data_bytes_; }  // once sealed

 private:
  Writer(std::filesystem::path target, FileContents contents, std::uint64_t data_bytes)
      : target_(std::move(target)), contents_(std::move(contents)), data_bytes_(data_bytes) {}
  // Everything before the data section, checked by the reader.
  Result<std::vector<std::byte>> checked_front(const TokenProbe& probe) const;

  std::filesystem::path target_;
  FileContents contents_;
  std::uint64_t data_bytes_;
  std::uint64_t data_offset_ = 0;
  std::optional<OutputFile> out_;  // from the end of create() on
  std::size_t next_tensor_ = 0;
  std::uint64_t written_ = 0;  // bytes of the current tensor's body
  Xxh3Stream digest_;
};

}  // namespace tsq::format
