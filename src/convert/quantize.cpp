#include "convert/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/half.h"
#include "format/encodings.h"

namespace tsq::convert {
namespace {

using format::kDenseBlock;

// The value of the largest magnitude, with its sign.
float extreme(const float* values) {
  return *std::max_element(values, values + kDenseBlock,
                           [](float a, float b) { return std::abs(a) < std::abs(b); });
}

// Stores the scale; as f32, what the fp16 number is.
std::optional<float> store_scale(float scale, std::byte* out) {
  const std::uint16_t bits = f32_to_f16(scale);
  std::memcpy(out, &bits, sizeof bits);
  const float stored = f16_to_f32(bits);
  if (!std::isfinite(stored)) return std::nullopt;
  return stored;
}

// The integer nearest to value / scale in a range; the codes do not matter where scale is 0.
int nearest(float value, float scale, int low, int high) {
  if (scale == 0) return 0;
  return static_cast<int>(
      std::clamp(std::nearbyint(value / scale), static_cast<float>(low), static_cast<float>(high)));
}

}  // namespace

bool quantize_q8(std::span<const float> values, std::byte* out) {
  for (std::size_t at = 0; at < values.size(); at += kDenseBlock, out += 34) {
    const float* const block = values.data() + at;
    const auto scale = store_scale(std::abs(extreme(block)) / 127, out);
    if (!scale) return false;
    for (std::size_t i = 0; i < kDenseBlock; ++i) {
      out[2 + i] = static_cast<std::byte>(nearest(block[i], *scale, -127, 127));
    }
  }
  return true;
}

// The value of the largest magnitude gets the code 0, which is -8: the other side ends at +7.
bool quantize_q4(std::span<const float> values, std::byte* out) {
  for (std::size_t at = 0; at < values.size(); at += kDenseBlock, out += 18) {
    const float* const block = values.data() + at;
    const auto scale = store_scale(extreme(block) / -8, out);
    if (!scale) return false;
    const auto code = [&](std::size_t i) {
      return static_cast<unsigned>(nearest(block[i], *scale, -8, 7) + 8);
    };
    for (std::size_t i = 0; i < 16; ++i) {
      out[2 + i] = static_cast<std::byte>(code(i) | code(i + 16) << 4);
    }
  }
  return true;
}

}  // namespace tsq::convert
