// Memory that ends where the process may not read.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tsq::kernels::test {

// n values whose last byte is the last one of a page; the page behind it is unmapped.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::size_t n) : n_(n) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t used = (n * sizeof(T) + page - 1) / page * page;
    mapped_ = used + page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + used, page, PROT_NONE) != 0) std::abort();
    data_ = reinterpret_cast<T*>(base_ + used - n * sizeof(T));
  }
  Guarded(const Guarded& other) : Guarded(other.n_) {
    std::memcpy(data_, other.data_, n_ * sizeof(T));
  }
  Guarded(Guarded&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        data_(other.data_),
        n_(other.n_),
        mapped_(other.mapped_) {}
  Guarded& operator=(Guarded other) noexcept {
    std::swap(base_, other.base_);
    std::swap(data_, other.data_);
    std::swap(n_, other.n_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~Guarded() {
    if (base_ != nullptr) munmap(base_, mapped_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return n_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + n_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + n_; }

 private:
  std::byte* base_;
  T* data_;
  std::size_t n_;
  std::size_t mapped_;
};

}  // namespace tsq::kernels::test
