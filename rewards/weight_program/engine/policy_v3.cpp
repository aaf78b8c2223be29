// SPDX-License-Identifier: Apache-2.0
// The policy kernel for x86-64-v3 (AVX2 and FMA), chosen at run time.
#include "policy.hpp"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi")
#endif
#define WEIGHTGYM_KERNEL kernel_v3
#define WEIGHTGYM_FMA 1
#include "policy_kernel.hpp"

namespace weightgym {
static void policy(const Policy& policy, const uint64_t* rows, double* cumulative) {
  kernel_v3::run_policy(policy, rows, cumulative);
}
static void rounded(bool exponential, const float* x, float* y, long count) {
  kernel_v3::run_rounded(exponential, x, y, count);
}
}  // namespace weightgym
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace weightgym {
static bool supported() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi");
}
const Kernel kKernelV3 = {"x86-64-v3", supported, policy, rounded};
}  // namespace weightgym

#else  // another processor: this kernel is never chosen
namespace weightgym {
const Kernel kKernelV3 = {"x86-64-v3", [] { return false; }, nullptr, nullptr};
}  // namespace weightgym
#endif
