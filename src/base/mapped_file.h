// A file as a read-only span of bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "tsq/error.h"

namespace tsq {

// The mapping lives as long as the object, at one address, whatever is moved. Truncating the file
// while it is mapped ends the process at the next read beyond the new end.
class MappedFile {
 public:
  // Errors: not_found, io (no permission, a folder, not a regular file). An empty file is an empty
  // span. Messages do not hold the path: the caller adds it once.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // Gives back the memory of what has been read. It can be read again, from the file.
  void release() const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace tsq
