// SPDX-License-Identifier: Apache-2.0
// The episode loop: a game, a policy, two random streams.
#pragma once
#include <cfenv>
#include <cstdint>
#include <vector>

#include "game_abi.hpp"
#include "policy.hpp"

namespace weightgym {

/// Whatever rounding or flush-to-zero mode the calling program set must not change a bit.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
};

/// The action that a uniform u in [0, 1) picks: how many of the running sums are not above u times the whole.
inline int sample(const double* cumulative, double u) {
  const double threshold = u * cumulative[kActions - 1];
  int action = 0;
  for (int k = 0; k < kActions - 1; ++k) action += cumulative[k] <= threshold;
  return action;
}

struct Rules {
  uint32_t env_seed;     ///< of episode 0; episode i adds i
  uint32_t action_seed;  ///< likewise
  double sticky;         ///< probability that the last executed action is repeated
  int32_t max_actions;
};

/// Everything one finished step leaves behind. An episode of n steps has n of these and n + 1 observations.
struct Step {
  int8_t chosen;
  int8_t executed;
  int32_t reward;
  double cumulative[kActions];
};

/// Plays episodes first…first+count-1 on `threads` threads and writes their scores and lengths by index.
/// The result does not depend on the number of threads. Returns false when the game faulted.
bool run_episodes(const Game& game, const uint8_t* masks, const Policy& policy, const Kernel& kernel,
                  const Rules& rules, int first, int count, int threads, int64_t* scores, int32_t* lengths);

/// Plays one episode and keeps everything; `rows` gets kGrid words an observation. Returns flags of the last step.
int32_t record_episode(const Game& game, const uint8_t* masks, const Policy& policy, const Kernel& kernel,
                       const Rules& rules, int episode, std::vector<Step>& steps, std::vector<uint64_t>& rows);

/// Plays the given actions (chosen, before stickiness) until they or the episode end. Returns flags of the last step.
int32_t trace_actions(const Game& game, const uint8_t* masks, uint32_t env_seed, double sticky, const uint8_t* actions,
                      int count, std::vector<Step>& steps, std::vector<uint64_t>& rows);

}  // namespace weightgym
