// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "tsq/error.h"

namespace tsq {

// Bytes go to a temporary name in the same folder (".NAME.<pid>-<n>.tmp", created exclusively), at
// once: whoever opens temporary_path() sees what was written. commit() syncs and renames it over
// the target; without commit() the destructor removes it. A signal handler may call
// remove_temporaries() (async-signal-safe) before it ends the process.
class OutputFile {
 public:
  // Errors: not_found (no such folder), io (no permission), invalid_argument (the target is a
  // folder, a device or a pipe). Messages do not hold the path.
  static Result<OutputFile> create(const std::filesystem::path& target);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  // Appends; a full disk is an io error that names it.
  Result<void> write(std::span<const std::byte> bytes);
  // Overwrites bytes written earlier, or extends the file.
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  std::uint64_t size() const { return size_; }

  const std::filesystem::path& temporary_path() const { return temporary_; }
  // fsync, rename, fsync of the folder. The object is done afterwards; after an error the
  // destructor still removes the temporary file.
  Result<void> commit();

 private:
  OutputFile() = default;
  std::filesystem::path target_, temporary_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// Removes the temporary file of every live OutputFile of the process.
void remove_temporaries() noexcept;

}  // namespace tsq
