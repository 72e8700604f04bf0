#include "tokenizer/byte_alphabet.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tsq {
namespace {

constexpr std::size_t kCharacters = 0x144;  // the last one is U+0143
constexpr std::int16_t kNone = -1;

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::array<std::int16_t, kCharacters> kByteOf = [] {
  std::array<std::int16_t, kCharacters> bytes{};
  bytes.fill(kNone);
  std::size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[stands_for_itself(byte) ? static_cast<std::size_t>(byte) : next++] =
        static_cast<std::int16_t>(byte);
  }
  return bytes;
}();

}  // namespace

std::optional<std::string> bytes_from_gpt2_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t character = static_cast<unsigned char>(text[i]);
    if (character >= 0x80) {  // the whole alphabet is below U+0800: two bytes each
      if (character < 0xc2 || character > 0xc5 || i + 1 == text.size()) return std::nullopt;
      const auto second = static_cast<unsigned char>(text[++i]);
      if ((second & 0xc0) != 0x80) return std::nullopt;
      character = (character & 0x1f) << 6 | (second & 0x3f);
    }
    if (character >= kCharacters || kByteOf[character] == kNone) return std::nullopt;
    bytes += static_cast<char>(kByteOf[character]);
  }
  return bytes;
}

}  // namespace tsq
