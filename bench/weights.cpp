#include "bench/weights.h"

#include <sys/mman.h>

#include <array>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "kernels/layout.h"
#include "kernels/repack.h"

namespace tsq::bench {
namespace {

using namespace tsq::kernels;

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kArenaBytes = std::size_t{3} << 29;
constexpr std::size_t kLeastBytes = std::size_t{1} << 30;

// Sound weights in every encoding: all four 2-bit planes of a byte hold 0, 1 or 2, any byte up to
// 242 is five digits of t1 and of its escape form, any at all two nibbles or eight signs of s34,
// and as fp16 scales they are finite.
class Arena {
 public:
  Arena() : bytes_(static_cast<std::byte*>(std::aligned_alloc(kHugePage, kArenaBytes)), std::free) {
    if (bytes_ == nullptr) {
      std::fprintf(stderr, "the benches need 1.5 GiB of memory for weights\n");
      std::exit(1);
    }
    madvise(bytes_.get(), kArenaBytes, MADV_HUGEPAGE);
    std::array<std::byte, 256> valid{};
    std::size_t n = 0;
    for (unsigned b = 0; b < 256; ++b) {
      if ((b & b >> 1 & 0x55U) == 0) valid[n++] = static_cast<std::byte>(b);
    }
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < kArenaBytes; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      bytes_.get()[i] = valid[(state >> 33) % n];
    }
  }
  std::span<const std::byte> bytes() const { return {bytes_.get(), kArenaBytes}; }

 private:
  std::unique_ptr<std::byte, decltype(&std::free)> bytes_;
};

template <PackedForm form>
std::size_t packed_bytes(std::size_t groups, std::size_t /*lines*/) {
  return packed_row_block_bytes(form, groups * kGroup, ScaleKind::per_group);
}

constexpr Form kForms[] = {
    {"t2", &Kernels::t2_gemm, t2_row_block_bytes, ScaleKind::per_group},
    {"t1", &Kernels::t1_gemm, t1_row_block_bytes, ScaleKind::per_group},
    {"t1_escape", &Kernels::t1_escape_gemv, packed_bytes<PackedForm::t1_escape>,
     ScaleKind::per_group, false, true},
    {"s34", &Kernels::s34_gemm, s34_row_block_bytes, ScaleKind::per_group},
    {"s34_lut", &Kernels::s34_lut_gemv, packed_bytes<PackedForm::s34_lut>, ScaleKind::per_group,
     false, true},
    {"t2_tensor", &Kernels::t2_gemm, t2_row_block_bytes, ScaleKind::per_tensor, true},
};

}  // namespace

std::span<const Form> forms() { return kForms; }

std::span<const std::byte> arena() {
  static const Arena arena;
  return arena.bytes();
}

std::size_t arena_huge_bytes() {
  // The mapping that holds the arena's first byte.
  std::ifstream maps("/proc/self/smaps");
  const auto at = reinterpret_cast<std::uintptr_t>(arena().data());
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) here = first <= at && at < last;
    std::size_t kib = 0;
    if (here && std::sscanf(line.c_str(), "AnonHugePages: %zu kB", &kib) == 1) return kib << 10;
  }
  return 0;
}

Copies::Copies(const Form& form, Shape shape) : form_(form), shape_(shape) {
  const std::size_t blocks = (shape.rows + kRowBlock - 1) / kRowBlock;
  bytes_ = blocks * form.row_block_bytes(shape.cols / kGroup, scale_lines(form.scale_kind));
  size_ = (kLeastBytes + bytes_ - 1) / bytes_;
  assert(size_ * bytes_ <= kArenaBytes);
}

TernaryMatrix Copies::operator[](std::size_t copy) const {
  static constexpr float kScale = 0.01F;
  return {.body = arena().data() + copy * bytes_,
          .rows = shape_.rows,
          .cols = shape_.cols,
          .scale_kind = form_.scale_kind,
          .scales = &kScale};
}

}  // namespace tsq::bench
