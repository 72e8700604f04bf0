// Little-endian fields appended to a growing buffer: the counterpart of ByteReader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/byte_reader.h"

namespace tsq {

class ByteWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void write(T value) { write_bytes(std::as_bytes(std::span(&value, 1))); }
  void write_bytes(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    bytes_.resize(bytes_.size() + bytes.size());
    std::memcpy(bytes_.data() + bytes_.size() - bytes.size(), bytes.data(), bytes.size());
  }
  // Room for so many bytes more; without it, growing takes up to twice the bytes for a while.
  void reserve(std::size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  void write_text(std::string_view text) { write_bytes(std::as_bytes(std::span(text))); }
  void pad_to(std::size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }
  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace tsq
