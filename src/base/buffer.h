// Owning memory at 64-byte boundaries, zeroed.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace tsq {

// bytes of zeroed memory at a 64-byte boundary; large ones cost nothing until touched. Throws
// std::bad_alloc. Freed by free_zeroed() alone.
void* allocate_zeroed(std::size_t bytes);
void free_zeroed(void* memory) noexcept;

// Throws std::bad_alloc like every container; the library's borders turn that into
// out_of_memory.
template <class T>
requires std::is_trivially_copyable_v<T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    if (size > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    data_.reset(static_cast<T*>(allocate_zeroed(size * sizeof(T))));
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<T> span() { return {data(), size_}; }
  std::span<const T> span() const { return {data(), size_}; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const { free_zeroed(p); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace tsq
