// A fuzzer's bytes as the values that a target is made of. Past their end everything is 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tsq::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

  std::uint8_t byte() { return read<std::uint8_t>(); }
  std::size_t below(std::size_t limit) { return read<std::uint16_t>() % limit; }
  bool flag() { return (byte() & 1) != 0; }

  template <class T>
  T read() {
    T value{};
    const std::size_t n = std::min(sizeof value, bytes_.size());
    if (n > 0) std::memcpy(&value, bytes_.data(), n);
    bytes_ = bytes_.subspan(n);
    return value;
  }
  std::string_view text(std::size_t n) {
    n = std::min(n, bytes_.size());
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), n);
    bytes_ = bytes_.subspan(n);
    return text;
  }
  std::string_view rest() { return text(bytes_.size()); }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace tsq::fuzz
