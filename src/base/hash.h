// SHA-256 (OpenSSL) for small sections and whole texts, XXH3-64 (xxHash) for tensor bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tsq {

using Sha256 = std::array<std::byte, 32>;
Sha256 sha256(std::span<const std::byte> bytes);
std::string hex(std::span<const std::byte> bytes);

std::uint64_t xxh3(std::span<const std::byte> bytes);

// XXH3-64 of bytes that come in pieces.
class Xxh3Stream {
 public:
  Xxh3Stream();
  Xxh3Stream(Xxh3Stream&&) noexcept;
  Xxh3Stream& operator=(Xxh3Stream&&) noexcept;
  ~Xxh3Stream();
  void reset();
  void update(std::span<const std::byte> bytes);
  std::uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tsq
