// SPDX-License-Identifier: Apache-2.0
// The one interface between the episode loop and a game, whoever compiled it. A game is a constant table of functions
// over a small block of plain memory; an extension module hands it over in a PyCapsule named kGameCapsule.
#pragma once
#include <cstdint>

#include "mt19937.hpp"

namespace weightgym {

constexpr uint32_t kGameAbi = 1;
constexpr const char* kGameCapsule = "weightgym.game";
constexpr int kGrid = 10;
constexpr int kMaxStateBytes = 4096;

/// An observation: one word a row, row 0 on top. Bit column*6 + channel of row r is network input r*60 + column*6 +
/// channel, so that the set bits in ascending order are the active inputs in ascending order.
using Observation = uint64_t[kGrid];

struct StepResult {
  int32_t reward;
  int32_t flags;
};
constexpr int32_t kTerminal = 1;
/// The game reached a state that it can't hold (a bug of ours): the run is abandoned with an error.
constexpr int32_t kFault = 2;

struct Game {
  uint32_t abi;
  const char* name;
  uint32_t state_bytes;      ///< at most kMaxStateBytes
  uint32_t native_channels;  ///< at most 16

  /// Start a new episode in `state` (uninitialised memory, 64-byte aligned). May draw from `rng`.
  void (*reset)(void* state, Mt19937* rng);
  /// Play `action` (0-5: no-op, left, up, right, down, fire), the one that is executed after stickiness.
  StepResult (*step)(void* state, int action, Mt19937* rng);
  /// OR into `rows` (cleared by the caller) the six bits masks[c] at every cell where native channel c is on.
  void (*observe)(const void* state, const uint8_t* masks, uint64_t* rows);
};

/// Light the input channels of `mask` at one cell.
inline void light(uint64_t* rows, int row, int column, uint8_t mask) {
  rows[row] |= static_cast<uint64_t>(mask) << (column * 6);
}

}  // namespace weightgym
