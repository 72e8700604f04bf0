#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/errorf.h"

namespace tsq {
namespace {

void unmap(std::span<const std::byte> bytes) {
  if (!bytes.empty()) ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const ErrorCode code =
        errno == ENOENT || errno == ENOTDIR ? ErrorCode::not_found : ErrorCode::io;
    return errorf(code, "cannot open: %s", std::strerror(errno));
  }
  struct Close {
    int descriptor;
    ~Close() { ::close(descriptor); }
  } const close{descriptor};

  struct stat info;
  if (::fstat(descriptor, &info) != 0)
    return errorf(ErrorCode::io, "cannot read its size: %s", std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return errorf(ErrorCode::io, "is a folder, expected a file");
  if (!S_ISREG(info.st_mode)) return errorf(ErrorCode::io, "is not a regular file");
  if (info.st_size == 0) return MappedFile({});

  const auto size = static_cast<std::size_t>(info.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED)
    return errorf(ErrorCode::io, "cannot map %zu bytes: %s", size, std::strerror(errno));
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap(bytes_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

void MappedFile::release() const {
  if (bytes_.empty()) return;
  ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

MappedFile::~MappedFile() { unmap(bytes_); }

}  // namespace tsq
