// What a file may hold of features that this build does not know: bits, and sections behind the
// data.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "base/hash.h"
#include "format_files.h"
#include "format_findings.h"

namespace tsq::format {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kFirst = 96 + 64 * 7, kSecond = kFirst + 64;  // entries of the directory

// The sample with two more sections: 100 bytes of kind 9, 64 bytes of kind 12.
Bytes with_sections() {
  const std::size_t end = sample_file().size();
  Bytes bytes(end + 128 + 64);
  std::memcpy(bytes.data(), sample_file().data(), end);
  std::memset(bytes.data() + end, 0xee, 100);
  std::memset(bytes.data() + end + 128, 0x11, 64);
  put(bytes, 88, 9u);
  const auto entry = [&](std::size_t at, std::uint32_t kind, std::uint64_t offset,
                         std::uint64_t n) {
    put(bytes, at, kind);
    put(bytes, at + 8, offset);
    put(bytes, at + 16, n);
    put<std::uint64_t>(bytes, at + 24, 77);
    put(bytes, at + 32, sha256(bytes.span().subspan(offset, n)));
  };
  entry(kFirst, 9, end, 100);
  entry(kSecond, 12, end + 128, 64);
  sign(bytes);
  return bytes;
}

TEST(OptionalFeatures, UnknownBitsAreAcceptedAndKept) {
  Bytes bytes = copy_of(sample_file().span());
  put(bytes, 80, kMost);
  sign(bytes);
  const auto file = File::parse(bytes.span());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->header().optional_features, kMost);
}

// A section of a kind from 8 on behind the data is skipped; its place is checked all the same.
TEST(OptionalFeatures, UnknownSectionsAreSkipped) {
  const std::size_t end = sample_file().size();
  Bytes bytes = with_sections();
  const auto file = File::parse(bytes.span());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->tensors().size(), kSampleTensors);
  EXPECT_EQ(file->data().size(), end - 65536);

  put<std::uint64_t>(bytes, kFirst + 8, end + 64);
  sign(bytes);
  EXPECT_EQ(File::parse(bytes.span()).error().message(),
            "section directory: entry 7 (optional section) starts at byte 78464, expected 78400");
  put<std::uint64_t>(bytes, kFirst + 8, end);
  put<std::uint64_t>(bytes, kFirst + 16, kMost - end);
  sign(bytes);
  EXPECT_EQ(File::parse(bytes.span()).error().message(),
            "section directory: entry 7 (optional section) has 18446744073709473215 bytes at byte "
            "78400, the file has 78592");
}

TEST(OptionalFeatures, VerifyFindsNothingInSoundSections) {
  const Bytes bytes = with_sections();
  const auto file = File::parse(bytes.span());
  ASSERT_TRUE(file) << file.error().message();
  const auto report = verify(*file);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->findings.empty()) << report->findings[0].where;
  EXPECT_EQ(report->checked_bytes, file->data().size() + 164);
}

TEST(OptionalFeatures, VerifyChecksDigests) {
  for (const auto& [entry, at, kind] :
       {std::tuple(kFirst, std::size_t{99}, 9), std::tuple(kSecond, std::size_t{128}, 12)}) {
    Bytes bytes = with_sections();
    const Sha256 expected = get<Sha256>(bytes, entry + 32);
    bytes[sample_file().size() + at] ^= std::byte{1};
    const std::size_t offset = get<std::uint64_t>(bytes, entry + 8);
    const Sha256 found =
        sha256(bytes.span().subspan(offset, get<std::uint64_t>(bytes, entry + 16)));
    expect_one(findings_in(std::move(bytes)),
               {"optional section of kind " + std::to_string(kind) + ": SHA-256 of its bytes",
                hex(found), hex(expected)});
  }
}

TEST(OptionalFeatures, VerifyChecksThePaddingBetween) {
  for (const std::size_t at : {100, 127}) {
    Bytes bytes = with_sections();
    bytes[sample_file().size() + at] = std::byte{7};
    expect_one(findings_in(std::move(bytes)),
               {"the bytes before the optional section of kind 12",
                "7 at byte " + std::to_string(78400 + at) + " of the file", "0"});
  }
}

TEST(OptionalFeatures, VerifyCountsThemInItsProgressAndStops) {
  const Bytes bytes = with_sections();
  const auto file = File::parse(bytes.span());
  ASSERT_TRUE(file);
  const auto report = verify(*file, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, file->data().size() + 164);
    return done < total;
  });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace tsq::format
