// The project's exp, exp(x) = 2^n exp(r) with n = round(x / ln 2), |r| <= ln 2 / 2, in float:
//   t = fma(x, kLog2E, kRound); n = t - kRound, and the low bits of t are n as an integer
//   r = fma(n, -kLn2High, x); r = fma(n, -kLn2Low, r)  (the first is exact)
//   p = 1 + r (1 + r (c2 + r (c3 + ...))) by fma; the result is p with n added to its exponent
// x < kExpMin gives 0, x > kExpMax infinity, a NaN itself. c2 to c6 are the minimax fit of the
// relative error (3.7e-9); the rounding of the last step dominates: below 1.2e-7 in all.
#pragma once

namespace tsq::kernels {

inline constexpr float kLog2E = 1.44269502F;
inline constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
inline constexpr float kLn2High = 0.693147182F;
inline constexpr float kLn2Low = -1.90465421e-9F;
inline constexpr float kExpC2 = 0.49999994F;
inline constexpr float kExpC3 = 0.166665211F;
inline constexpr float kExpC4 = 0.041668389F;
inline constexpr float kExpC5 = 0.00836874545F;
inline constexpr float kExpC6 = 0.00138145417F;
inline constexpr float kExpMin = -87.3365402F;  // just above ln of the smallest normal
inline constexpr float kExpMax = 88.7228394F;   // ln of the largest float, rounded

}  // namespace tsq::kernels
