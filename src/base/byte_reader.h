// Little-endian fields out of a span of bytes, front to back, every read checked.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace tsq {

static_assert(std::endian::native == std::endian::little, "the file's numbers are used in place");

// The first read past the end fails the reader for good and later reads give zero: read a record,
// then ask ok().
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> T read() {
    T value{};
    const auto field = take(sizeof value);
    if (!field.empty()) std::memcpy(&value, field.data(), sizeof value);
    return value;
  }

  std::span<const std::byte> take(std::uint64_t n) {
    if (!ok_ || n > bytes_.size() - offset_) {  // subtract: a sum could wrap
      ok_ = false;
      return {};
    }
    offset_ += static_cast<std::size_t>(n);
    return bytes_.subspan(offset_ - static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  }

  std::string_view take_text(std::uint64_t n) {
    const auto bytes = take(n);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool ok() const { return ok_; }
  std::size_t offset() const { return offset_; }
  std::size_t left() const { return bytes_.size() - offset_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
  bool ok_ = true;
};

}  // namespace tsq
