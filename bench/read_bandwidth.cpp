#include "bench/read_bandwidth.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tsq::bench {
namespace {

constexpr std::size_t kLine = 64;
// Less would be over before the threads have started.
constexpr std::size_t kLeastBytes = std::size_t{16} << 20;

// Two registers of 16 bytes where a level has no larger ones.
using Lanes [[gnu::vector_size(32)]] = std::uint64_t;

template <int kStreams, int kAhead>
[[gnu::always_inline]] inline void read_streams(const std::byte* from, std::size_t bytes,
                                                Word& word) {
  const std::size_t step = bytes / kStreams / kLine * kLine;
  Lanes sums[kStreams] = {};
  for (std::size_t i = 0; i < step; i += kLine) {
    for (int s = 0; s < kStreams; ++s) {
      const std::byte* const at = from + s * step + i;
      if (kAhead != 0) __builtin_prefetch(at + kAhead);
      Lanes line[2];
      std::memcpy(line, __builtin_assume_aligned(at, kLine), kLine);
      sums[s] ^= line[0] ^ line[1];
    }
  }
  for (int s = 1; s < kStreams; ++s) sums[0] ^= sums[s];
  std::memcpy(word.data(), &sums[0], sizeof word);
}

using Reader = void(const std::byte*, std::size_t, Word&);

template <int kStreams, int kAhead>
void read_plain(const std::byte* from, std::size_t bytes, Word& word) {
  read_streams<kStreams, kAhead>(from, bytes, word);
}

#ifdef __x86_64__
template <int kStreams, int kAhead>
[[gnu::target("avx2")]] void read_avx2(const std::byte* from, std::size_t bytes, Word& word) {
  read_streams<kStreams, kAhead>(from, bytes, word);
}
#endif

#define TSQ_READERS(read)                                                                         \
  read<1, 0>, read<2, 0>, read<4, 0>, read<1, 2048>, read<2, 2048>, read<4, 2048>, read<1, 8192>, \
      read<2, 8192>, read<4, 8192>
constexpr Reader* kPlain[kReaders] = {TSQ_READERS(read_plain)};
#ifdef __x86_64__
constexpr Reader* kAvx2[kReaders] = {TSQ_READERS(read_avx2)};
#endif
#undef TSQ_READERS

Reader* pick(std::size_t reader) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return kAvx2[reader];
#endif
  return kPlain[reader];
}

}  // namespace

Word read_all(std::size_t reader, std::span<const std::byte> bytes) {
  Word word;
  pick(reader)(bytes.data(), bytes.size(), word);
  return word;
}

void ReadCeiling::measure(std::span<const std::byte> bytes) {
  const auto n = static_cast<std::size_t>(threads_);
  const std::size_t share = bytes.size() / n / kLine * kLine;
  const std::size_t passes =
      std::max<std::size_t>(1, kLeastBytes / std::max<std::size_t>(1, share * n));
  std::vector<Word> words(n);
  std::array<double, kReaders> speeds{};
  for (std::size_t reader = 0; reader < kReaders; ++reader) {
    const double seconds = slowest_seconds(threads_, clock_, [&](int t) {
      const auto i = static_cast<std::size_t>(t);
      for (std::size_t pass = 0; pass < passes; ++pass) {
        words[i] = read_all(reader, bytes.subspan(i * share, share));
        asm volatile("" : : "g"(words[i].data()) : "memory");  // every pass, not only the last
      }
    });
    speeds[reader] = static_cast<double>(share * n * passes) / seconds / 1e9;
  }
  add(speeds);
}

}  // namespace tsq::bench
