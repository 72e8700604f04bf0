// Every CPU level against scalar, on any shape and any legal bytes: the same bits, and nothing read
// or written outside. An input is a byte for the operation, its shape, then values; behind the last
// byte they go on at random, so that a short input fills a large matrix.
#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "input.h"
#include "kernels/dispatch.h"
#include "kernels/isa.h"
#include "kernels/layout.h"
#include "tests/kernels/guarded.h"
#include "tests/kernels/q8.h"

namespace {

using namespace tsq;
using namespace tsq::kernels;
using test::Guarded;
using test::Q8;

class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : in_(data, size) {
    for (std::size_t i = 0; i < size; ++i) state_ = (state_ ^ data[i]) * 0x100000001b3U;
  }
  std::size_t between(std::size_t low, std::size_t high) { return low + in_.below(high - low + 1); }
  bool flag() { return in_.flag(); }
  std::uint8_t byte() {
    if (!in_.empty()) return in_.byte();
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint8_t>(state_ >> 56);
  }
  template <class T>
  T bits() {
    T value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i)
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(byte()) << (8 * i)));
    return value;
  }

 private:
  fuzz::Input in_;
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

// Any number but infinities and NaN.
float finite(Source& s) {
  auto bits = s.bits<std::uint32_t>();
  if ((bits & 0x7f800000) == 0x7f800000) bits ^= 0x40000000;
  return std::bit_cast<float>(bits);
}
// Of a size that products of three do not overflow.
float moderate(Source& s) {
  const float value = finite(s);
  return std::fabs(value) < 0x1p35F ? value
                                    : std::copysign(std::sqrt(std::fabs(value)) * 0x1p-32F, value);
}
std::uint16_t finite_half(Source& s) {
  auto bits = s.bits<std::uint16_t>();
  if ((bits & 0x7c00) == 0x7c00) bits ^= 0x4000;
  return bits;
}

template <class T, class Make>
Guarded<T> fill(std::size_t n, Source& s, Make make) {
  Guarded<T> values(n);
  for (T& value : values) value = make(s);
  return values;
}
Guarded<float> floats(std::size_t n, Source& s) { return fill<float>(n, s, finite); }
Guarded<float> blank(std::size_t n) {  // a pattern that no kernel writes
  Guarded<float> y(n);
  std::fill(y.begin(), y.end(), std::bit_cast<float>(0xFFABCDEFU));
  return y;
}

// A NaN has no sign and no payload that counts; where it arises from finite numbers, it is one NaN.
bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}
bool same(std::integral auto a, std::integral auto b) { return a == b; }

template <class T>
void expect_same(const Guarded<T>& actual, const Guarded<T>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!same(actual[i], expected[i])) std::abort();
}

// The levels above scalar that this CPU has.
template <class Check>
void for_each_level(Check check) {
  for (const Isa isa : supported_isas())
    if (isa != Isa::scalar) check(*table(isa));
}

const Kernels& reference() { return *table(Isa::scalar); }

// A function that gives `n` floats in its last argument: whatever it writes is compared.
template <class Call>
void compare(std::size_t n, Call call) {
  Guarded<float> expected = blank(n);
  call(reference(), expected.data());
  for_each_level([&](const Kernels& k) {
    Guarded<float> actual = blank(n);
    call(k, actual.data());
    expect_same(actual, expected);
  });
}

RowRange row_range(std::size_t rows, Source& s) {
  const std::size_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  const std::size_t first = s.between(0, blocks - 1), last = s.between(first, blocks);
  return {first * kRowBlock, std::min(rows, last * kRowBlock)};
}

// ---- ternary ----

enum class Ternary { t2, t1, s34 };

std::byte t1_byte(unsigned q) { return static_cast<std::byte>((256 * (q % 243) + 242) / 243); }

// Five digits, those from n on 1.
std::byte t1_tail(std::size_t n, Source& s) {
  unsigned q = 0;
  for (std::size_t d = 0; d < 5; ++d) q = 3 * q + (d < n ? s.byte() % 3U : 1U);
  return t1_byte(q);
}

std::byte t2_byte(Source& s) {
  const unsigned codes = s.byte();
  const unsigned threes = codes & codes >> 1 & 0x55;
  return static_cast<std::byte>(codes & ~(threes << 1));  // code 3 becomes 1
}

class BodyWriter {
 public:
  BodyWriter(std::size_t bytes, Source& s) : body_(bytes), source_(s) {}
  void scale_lines(std::size_t n) {
    for (std::size_t i = 0; i < n * kRowBlock; ++i) {
      const std::uint16_t half = finite_half(source_);
      put(static_cast<std::byte>(half & 255));
      put(static_cast<std::byte>(half >> 8));
    }
  }
  template <class Make>
  void bytes(std::size_t n, Make make) {
    for (std::size_t i = 0; i < n; ++i) put(make(source_));
  }
  Guarded<std::byte> take() {
    if (at_ != body_.size()) std::abort();
    return std::move(body_);
  }

