// SPDX-License-Identifier: Apache-2.0
// The policy kernel for every processor, and the widening of the weights.
#include <algorithm>
#include <cstring>

#define WEIGHTGYM_KERNEL kernel_baseline
#define WEIGHTGYM_FMA 0
#include "policy_kernel.hpp"

namespace weightgym {

namespace {
bool all_zero(const double* values, int count) {
  return std::all_of(values, values + count, [](double value) { return value == 0.0; });
}
}  // namespace

Policy::Policy(const float* flat) {
  const float* next = flat;
  const auto take = [&next](double* to, int count) {
    std::copy(next, next + count, to);
    next += count;
  };
  take(w1[0], kInputs * kHidden);
  take(b1, kHidden);
  take(w2[0], kHidden * kHidden);
  take(b2, kHidden);
  std::memset(w3, 0, sizeof w3);
  for (auto& row : w3) take(row, kActions);
  std::memset(b3, 0, sizeof b3);
  take(b3, kActions);
  constant = all_zero(w1[0], kInputs * kHidden) || all_zero(w2[0], kHidden * kHidden) ||
             all_zero(w3[0], kHidden * kActionLanes);
}

const Kernel kKernelBaseline = {"baseline", [] { return true; }, kernel_baseline::run_policy,
                                kernel_baseline::run_rounded};

}  // namespace weightgym
