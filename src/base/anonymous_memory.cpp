#include "base/anonymous_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

namespace tsq {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

AnonymousMemory::AnonymousMemory(std::size_t bytes) {
  if (bytes == 0) return;
  mapped_bytes_ = bytes + kHugePage;
  if (mapped_bytes_ < bytes) throw std::bad_alloc();
  mapped_ =
      ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped_ == MAP_FAILED) throw std::bad_alloc();
  data_ =
      static_cast<std::byte*>(mapped_) + (-reinterpret_cast<std::uintptr_t>(mapped_) % kHugePage);
#ifdef MADV_HUGEPAGE
  ::madvise(data_, bytes, MADV_HUGEPAGE);  // refused: small ones
#endif
}

AnonymousMemory::AnonymousMemory(AnonymousMemory&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)),
      mapped_bytes_(other.mapped_bytes_),
      data_(std::exchange(other.data_, nullptr)) {}

AnonymousMemory& AnonymousMemory::operator=(AnonymousMemory&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  return *this;
}

AnonymousMemory::~AnonymousMemory() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
}

}  // namespace tsq
