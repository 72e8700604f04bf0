#include "base/buffer.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tsq {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

// calloc hands out untouched pages for large sizes; the pointer it returned lies just before the
// aligned memory.
void* allocate_zeroed(std::size_t bytes) {
  const std::size_t room = bytes + kAlignment + sizeof(void*);
  void* const base = room < bytes ? nullptr : std::calloc(room, 1);
  if (base == nullptr) throw std::bad_alloc();
  const auto start = reinterpret_cast<std::uintptr_t>(base) + sizeof(void*);
  auto* const aligned = static_cast<char*>(base) + sizeof(void*) + (-start % kAlignment);
  std::memcpy(aligned - sizeof(void*), &base, sizeof(void*));
  return aligned;
}

void free_zeroed(void* memory) noexcept {
  if (memory == nullptr) return;
  void* base;
  std::memcpy(&base, static_cast<char*>(memory) - sizeof(void*), sizeof(void*));
  std::free(base);
}

}  // namespace tsq
