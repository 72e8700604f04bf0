// What opening may cost: no more than the small sections, whatever a file promises in them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "format/probes.h"
#include "format/reader.h"
#include "format/sections.h"
#include "format_files.h"
#include "temporary_folder.h"

namespace tsq::format {
namespace {

// Rotations of one block of `block` inputs, each of a q4 tensor of one row with `probes` probes.
FileContents rotated_rows(std::uint32_t rotations, std::uint32_t block, std::uint32_t probes) {
  FileContents contents = sample_contents();
  contents.rotations.assign(rotations, {.block = block, .width = block, .signs = {}});
  contents.tensors.clear();
  contents.rotation_probes.clear();
  for (std::uint32_t i = 0; i < rotations; ++i) {
    TensorRecord tensor;
    tensor.name = std::to_string(i);
    tensor.encoding = Encoding::q4;
    tensor.n_dims = 1;
    tensor.dims[0] = block;
    tensor.input_rotation = i;
    contents.tensors.push_back(std::move(tensor));
    for (std::uint32_t k = 0; k < probes; ++k)
      contents.rotation_probes.push_back({.rotation = i, .tensor = i, .col = k % block});
  }
  return contents;
}

std::string create_error(FileContents contents) {
  const TemporaryFolder folder;
  const auto writer = Writer::create(folder.path() / "out.tsq", std::move(contents));
  return writer ? "no error" : writer.error().message();
}

TEST(OpenCost, ProbesOfARotationAreLimited) {
  EXPECT_EQ(create_error(rotated_rows(2, 32, 16)), "no error");
  EXPECT_EQ(create_error(rotated_rows(2, 32, 17)),
            "rotation probe 16: rotation 0 has more than 16 probes");
  // The reader says the same: 32 probes of two rotations become those of one.
  Bytes bytes = make_file(rotated_rows(2, 32, 16));
  ASSERT_TRUE(File::parse(bytes.span()));
  const std::size_t probe = section_at(bytes, 5) + 216 + 32 * 16;
  put(bytes, probe, 0u);
  put(bytes, probe + 4, 0u);
  sign(bytes);
  const auto file = File::parse(bytes.span());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::damaged);
  EXPECT_EQ(file.error().message(), "rotation probe 16: rotation 0 has more than 16 probes");
}

TEST(OpenCost, BlocksOfAllProbesAreLimited) {
  EXPECT_EQ(create_error(rotated_rows(256, 16384, 16)), "no error");
  EXPECT_EQ(create_error(rotated_rows(257, 16384, 16)),
            "rotation probe 4096: the blocks up to its own have 67125248 inputs, expected at most "
            "67108864");
}

// A copy of bytes whose pages can be closed to reading.
class Pages {
 public:
  explicit Pages(const Bytes& bytes) : size_(bytes.size()) {
    map_ = static_cast<std::byte*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(map_, bytes.data(), size_);
  }
  ~Pages() { munmap(map_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::span<const std::byte> span() const { return {map_, size_}; }
  // All whole pages before `first` and from `end` on.
  void close_but(std::uint64_t first, std::uint64_t end) {
    constexpr std::uint64_t kPage = 65536;  // or a smaller one
    first = first / kPage * kPage;
    end = (end + kPage - 1) / kPage * kPage;
    EXPECT_EQ(mprotect(map_, first, PROT_NONE), 0);
    if (end < size_) {
      EXPECT_EQ(mprotect(map_ + end, size_ - end, PROT_NONE), 0);
    }
  }

 private:
  std::byte* map_;
  std::size_t size_;
};

// Rows of 2^20 inputs of which only the super-blocks that hold the probe's block can be read.
TEST(OpenCost, AProbeReadsItsBlockAlone) {
  constexpr std::uint64_t kCols = 1 << 20, kBlock = 1024, kPart = 640;
  for (const Encoding encoding : {Encoding::t1, Encoding::t2, Encoding::q4}) {
    for (const std::uint64_t col : {std::uint64_t{3}, kCols / 2 + 5, kCols - 1}) {
      FileContents contents = sample_contents();
      contents.rotations = {{.block = kBlock, .width = kCols, .signs = {}}};
      TensorRecord tensor = contents.tensors[is_ternary(encoding) ? kQ : kEmbd];
      tensor.encoding = encoding;
      tensor.dims = {kCols, 1, 1, 1};
      tensor.input_rotation = 0;
      contents.tensors = {tensor};
      contents.rotation_probes = {{.col = col}};
      Pages pages(make_file(std::move(contents)));
      const auto file = File::parse(pages.span());
      ASSERT_TRUE(file) << file.error().message();
      const auto body =
          static_cast<std::uint64_t>(file->body(file->tensors()[0]).data() - pages.span().data());
      const std::uint64_t part_bytes =
          is_ternary(encoding) ? row_block_bytes({encoding, 0, ScaleKind::per_group, 1, kPart})
                               : dense_row_bytes(encoding, tensor.flags, kPart);
      const std::uint64_t start = col / kBlock * kBlock;
      pages.close_but(body + start / kPart * part_bytes,
                      body + (start + kBlock + kPart - 1) / kPart * part_bytes);
      EXPECT_TRUE(check_rotation_probes(*file)) << encoding_name(encoding) << " " << col;
    }
  }
}

// Time that grows with rotations times tensors, as many as there may be, would be seconds here.
TEST(OpenCost, ManyRotationsAreLinear) {
  const Bytes bytes = make_file(rotated_rows(kMaxTensors, 1, 1));
  const std::clock_t start = std::clock();
  const auto file = File::parse(bytes.span());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_LT(seconds, 3);
}

}  // namespace
}  // namespace tsq::format
