// SPDX-License-Identifier: Apache-2.0
// tanh and exp, correctly rounded to float32, on four lanes of float64 at a time.
//
// Only + - * / and exact conversions are used, so the float32 results are the same on every IEEE-754 machine. The
// float64 value before rounding is accurate to a few units in its last place; sweeping every float32 input shows that
// none of them lies close enough to a rounding tie for that to matter, with and without fused multiply-add
// (`weightgym wpb selftest --full` repeats the sweep).
//
// This header is compiled once per kernel: the including file defines WEIGHTGYM_KERNEL (a namespace of its own, so that
// the linker can't merge code built for different CPUs) and WEIGHTGYM_FMA (0 or 1).
#pragma once
#include <cstdint>
#include <cstring>
#if WEIGHTGYM_FMA
#include <immintrin.h>
#endif

#define WEIGHTGYM_INLINE inline __attribute__((always_inline))

namespace weightgym {
namespace WEIGHTGYM_KERNEL {

typedef double Lanes __attribute__((vector_size(32)));
typedef float Lanes32 __attribute__((vector_size(16)));
typedef uint64_t LaneBits __attribute__((vector_size(32)));

WEIGHTGYM_INLINE Lanes splat(double x) { return Lanes{x, x, x, x}; }

/// a*b + c. Rounds once or twice, depending on the kernel; the two agree wherever a*b is exact.
WEIGHTGYM_INLINE Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
#if WEIGHTGYM_FMA
  return (Lanes)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

/// Round to float32 (nearest, ties to even) and back.
WEIGHTGYM_INLINE Lanes round32(Lanes x) {
  return __builtin_convertvector(__builtin_convertvector(x, Lanes32), Lanes);
}

WEIGHTGYM_INLINE Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
WEIGHTGYM_INLINE Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }

/// tanh(x) for float32 values x (infinities included), rounded to float32.
/// x·P(x²)/Q(x²) is our own minimax fit (Remez, relative error 1.8e-17) on |x| <= 9.015625, where tanh rounds to 1.
WEIGHTGYM_INLINE Lanes tanh32(Lanes x) {
  constexpr double kP[8] = {0x1.0000000000000p+0,  0x1.308838680f8a2p-3,  0x1.694e0fc2eda19p-8,  0x1.4108d7ddd264fp-14,
                            0x1.e050b251f5a3ap-22, 0x1.254e15dcb2ccfp-30, 0x1.d6781b3219812p-41, 0x1.b0dab5b1d0559p-54};
  constexpr double kQ[8] = {0x1.0000000000000p+0,  0x1.ed9971895d1a1p-2,  0x1.0d2957226711cp-5,  0x1.7cc396ae1f936p-11,
                            0x1.b4f534a3e8a98p-18, 0x1.a71389d28c914p-26, 0x1.35cdf3ffe84d3p-35, 0x1.cadeb79d98b4dp-47};
  x = larger(smaller(x, splat(9.015625)), splat(-9.015625));
  const Lanes t = x * x;
  Lanes p = splat(kP[7]), q = splat(kQ[7]);
#pragma GCC unroll 7
  for (int i = 6; i >= 0; --i) {
    p = multiply_add(p, t, splat(kP[i]));
    q = multiply_add(q, t, splat(kQ[i]));
  }
  return round32(x * p / q);
}

/// exp(x) for float32 values x <= 0, rounded to float32; 0 where x < -87.
/// x = k·ln2 + r, exp(r) = 1 + r + r²·C(r) with our own Chebyshev fit C of degree 10 (relative error 2.3e-19).
WEIGHTGYM_INLINE Lanes exp32(Lanes x) {
  constexpr double kC[11] = {0.5,
                             0.1666666666666667,
                             0.04166666666666668,
                             0.008333333333326134,
                             0.0013888888888879073,
                             0.00019841269874822307,
                             2.4801587336443602e-05,
                             2.755725539833871e-06,
                             2.7557263277791584e-07,
                             2.5105217695684516e-08,
                             2.091813816945801e-09};
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const Lanes kept = larger(x, splat(-88.0));
  const Lanes shifted = kept * splat(0x1.71547652b82fep+0) + splat(kRound);
  const Lanes k = shifted - splat(kRound);
  // ln2 in two parts; the first has 33 significant bits, so k·ln2_high is exact.
  Lanes r = kept - k * splat(0x1.62e42fef00000p-1);
  r = r - k * splat(0x1.473de6af278edp-34);
  Lanes c = splat(kC[10]);
#pragma GCC unroll 10
  for (int i = 9; i >= 0; --i) c = multiply_add(c, r, splat(kC[i]));
  const Lanes y = splat(1.0) + (r + r * r * c);
  const LaneBits exponent = ((LaneBits)shifted) << 52;  // k moves into the exponent field; the rest shifts out
  const Lanes scaled = (Lanes)((LaneBits)y + exponent);
  return x < splat(-87.0) ? splat(0.0) : round32(scaled);
}

}  // namespace WEIGHTGYM_KERNEL
}  // namespace weightgym