 private:
  void put(std::byte byte) { body_[at_++] = byte; }
  Guarded<std::byte> body_;
  std::size_t at_ = 0;
  Source& source_;
};

Guarded<std::byte> ternary_body(Ternary encoding, std::size_t blocks, std::size_t groups,
                                std::size_t lines, Source& s) {
  const std::size_t block = encoding == Ternary::t2   ? t2_row_block_bytes(groups, lines)
                            : encoding == Ternary::t1 ? t1_row_block_bytes(groups, lines)
                                                      : s34_row_block_bytes(groups, lines);
  const auto any = [](Source& source) { return static_cast<std::byte>(source.byte()); };
  BodyWriter out(blocks * block, s);
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t g = 0; g < groups; ++g) {
      if (encoding == Ternary::t2) {
        out.scale_lines(lines);
        out.bytes(kT2Chunks * kPlane, t2_byte);
      } else if (encoding == Ternary::s34) {
        out.scale_lines(lines);
        out.bytes(s34_group_bytes(0), any);
      } else if (g % kT1Super == 0) {
        const std::size_t n = std::min(kT1Super, groups - g);
        out.scale_lines(n * lines);
        out.bytes(kT1TailBytes, [n](Source& source) { return t1_tail(n, source); });
        out.bytes(n * kT1Chunks * kPlane, [](Source& source) { return t1_byte(source.byte()); });
      }
    }
  }
  return out.take();
}

Q8 q8_columns(std::size_t n, std::size_t cols, bool per_token, Source& s) {
  const std::size_t groups = cols / kGroup;
  const auto q = [](Source& from) {
    const auto code = static_cast<std::int8_t>(from.byte());
    return code == -128 ? std::int8_t{-127} : code;
  };
  const auto positive = [](Source& from) { return std::fabs(finite(from)); };
  Q8 x{n,
       cols,
       fill<std::int8_t>(n * cols, s, q),
       fill<float>(n * groups, s, positive),
       Guarded<std::int32_t>(n * groups),
       Guarded<std::int32_t>(n * groups),
       fill<float>(per_token ? n : 0, s, positive)};
  for (std::size_t i = 0; i < n * cols; ++i) {
    x.sum[i / kGroup] += x.q[i];
    if (i % kGroup < kGroup / 2) x.half_sum[i / kGroup] += x.q[i];
  }
  for (std::size_t g = 0; per_token && g < n * groups; ++g)
    x.scale[g] = 1 / x.token_scale[g / groups];
  return x;
}

// Of every kind that the encoding can have.
ScaleKind scale_kind(Ternary encoding, Source& s) {
  const auto kind = static_cast<ScaleKind>(s.between(0, 3));
  const bool halves = kind == ScaleKind::per_half_group && encoding != Ternary::t2;
  return halves ? ScaleKind::per_group : kind;
}

void check_ternary(Ternary encoding, Source& s) {
  constexpr TernaryGemmFn* Kernels::*kGemm[] = {&Kernels::t2_gemm, &Kernels::t1_gemm,
                                                &Kernels::s34_gemm};
  constexpr TernaryGemmF32Fn* Kernels::*kGemmF32[] = {&Kernels::t2_gemm_f32, &Kernels::t1_gemm_f32,
                                                      &Kernels::s34_gemm_f32};
  constexpr TernaryRowFn* Kernels::*kRow[] = {&Kernels::t2_row, &Kernels::t1_row,
                                              &Kernels::s34_row};
  const auto which = static_cast<std::size_t>(encoding);
  const std::size_t rows = s.between(1, 100), groups = s.between(1, 11), n = s.between(1, 12);
  const bool stride16 = s.flag() && encoding == Ternary::s34;
  const ScaleKind kind = scale_kind(encoding, s);
  const bool per_token = s.flag();
  const std::size_t product = s.between(0, 2), y_stride = rows + s.between(0, 9);
  const RowRange range = row_range(rows, s);
  const std::size_t blocks = (rows + kRowBlock - 1) / kRowBlock, cols = groups * kGroup;
  const auto body = ternary_body(encoding, blocks, groups, scale_lines(kind), s);
  const auto scales = floats(kind == ScaleKind::per_row ? blocks * kRowBlock : 1, s);
  const TernaryMatrix w = {body.data(), rows, cols, stride16, kind, scales.data()};
  if (product == 0) {
    const Q8 x = q8_columns(n, cols, per_token, s);
    compare(n * y_stride, [&](const Kernels& k, float* y) {
      (k.*kGemm[which])(w, range, x.view(), {y, y_stride});
    });
  } else if (product == 1) {
    const std::size_t stride = cols + s.between(0, 9);
    const auto x = floats((n - 1) * stride + cols, s);
    compare(n * y_stride, [&](const Kernels& k, float* y) {
      (k.*kGemmF32[which])(w, range, {x.data(), stride, n}, {y, y_stride});
    });
  } else {
    const std::size_t row = s.between(0, rows - 1);
    compare(cols, [&](const Kernels& k, float* y) { (k.*kRow[which])(w, row, y); });
  }
}

