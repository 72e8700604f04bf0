#include "kernels/repack.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/layout.h"

namespace tsq::kernels {
namespace {

std::uint8_t byte_at(const std::byte* from) { return std::to_integer<std::uint8_t>(*from); }

// The five digits of a t1 byte.
struct Digits {
  std::uint8_t d[5];
};
constexpr std::array<Digits, 256> kDigits = [] {
  std::array<Digits, 256> all{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned fraction = byte;
    for (std::uint8_t& digit : all[byte].d) {
      fraction *= 3;
      digit = static_cast<std::uint8_t>(fraction >> 8);
      fraction &= 255;
    }
  }
  return all;
}();

constexpr std::array<std::byte, 256> kEscape = [] {
  std::array<std::byte, 256> all{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto& d = kDigits[byte].d;
    const unsigned t = 9U * d[0] + 3U * d[1] + d[2];
    const unsigned u = 3U * d[3] + d[4];
    all[byte] = static_cast<std::byte>(u < 8 ? 8 * t + u : 216 + t);
  }
  return all;
}();

void put_escape(const std::byte* super, std::size_t r, std::size_t lines, std::byte* to) {
  const std::size_t scales = r * lines * kScaleLine;
  std::memcpy(to, super, scales);
  std::transform(super + scales, super + t1_super_bytes(r, lines), to + scales,
                 [](std::byte b) { return kEscape[std::to_integer<std::size_t>(b)]; });
}

// The codes of a t1 super-block become r groups of t2.
void put_t2(const std::byte* super, std::size_t r, std::size_t lines, std::byte* to) {
  const std::byte* const tails = super + r * lines * kScaleLine;
  for (std::size_t g = 0; g < r; ++g, to += t2_group_bytes(lines)) {
    std::memcpy(to, super + g * lines * kScaleLine, lines * kScaleLine);
    std::byte* const planes = to + lines * kScaleLine;
    const std::byte* const body = tails + kT1TailBytes + g * kT1Chunks * kPlane;
    for (std::size_t lane = 0; lane < kPlane; ++lane) {  // byte j of a row's dwords
      std::uint8_t codes[kGroup / 4];                    // of inputs 4 i + j
      for (std::size_t c = 0; c < kT1Chunks; ++c) {
        std::memcpy(codes + 5 * c, kDigits[byte_at(body + c * kPlane + lane)].d, 5);
      }
      codes[30] = kDigits[byte_at(tails + lane)].d[g];
      codes[31] = kDigits[byte_at(tails + kPlane + lane)].d[g];
      for (std::size_t c = 0; c < kT2Chunks; ++c) {
        const std::uint8_t* const four = codes + 4 * c;
        planes[c * kPlane + lane] =
            static_cast<std::byte>(four[0] | four[1] << 2 | four[2] << 4 | four[3] << 6);
      }
    }
  }
}

void put_lut(const std::byte* group, std::size_t lines, std::byte* to) {
  std::memcpy(to, group, lines * kScaleLine);
  const std::byte* const nibbles = group + lines * kScaleLine;
  const std::byte* const signs = nibbles + kS34NibbleBytes;
  std::byte* const to_nibbles = to + lines * kScaleLine;
  std::byte* const to_signs = to_nibbles + kS34NibbleBytes;
  for (std::size_t row = 0; row < kRowBlock; ++row) {
    for (std::size_t pair = 0; pair < kGroup / 8; ++pair) {  // quads 2 pair and 2 pair + 1
      const std::size_t chunk = pair / 2;
      const std::byte* const from = nibbles + chunk / 2 * kPlane + 4 * row + pair % 2 * 2;
      const unsigned shift = chunk % 2 == 0 ? 0 : 4;
      to_nibbles[pair * kRowBlock + row] = static_cast<std::byte>(
          (byte_at(from) >> shift & 15) | (byte_at(from + 1) >> shift & 15) << 4);
    }
    for (std::size_t v = 0; v < kGroup / 32; ++v) {
      unsigned bits = 0;
      for (std::size_t quad = 8 * v; quad < 8 * v + 8; ++quad) {
        const std::size_t at = 4 * row + quad % 4;
        const unsigned byte = byte_at(signs + quad / 4 * kS34SignBytes + at / 8);
        bits = bits << 1 | (byte >> at % 8 & 1);
      }
      to_signs[v * kRowBlock + row] = static_cast<std::byte>(bits);
    }
  }
}

}  // namespace

std::size_t packed_row_block_bytes(PackedForm form, std::size_t cols, ScaleKind kind) noexcept {
  const std::size_t groups = cols / kGroup;
  switch (form) {
    case PackedForm::none:
      return 0;
    case PackedForm::t2:
      return t2_row_block_bytes(groups, scale_lines(kind));
    case PackedForm::t1_escape:
      return t1_row_block_bytes(groups, scale_lines(kind));
    case PackedForm::s34_lut:
      return s34_row_block_bytes(groups, scale_lines(kind));
  }
  return 0;
}

void repack(PackedForm form, const TernaryMatrix& w, RowRange rows, std::byte* packed) noexcept {
  const std::size_t lines = scale_lines(w.scale_kind);
  const std::size_t groups = w.cols / kGroup;
  const bool of_s34 = form == PackedForm::s34_lut;
  const std::size_t step = of_s34 ? 1 : kT1Super;
  const std::size_t block_bytes =
      of_s34 ? s34_row_block_bytes(groups, lines) : t1_row_block_bytes(groups, lines);
  const std::size_t to_bytes = packed_row_block_bytes(form, w.cols, w.scale_kind);
  for (std::size_t block = rows.first / kRowBlock; block * kRowBlock < rows.last; ++block) {
    const std::byte* from = w.body + block * block_bytes;
    std::byte* to = packed + block * to_bytes;
    for (std::size_t g = 0; g < groups; g += step) {
      const std::size_t r = min_size(step, groups - g);
      switch (form) {
        case PackedForm::none:
          return;
        case PackedForm::t2:
          put_t2(from, r, lines, to);
          to += r * t2_group_bytes(lines);
          break;
        case PackedForm::t1_escape:
          put_escape(from, r, lines, to);
          to += t1_super_bytes(r, lines);
          break;
        case PackedForm::s34_lut:
          put_lut(from, lines, to);
          to += s34_group_bytes(lines);
          break;
      }
      from += of_s34 ? s34_group_bytes(lines) : t1_super_bytes(r, lines);
    }
  }
}

}  // namespace tsq::kernels
