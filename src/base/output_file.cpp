#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/errorf.h"
#include "base/utf8.h"

namespace tsq {
namespace {

// The names that a signal handler has to remove: a list whose nodes are reused, never freed, so
// that a handler can walk it at any time.
struct Temporary {
  char path[PATH_MAX];
  std::atomic<bool> taken;
  std::atomic<bool> exists;
  Temporary* next;
};
std::atomic<Temporary*> temporaries;

Temporary* find_free_node() {
  for (Temporary* node = temporaries.load(); node != nullptr; node = node->next) {
    if (!node->taken.exchange(true)) return node;
  }
  auto* const node = new Temporary{.path = {}, .taken = true, .exists = false, .next = nullptr};
  node->next = temporaries.load();
  while (!temporaries.compare_exchange_weak(node->next, node)) {
  }
  return node;
}

void remember(const std::string& path) {
  Temporary* const node = find_free_node();
  std::memcpy(node->path, path.c_str(), path.size() + 1);
  node->exists.store(true);
}

void forget(const std::string& path) {
  for (Temporary* node = temporaries.load(); node != nullptr; node = node->next) {
    if (node->exists.load() && path == node->path) {
      node->exists.store(false);
      node->taken.store(false);
      return;
    }
  }
}

Error write_error(int error, std::uint64_t offset) {
  const char* const reason = error == ENOSPC || error == EDQUOT ? "the disk is full"
                             : error == EFBIG ? "the file would exceed the size limit"
                                              : std::strerror(error);
  return errorf(ErrorCode::io, "cannot write at byte %llu: %s",
                static_cast<unsigned long long>(offset), reason);
}

std::filesystem::path folder_of(const std::filesystem::path& target) {
  return target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
}

// So much of the target's name that a temporary one can hold it: names have 255 bytes at most.
std::string start_of_name(const std::filesystem::path& target) {
  std::string name = target.filename().native().substr(0, 200);
  name.resize(name.size() - utf8_incomplete_tail(name));
  return name;
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::filesystem::path& target) {
  if (!target.has_filename())
    return errorf(ErrorCode::invalid_argument, "names a folder, expected a file to write");
  struct stat info;
  const bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode))
    return errorf(ErrorCode::invalid_argument, "exists and is not a regular file");
  if (!exists && errno == ENAMETOOLONG)  // commit() would say so, after all the work
    return errorf(ErrorCode::io, "cannot create a file of this name: %s", std::strerror(errno));

  static std::atomic<unsigned> counter;
  OutputFile out;
  out.target_ = target;
  do {
    const std::string name = stringf(".%s.%ld-%u.tmp", start_of_name(target).c_str(),
                                     static_cast<long>(::getpid()), counter.fetch_add(1));
    out.temporary_ = folder_of(target) / name;
    if (out.temporary_.native().size() >= PATH_MAX)
      return errorf(ErrorCode::invalid_argument, "the path is longer than %d bytes", PATH_MAX);
    remember(out.temporary_.native());  // first: a signal may come as soon as the file exists
    out.descriptor_ = ::open(out.temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                             S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
    if (out.descriptor_ >= 0) return out;
    const int error = errno;
    forget(out.temporary_.native());
    errno = error;
  } while (errno == EEXIST);
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return errorf(code, "cannot create a file in its folder: %s", std::strerror(errno));
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
  forget(temporary_.native());
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) { return write_at(size_, bytes); }

Result<void> OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return write_error(n < 0 ? errno : ENOSPC, offset);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    if (offset > size_) size_ = offset;
  }
  return {};
}

Result<void> OutputFile::commit() {
  if (::fsync(descriptor_) != 0) return write_error(errno, size_);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    return errorf(ErrorCode::io, "cannot rename the finished file: %s", std::strerror(errno));
  forget(temporary_.native());
  ::close(std::exchange(descriptor_, -1));
  // A folder that cannot be synced (some network file systems) still holds the whole file.
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return {};
}

void remove_temporaries() noexcept {
  for (Temporary* node = temporaries.load(); node != nullptr; node = node->next) {
    if (node->exists.load()) ::unlink(node->path);
  }
}

}  // namespace tsq
