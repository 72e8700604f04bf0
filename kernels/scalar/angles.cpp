// The double-precision functions behind RoPE, ours because libm's differ between CPUs. They run
// once a position, never in an inner loop, and exist at this level only.
#include <cmath>
#include <numbers>

#include "kernels/kernels.h"

namespace tsq::kernels {
namespace {

// Taylor series: 1 / (first)!, 1 / (first + 2)!, ... with alternating signs.
template <int kTerms>
struct Series {
  double coefficients[kTerms];
};
template <int kTerms>
constexpr Series<kTerms> alternating_taylor(int first) {
  Series<kTerms> s{};
  double factorial = 1.0;  // exact in double up to 18!
  for (int i = 2; i <= first; ++i) factorial *= i;
  for (int k = 0; k < kTerms; ++k) {
    s.coefficients[k] = (k % 2 == 0 ? 1.0 : -1.0) / factorial;
    factorial *= static_cast<double>(first + 2 * k + 1) * static_cast<double>(first + 2 * k + 2);
  }
  return s;
}

template <int kTerms>
double evaluate(const Series<kTerms>& s, double x) {
  double sum = s.coefficients[kTerms - 1];
  for (int k = kTerms - 2; k >= 0; --k) sum = std::fma(sum, x, s.coefficients[k]);
  return sum;
}

struct SinCos {
  double sin;
  double cos;
};

// Absolute error below 1e-15 for |x| < 2^30: pi / 2 is taken off in three pieces, and on the
// remaining |r| <= pi / 4 the first terms left out are r^17 / 17! and r^18 / 18! (5e-17, 2e-18).
SinCos sin_cos(double x) {
  static constexpr auto kSin = alternating_taylor<8>(1);
  static constexpr auto kCos = alternating_taylor<9>(0);
  const double n = std::nearbyint(x * (2.0 * std::numbers::inv_pi));
  double r = std::fma(-n, 0x1.921fb54442d18p+0, x);
  r = std::fma(-n, 0x1.1a62633145c07p-54, r);
  r = std::fma(-n, -0x1.f1976b7ed8fbcp-110, r);
  const double sin = r * evaluate(kSin, r * r);
  const double cos = evaluate(kCos, r * r);
  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

// log2 of a positive normal number, relative error below 1e-15 away from 1: x = 2^e m with m in
// [sqrt(1/2), sqrt(2)), ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
double log2(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  double sum = 0.0;
  for (int k = 25; k >= 1; k -= 2) sum = std::fma(sum, s * s, 1.0 / k);
  return exponent + 2 * s * sum * std::numbers::log2e;
}

// 2^x, relative error below 1e-15; |r| <= ln 2 / 2, the first term left out is r^15 / 15!.
double exp2(double x) {
  const double n = std::nearbyint(x);
  const double r = (x - n) * std::numbers::ln2;
  double sum = 1.0;
  for (int k = 14; k >= 1; --k) sum = std::fma(sum, r / k, 1.0);
  return std::ldexp(sum, static_cast<int>(n));
}

}  // namespace

void rope_angles(std::int64_t position, const double* frequency, std::size_t n, float* cos,
                 float* sin) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const SinCos angle = sin_cos(static_cast<double>(position) * frequency[i]);
    cos[i] = static_cast<float>(angle.cos);
    sin[i] = static_cast<float>(angle.sin);
  }
}

double rope_power(double base, double exponent) noexcept { return exp2(exponent * log2(base)); }

}  // namespace tsq::kernels
