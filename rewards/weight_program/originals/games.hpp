// SPDX-License-Identifier: GPL-3.0-only
// The five games of MinAtar 1.0.15 (by Kenny Young and Tian Tian, GPL-3.0) with difficulty ramping off, written anew:
// what they share. A row of cells is one 64-bit word with one bit every six, the layout of Observation, so that
// multiplying a row by a channel mask (below 64: no carries) lights the mask's channels at all its cells at once.
#pragma once
#include <cstdint>
#include <new>
#include <type_traits>

#include "game_abi.hpp"

namespace weightgym::originals {

enum Action { kNoop, kLeft, kUp, kRight, kDown, kFire };

/// What an action adds to the player's column and row.
constexpr int kColumnMove[] = {0, -1, 0, 1, 0, 0};
constexpr int kRowMove[] = {0, 0, -1, 0, 1, 0};

constexpr int kEdge = kGrid - 1;
constexpr int kCellBits = 6;
constexpr uint64_t kRowBits = (uint64_t{1} << (kGrid * kCellBits)) - 1;

constexpr uint64_t cell(int column) { return uint64_t{1} << (column * kCellBits); }

/// The cells from column `first` to before column `last` (at most 10). Empty when first >= last.
constexpr uint64_t span(int first, int last) {
  uint64_t row = 0;
  for (int column = first; column < last; ++column) row |= cell(column);
  return row;
}

constexpr int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

/// One step left or right; what leaves the board is gone.
constexpr uint64_t shift_left(uint64_t row) { return row >> kCellBits; }
constexpr uint64_t shift_right(uint64_t row) { return (row << kCellBits) & kRowBits; }

// Eight small things at once, one in each byte of a word (lane i at bit 8i), all values below 128.
using Lanes = uint64_t;
constexpr Lanes kEach = 0x0101010101010101u;

constexpr int at(Lanes lanes, int lane) { return static_cast<int>(lanes >> (8 * lane)) & 0xff; }
constexpr Lanes in_lane(int value, int lane) { return static_cast<Lanes>(value) << (8 * lane); }

/// 1 in the lanes that are at least `bound` (1 to 128), 0 elsewhere.
constexpr Lanes at_least(Lanes lanes, unsigned bound) { return ((lanes + kEach * (128 - bound)) >> 7) & kEach; }

/// All bits of the lanes that hold 1, of lanes that hold 0 or 1.
constexpr Lanes filled(Lanes ones) { return ones * 0xff; }

/// The table of a game whose state has reset(rng), step(action, rng) and observe(masks, rows).
template <class State>
constexpr Game game_table(const char* name, uint32_t native_channels) {
  static_assert(sizeof(State) <= kMaxStateBytes && alignof(State) <= 64);
  static_assert(std::is_trivially_copyable_v<State> && std::is_trivially_destructible_v<State>);
  return {kGameAbi,
          name,
          sizeof(State),
          native_channels,
          [](void* state, Mt19937* rng) { (new (state) State{})->reset(*rng); },
          [](void* state, int action, Mt19937* rng) -> StepResult {
            State& game = *static_cast<State*>(state);
            if (game.over) return {0, kTerminal};
            return game.step(action, *rng);
          },
          [](const void* state, const uint8_t* masks, uint64_t* rows) {
            static_cast<const State*>(state)->observe(masks, rows);
          }};
}

extern const Game kAsterix;
extern const Game kBreakout;
extern const Game kFreeway;
extern const Game kSeaquest;
extern const Game kSpaceInvaders;

}  // namespace weightgym::originals
