// The rotations section.
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <string>

#include "base/byte_reader.h"
#include "base/errorf.h"
#include "format/sections.h"

namespace tsq::format {
namespace {

constexpr std::size_t kRotationBytes = 16;  // without the signs
constexpr std::uint32_t kFlagSigns = 1;

std::size_t sign_words(std::uint32_t width) { return (std::size_t{width} + 31) / 32; }

}  // namespace

Result<std::vector<Rotation>> parse_rotations(std::span<const std::byte> section,
                                              std::uint64_t count) {
  if (count > section.size() / kRotationBytes)
    return damaged("rotations: %" PRIu64 " records are promised, the section has %zu bytes", count,
                   section.size());
  if (section.size() > kMaxRotationsBytes)
    return errorf(ErrorCode::unsupported, "rotations: %zu bytes, at most %zu are supported",
                  section.size(), kMaxRotationsBytes);
  std::vector<Rotation> rotations;
  rotations.reserve(count);
  ByteReader in(section);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string where = stringf("rotation %" PRIu64, i);
    if (in.left() < kRotationBytes)
      return damaged("%s is cut off at byte %zu of its section", where.c_str(), in.offset());
    Rotation rotation;
    rotation.block = in.read<std::uint32_t>();
    rotation.width = in.read<std::uint32_t>();
    const auto flags = in.read<std::uint32_t>();
    const auto reserved = in.read<std::uint32_t>();
    if (!std::has_single_bit(rotation.block) || rotation.block > kMaxRotationBlock)
      return damaged("%s: block is %u, expected a power of two up to %u", where.c_str(),
                     rotation.block, kMaxRotationBlock);
    if (rotation.width == 0 || rotation.width % rotation.block != 0)
      return damaged("%s: width is %u, expected a multiple of the block of %u", where.c_str(),
                     rotation.width, rotation.block);
    if ((flags & ~kFlagSigns) != 0)
      return damaged("%s: flags are 0x%x, only bit 0 is defined", where.c_str(), flags);
    if (reserved != 0)
      return damaged("%s: reserved field is %u, expected 0", where.c_str(), reserved);
    if (flags != 0) {
      const std::size_t words = sign_words(rotation.width);
      if (words > in.left() / 4)
        return damaged("%s: %u signs need %zu bytes, %zu are left", where.c_str(), rotation.width,
                       4 * words, in.left());
      rotation.signs.resize(words);
      for (std::uint32_t& word : rotation.signs) word = in.read<std::uint32_t>();
      const std::uint32_t used = rotation.width % 32;
      if (used != 0 && rotation.signs.back() >> used != 0)
        return damaged("%s: a sign bit is set behind the width of %u", where.c_str(),
                       rotation.width);
    }
    rotations.push_back(std::move(rotation));
  }
  if (in.left() != 0)
    return damaged("rotations: %zu bytes follow the last record, expected 0", in.left());
  return rotations;
}

void write_rotations(ByteWriter& out, std::span<const Rotation> rotations) {
  for (const Rotation& rotation : rotations) {
    out.write(rotation.block);
    out.write(rotation.width);
    out.write(rotation.signs.empty() ? 0 : kFlagSigns);
    out.write(std::uint32_t{0});
    for (const std::uint32_t word : rotation.signs) out.write(word);
  }
}

}  // namespace tsq::format
