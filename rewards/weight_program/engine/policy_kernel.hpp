// SPDX-License-Identifier: Apache-2.0
// The body of a policy kernel; compiled once per instruction set (see rounded.hpp for the two macros it needs).
#pragma once
#include "policy.hpp"
#include "rounded.hpp"

namespace weightgym {
namespace WEIGHTGYM_KERNEL {

constexpr int kLanes = 4;
constexpr int kHiddenVectors = kHidden / kLanes;
constexpr int kActionVectors = kActionLanes / kLanes;

WEIGHTGYM_INLINE Lanes load(const double* p) { return *reinterpret_cast<const Lanes*>(p); }

/// h = RN32(tanh(RN32(z))), lane by lane.
WEIGHTGYM_INLINE void activate(Lanes (&z)[kHiddenVectors], double* h) {
#pragma GCC unroll 8
  for (int v = 0; v < kHiddenVectors; ++v) *reinterpret_cast<Lanes*>(h + v * kLanes) = tanh32(round32(z[v]));
}

/// z starts at the bias and adds the rows of the active inputs in ascending order.
WEIGHTGYM_INLINE void first_layer(const Policy& policy, const uint64_t* rows, Lanes (&z)[kHiddenVectors]) {
#pragma GCC unroll 8
  for (int v = 0; v < kHiddenVectors; ++v) z[v] = load(policy.b1 + v * kLanes);
  for (int row = 0; row < 10; ++row) {
    const double* base = policy.w1[row * 60];
    for (uint64_t bits = rows[row]; bits != 0; bits &= bits - 1) {
      const double* weights = base + __builtin_ctzll(bits) * kHidden;
#pragma GCC unroll 8
      for (int v = 0; v < kHiddenVectors; ++v) z[v] += load(weights + v * kLanes);
    }
  }
}

/// z starts at the bias and adds h[i] times row i of the matrix, i ascending.
template <int kVectors>
WEIGHTGYM_INLINE void dense_layer(const double* h, const double* matrix, const double* bias, Lanes (&z)[kVectors]) {
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) z[v] = load(bias + v * kLanes);
#pragma GCC unroll 4
  for (int i = 0; i < kHidden; ++i) {
    const Lanes scale = splat(h[i]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) z[v] = multiply_add(scale, load(matrix + (i * kVectors + v) * kLanes), z[v]);
  }
}

/// Running sums of RN32(exp(RN32(z_k - max z))).
WEIGHTGYM_INLINE void softmax_sums(const Lanes (&z)[kActionVectors], double* cumulative) {
  double largest = z[0][0];
  for (int k = 1; k < kActions; ++k) largest = z[k / kLanes][k % kLanes] > largest ? z[k / kLanes][k % kLanes] : largest;
  double sum = 0.0;
  Lanes e[kActionVectors];
  for (int v = 0; v < kActionVectors; ++v) e[v] = exp32(round32(z[v] - splat(largest)));
  for (int k = 0; k < kActions; ++k) cumulative[k] = sum += e[k / kLanes][k % kLanes];
}

void run_policy(const Policy& policy, const uint64_t* rows, double* cumulative) {
  alignas(64) double h1[kHidden], h2[kHidden];
  Lanes z[kHiddenVectors], logits[kActionVectors];
  first_layer(policy, rows, z);
  activate(z, h1);
  dense_layer(h1, policy.w2[0], policy.b2, z);
  activate(z, h2);
  dense_layer(h2, policy.w3[0], policy.b3, logits);
  softmax_sums(logits, cumulative);
}

void run_rounded(bool exponential, const float* x, float* y, long count) {
  for (long start = 0; start < count; start += kLanes) {
    const int lanes = static_cast<int>(count - start < kLanes ? count - start : kLanes);
    Lanes value = splat(0.0);
    for (int i = 0; i < lanes; ++i) value[i] = x[start + i];
    value = exponential ? exp32(value) : tanh32(value);
    for (int i = 0; i < lanes; ++i) y[start + i] = static_cast<float>(value[i]);
  }
}

}  // namespace WEIGHTGYM_KERNEL
}  // namespace weightgym
