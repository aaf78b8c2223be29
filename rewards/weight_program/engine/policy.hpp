// SPDX-License-Identifier: Apache-2.0
// The policy 600 -> 32 -> 32 -> 6 of profile wpb-v1, in float64 sums of exact float32 products.
#pragma once
#include <cstdint>

namespace weightgym {

constexpr int kInputs = 600;
constexpr int kHidden = 32;
constexpr int kActions = 6;
constexpr int kActionLanes = 8;  ///< kActions, padded to whole vectors
constexpr int kParameters = kInputs * kHidden + kHidden + kHidden * kHidden + kHidden + kHidden * kActions + kActions;

/// The weights, widened to float64 once. Columns of W3 beyond the sixth are zero and never read back.
struct alignas(64) Policy {
  double w1[kInputs][kHidden];
  double b1[kHidden];
  double w2[kHidden][kHidden];
  double b2[kHidden];
  double w3[kHidden][kActionLanes];
  double b3[kActionLanes];
  bool constant;  ///< no input reaches a logit: one evaluation serves the whole run

  /// `flat`: kParameters float32 values, W1 b1 W2 b2 W3 b3 in row-major order.
  explicit Policy(const float* flat);
};

/// Running sums of exp(logit - max logit), the six weights of the softmax. `rows`: an Observation.
using PolicyKernel = void (*)(const Policy& policy, const uint64_t* rows, double cumulative[kActions]);
/// Element-wise tanh (`exponential` false) or exp over `count` float32 values; for the self-test.
using RoundedKernel = void (*)(bool exponential, const float* x, float* y, long count);

struct Kernel {
  const char* name;
  bool (*supported)();
  PolicyKernel policy;
  RoundedKernel rounded;
};

/// Fastest first. The last one runs everywhere.
extern const Kernel kKernelV3;
extern const Kernel kKernelBaseline;

}  // namespace weightgym