// ---- dense ----

void check_dense(DenseType type, Source& s) {
  const std::size_t rows = s.between(1, 40), cols = 32 * s.between(1, 12), n = s.between(1, 12);
  const std::size_t y_stride = rows + s.between(0, 9);
  const bool one_row = s.flag();
  const RowRange range = row_range(rows, s);
  const std::size_t halves = type == DenseType::q4m ? 2 : 1;  // at the front of a block
  const std::size_t block = type == DenseType::q8 ? 34 : type == DenseType::q4 ? 18 : 20;
  const bool blocks = type == DenseType::q8 || type == DenseType::q4 || type == DenseType::q4m;
  const std::size_t width = type == DenseType::f32 ? 4 : 2;
  const std::size_t row_bytes = blocks ? cols / 32 * block : cols * width;
  Guarded<std::byte> data(rows * row_bytes);
  const auto put = [&](std::size_t at, auto value) {
    std::memcpy(data.data() + at, &value, sizeof value);
  };
  for (std::size_t at = 0; at < data.size();) {
    if (blocks) {
      for (std::size_t i = 0; i < halves; ++i) put(at + 2 * i, finite_half(s));
      for (std::size_t i = 2 * halves; i < block; ++i) put(at + i, s.byte());
      at += block;
    } else if (type == DenseType::f16) {
      put(at, finite_half(s));
      at += 2;
    } else if (type == DenseType::bf16) {
      put(at, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(finite(s)) >> 16));
      at += 2;
    } else {
      put(at, finite(s));
      at += 4;
    }
  }
  const DenseMatrix w = {type, data.data(), row_bytes, rows, cols};
  if (one_row) {
    const std::size_t row = s.between(0, rows - 1);
    compare(cols, [&](const Kernels& k, float* y) { k.dense_row(w, row, y); });
    return;
  }
  const std::size_t stride = cols + s.between(0, 9);
  const auto x = floats((n - 1) * stride + cols, s);
  compare(n * y_stride, [&](const Kernels& k, float* y) {
    k.dense_gemm(w, range, {x.data(), stride, n}, {y, y_stride});
  });
}

// ---- vectors ----

void check_rotations(Source& s) {
  const std::size_t block = std::size_t{1} << s.between(0, 12), which = s.between(0, 2);
  const std::size_t count = block * s.between(1, block > 512 ? 3 : 20);
  const bool in_place = s.flag(), signs_given = s.flag();
  const auto signs = fill<std::uint32_t>((count + 31) / 32, s,
                                         [](Source& from) { return from.bits<std::uint32_t>(); });
  const auto x = floats(count, s);
  compare(count, [&](const Kernels& k, float* y) {
    if (in_place || which == 2) std::copy(x.begin(), x.end(), y);
    if (which == 2) return k.fwht(y, count, block);
    (which == 0 ? k.rotate : k.unrotate)(in_place ? y : x.data(),
                                         signs_given ? signs.data() : nullptr, count, block, y);
  });
}

void check_quantize(Source& s) {
  const std::size_t block = std::size_t{1} << s.between(0, 9);
  const std::size_t count = block * s.between(1, 9);
  const bool any = s.flag(), per_token = s.flag(), rotate = s.flag();  // any: infinities and NaN
  const std::size_t padded = (count + kGroup - 1) / kGroup * kGroup, groups = padded / kGroup;
  const auto signs = fill<std::uint32_t>((count + 31) / 32, s,
                                         [](Source& from) { return from.bits<std::uint32_t>(); });
  const auto x = fill<float>(rotate ? count : padded, s, [any](Source& from) {
    return any ? std::bit_cast<float>(from.bits<std::uint32_t>()) : finite(from);
  });
  struct Quantised {
    Guarded<std::int8_t> q;
    Guarded<float> scale, token_scale, rotated;
    Guarded<std::int32_t> sum, half_sum;
    bool done;
  };
  const auto call = [&](const Kernels& k) {
    Quantised out{Guarded<std::int8_t>(padded),
                  blank(groups),
                  blank(1),
                  blank(padded),
                  Guarded<std::int32_t>(groups),
                  Guarded<std::int32_t>(groups),
                  false};
    const Q8Column to = {out.q.data(), out.scale.data(), out.sum.data(), out.half_sum.data(),
                         per_token ? out.token_scale.data() : nullptr};
    out.done = rotate ? k.rotate_quantize(x.data(), signs.data(), count, block, out.rotated.data(),
                                          padded, to)
                      : k.quantize(x.data(), padded, to);
    return out;
  };
  const Quantised expected = call(reference());
  if (!any && !rotate && !expected.done) std::abort();
  for_each_level([&](const Kernels& k) {
    const Quantised actual = call(k);
    if (actual.done != expected.done) std::abort();
    if (!expected.done) return;
    expect_same(actual.q, expected.q);
    expect_same(actual.scale, expected.scale);
    expect_same(actual.token_scale, expected.token_scale);
    expect_same(actual.rotated, expected.rotated);
    expect_same(actual.sum, expected.sum);
    expect_same(actual.half_sum, expected.half_sum);
  });
}

