// The Walsh-Hadamard transform for any vector of floats (kernels/avx2/floats.h, avx512/floats.h).
//
// Trick: a pass loads eight vectors once and takes three stages between them, the first one those
// inside a vector too. A block of 16 KiB goes through all of its passes in L1; larger ones
// are made of such blocks. While a block is in work the next one is fetched, evenly spread: the
// sums keep the adders busy, the memory has to work at the same time.
// Order: stages ascend for every element, so every sum is the reference's.
// Registers, of 16: data 8, a sum, in the first pass 3 of inner(), a factor.
#pragma once

#include "kernels/x86/vectors.h"

namespace tsq::kernels {
namespace {

constexpr std::size_t kRadix = 8;
constexpr std::size_t kLeaf = kRadix * kWidth;  // floats that the first pass holds at a time
constexpr std::size_t kResident = 4096;         // floats that stay in L1
constexpr std::size_t kDistance = 1024;         // what is fetched begins a block ahead, or this far

// f(Constant<n>()) for an n of 1, 2, 4, ... kMost.
template <std::size_t kMost, class F>
void with_constant(std::size_t n, F f) {
  if constexpr (kMost > 1) {
    if (n < kMost) return with_constant<kMost / 2>(n, f);
  }
  f(Constant<kMost>());
}

// What a value goes through before the first stage or after the last; i: its vector's first index.
struct Unchanged {
  Vec operator()(Vec v, std::size_t) const { return v; }
};

// What to fetch next, a few lines at a time.
struct Ahead {
  const float* at;

  template <std::size_t kFloats>
  void fetch() {
    constexpr std::size_t kLine = 16;
    unroll<kFloats / kLine>([&](auto k) { __builtin_prefetch(at + k.value * kLine); });
    at += kFloats;
  }
};

// The stages step, 2 step, ... across n vectors.
template <std::size_t step, std::size_t n>
[[gnu::always_inline]] inline void butterflies(Vec (&v)[n]) {
  if constexpr (step < n) {
    unroll<n>([&](auto k) {
      if constexpr ((k.value & step) == 0) {
        const Vec a = v[k.value];
        const Vec b = v[k.value + step];
        v[k.value] = add(a, b);
        v[k.value + step] = sub(a, b);
      }
    });
    butterflies<2 * step>(v);
  }
}

// A whole transform of n vectors from index i on.
template <std::size_t n, class First, class Last>
[[gnu::always_inline]] inline void leaf(const float* x, float* y, std::size_t i, First first,
                                        Last& last) {
  Vec v[n];
  unroll<n>([&](auto k) {
    const std::size_t at = i + k.value * kWidth;
    v[k.value] = inner(first(load(x + at), at), kWidth);
  });
  butterflies<1>(v);
  unroll<n>([&](auto k) {
    const std::size_t at = i + k.value * kWidth;
    store(y + at, last(v[k.value], at));
  });
}

// The stages h, ... between n runs of h floats from index i on.
template <std::size_t n, class Last>
[[gnu::always_inline]] inline void pass(float* y, std::size_t i, std::size_t h, Ahead& ahead,
                                        Last& last) {
  for (const std::size_t end = i + h; i < end; i += kWidth) {
    ahead.fetch<kLeaf / 4>();
    Vec v[n];
    unroll<n>([&](auto k) { v[k.value] = load(y + i + k.value * h); });
    butterflies<1>(v);
    unroll<n>([&](auto k) { store(y + i + k.value * h, last(v[k.value], i + k.value * h)); });
  }
}

// y = the transform of n elements from index i on, n at least kWidth.
template <class First, class Last>
void transform(const float* x, float* y, std::size_t i, std::size_t n, Ahead& ahead, First first,
               Last& last) {
  if (n <= kLeaf) {
    return with_constant<kRadix>(n / kWidth, [&](auto v) { leaf<v.value>(x, y, i, first, last); });
  }
  Unchanged unchanged;
  std::size_t h = kLeaf;
  if (n > kResident) {
    h = n / kRadix > kResident ? n / kRadix : kResident;
    for (std::size_t start = i; start < i + n; start += h) {
      Ahead next{x + start + h};
      transform(x, y, start, h, start + h < i + n ? next : ahead, first, unchanged);
    }
  } else {
    for (std::size_t start = i; start < i + n; start += h) {
      ahead.fetch<kLeaf / 2>();
      leaf<kRadix>(x, y, start, first, unchanged);
    }
    for (; n / h > kRadix; h *= kRadix) {
      for (std::size_t start = i; start < i + n; start += kRadix * h) {
        pass<kRadix>(y, start, h, ahead, unchanged);
      }
    }
  }
  with_constant<kRadix>(n / h, [&](auto runs) { pass<runs.value>(y, i, h, ahead, last); });
}

// y = the transforms of each run of n; `after` is what will be read next.
template <class First, class Last>
void transforms(const float* x, float* y, std::size_t count, std::size_t n, const float* after,
                First first, Last& last) {
  if (n >= kWidth) {
    for (std::size_t i = 0; i < count; i += n) {
      const std::size_t next = i + (n > kDistance ? n : kDistance);
      Ahead ahead{next < count ? x + next : after};
      transform(x, y, i, n, ahead, first, last);
    }
    return;
  }
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(y + i, last(inner(first(load(x + i), i), n), i));
  if (i < count) {
    const Vec v = inner(first(load_first(x + i, count - i), i), n);
    store_first(y + i, count - i, last(v, i));
  }
}

inline Vec norm(std::size_t block) {
  return broadcast(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(block))));
}

struct Flipped {
  const std::uint32_t* signs;
  Vec operator()(Vec v, std::size_t i) const { return flip(v, signs, i); }
};
struct Scaled {
  Vec factor;
  Vec operator()(Vec v, std::size_t) const { return mul(v, factor); }
};

// The rotations of kernels.h; last(v, i) is to scale by norm(block).
template <class Last>
void rotate_runs(const float* x, const std::uint32_t* signs, std::size_t count, std::size_t block,
                 float* y, Last last) {
  if (signs == nullptr) return transforms(x, y, count, block, x, Unchanged(), last);
  transforms(x, y, count, block, x, Flipped{signs}, last);
}

inline void unrotate_runs(const float* x, const std::uint32_t* signs, std::size_t count,
                          std::size_t block, float* y) {
  Scaled scaled{norm(block)};
  if (signs == nullptr) return transforms(x, y, count, block, x, Unchanged(), scaled);
  auto flipped = [=](Vec v, std::size_t i) { return flip(scaled(v, i), signs, i); };
  transforms(x, y, count, block, x, Unchanged(), flipped);
}

}  // namespace
}  // namespace tsq::kernels
