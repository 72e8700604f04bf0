// Large memory that belongs to no file.
#pragma once

#include <cstddef>

namespace tsq {

// Zeroed pages that cost nothing until touched, huge ones where the system has them. Move-only.
class AnonymousMemory {
 public:
  AnonymousMemory() = default;
  // Throws std::bad_alloc.
  explicit AnonymousMemory(std::size_t bytes);
  AnonymousMemory(AnonymousMemory&& other) noexcept;
  AnonymousMemory& operator=(AnonymousMemory&& other) noexcept;
  ~AnonymousMemory();

  std::byte* data() const { return data_; }  // at a multiple of 2 MiB

 private:
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace tsq