template <class T, class Make>
void check_attention(AttentionFn* Kernels::*attention, Source& s, Make make) {
  const std::size_t head_dim = 16 * s.between(1, 20), length = s.between(1, 200);
  const std::size_t n_tokens = s.between(1, 9), n_heads = s.between(1, 9);
  const std::size_t stride = head_dim + s.between(0, 40), positions = length + n_tokens - 1;
  const std::size_t n = (positions - 1) * stride + head_dim, width = n_heads * head_dim;
  const float scale = moderate(s);
  const auto q = fill<float>(n_tokens * width, s, moderate);
  const auto keys = fill<T>(n, s, make), values = fill<T>(n, s, make);
  compare(n_tokens * width, [&](const Kernels& k, float* out) {
    (k.*attention)({q.data(), width, keys.data(), values.data(), stride, length, n_tokens, n_heads,
                    head_dim, scale, out, width});
  });
}

void check_small(Source& s) {
  const std::size_t n = s.between(1, 300), which = s.between(0, 4);
  const bool in_place = s.flag(), neox = s.flag();
  const auto a = floats(n, s), b = floats(n, s);
  if (which == 0) {
    const float eps = std::fabs(finite(s));
    compare(n, [&](const Kernels& k, float* y) {
      if (in_place) std::copy(a.begin(), a.end(), y);
      k.rms_norm(in_place ? y : a.data(), b.data(), n, eps, y);
    });
  } else if (which == 1) {
    const auto x = floats(2 * n, s);
    compare(2 * n, [&](const Kernels& k, float* y) {
      std::copy(x.begin(), x.end(), y);
      k.rope(y, a.data(), b.data(), n, neox);
    });
  } else if (which == 2) {
    compare(n, [&](const Kernels& k, float* y) {
      if (in_place) std::copy(a.begin(), a.end(), y);
      k.silu_mul(in_place ? y : a.data(), b.data(), n, y);
    });
  } else if (which == 3) {
    compare(n, [&](const Kernels& k, float* y) {
      std::copy(a.begin(), a.end(), y);
      k.add(b.data(), n, y);
    });
  } else {
    compare(n, [&](const Kernels& k, float* y) { k.exp(a.data(), n, y); });
  }
}

void check_halves(Source& s) {
  const std::size_t n = s.between(1, 300);
  const auto halves =
      fill<std::uint16_t>(n, s, [](Source& from) { return from.bits<std::uint16_t>(); });
  compare(n, [&](const Kernels& k, float* y) { k.from_f16(halves.data(), n, y); });
  const auto x = floats(n, s);
  Guarded<std::uint16_t> expected(n);
  reference().to_f16(x.data(), n, expected.data());
  for_each_level([&](const Kernels& k) {
    Guarded<std::uint16_t> actual(n);
    k.to_f16(x.data(), n, actual.data());
    expect_same(actual, expected);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Source s(data, size);
  switch (s.between(0, 14)) {
    case 0:
      check_ternary(Ternary::t2, s);
      break;
    case 1:
      check_ternary(Ternary::t1, s);
      break;
    case 2:
      check_ternary(Ternary::s34, s);
      break;
    case 3:
      check_dense(DenseType::f32, s);
      break;
    case 4:
      check_dense(DenseType::f16, s);
      break;
    case 5:
      check_dense(DenseType::bf16, s);
      break;
    case 6:
      check_dense(DenseType::q8, s);
      break;
    case 7:
      check_dense(DenseType::q4, s);
      break;
    case 8:
      check_dense(DenseType::q4m, s);
      break;
    case 9:
      check_rotations(s);
      break;
    case 10:
      check_quantize(s);
      break;
    case 11:
      check_attention<std::uint16_t>(&Kernels::attention_f16, s, finite_half);
      break;
    case 12:
      check_attention<float>(&Kernels::attention_f32, s, moderate);
      break;
    case 13:
      check_small(s);
      break;
    default:
      check_halves(s);
  }
  return 0;
}
