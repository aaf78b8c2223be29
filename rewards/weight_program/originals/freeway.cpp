// SPDX-License-Identifier: GPL-3.0-only
// Freeway of MinAtar 1.0.15 (by Kenny Young and Tian Tian, GPL-3.0), written anew: walk up across eight lanes, +1 at
// the top, which also deals the cars new speeds. A car sends the chicken back to the start. 2,501 steps an episode.
#include "games.hpp"

namespace weightgym::originals {
namespace {

constexpr int kLanes = 8;  // lane i is row i + 1
constexpr int kColumn = 4;  // of the chicken
constexpr int kStart = kEdge;
constexpr int kMoveInterval = 3;
constexpr int kTimeLimit = 2500;

enum Channel { kChicken, kCar, kSpeed1, kChannels = kSpeed1 + 5 };

/// Columns 0 to 18, brought back to 0 to 9.
constexpr Lanes around(Lanes columns) { return columns - at_least(columns, kGrid) * kGrid; }

struct Freeway {
  Lanes column, timer;
  Lanes speed;    // steps between two moves: 1 to 5
  Lanes forward;  // what a move adds to the column: 1 to the right, 9 to the left, round the edge
  int row;        // of the chicken
  int move_timer, time_left;
  bool over;

  void deal_speeds(Mt19937& rng) {
    speed = forward = 0;
    for (int lane = 0; lane < kLanes; ++lane) speed |= in_lane(rng.integer(1, 6), lane);
    for (int lane = 0; lane < kLanes; ++lane) {
      const double side = rng.uniform() - 0.5;
      forward |= in_lane(side > 0 ? 1 : kGrid - 1, lane);
      // One draw in 2^53 has no side. That car goes left in every step, and its trail, which MinAtar can't paint either
      // (its own painting of it fails), stays dark.
      if (side == 0) speed &= ~in_lane(0xff, lane);
    }
    timer = speed;
  }

  void reset(Mt19937& rng) {
    deal_speeds(rng);
    row = kStart;
    move_timer = kMoveInterval;
    time_left = kTimeLimit;
  }

  /// Whether the chicken's lane has its car on the chicken's column.
  bool hit() const { return row <= kLanes && at(column, row - 1) == kColumn; }

  /// All cars whose timer is up move by one.
  void drive() {
    const Lanes waits = at_least(timer, 1);
    const Lanes moves = filled(kEach - waits);
    timer = timer - waits + (speed & moves);
    column = around(column + (forward & moves));
  }

  StepResult step(int action, Mt19937& rng) {
    const int walk = move_timer == 0 ? kRowMove[action] : 0;
    move_timer = walk ? kMoveInterval : move_timer;
    row = clamp(row + walk, 0, kStart);
    int reward = 0;
    if (row == 0) {
      reward = 1;
      deal_speeds(rng);
      row = kStart;
    }
    // Lanes don't touch each other, and the start has no car: only the chicken's own lane matters, before and after.
    const bool hit_before = hit();
    drive();
    if (hit_before || hit()) row = kStart;
    move_timer -= move_timer > 0;
    --time_left;
    over = time_left < 0;
    return {reward, over ? kTerminal : 0};
  }

  void observe(const uint8_t* masks, uint64_t* rows) const {
    const uint8_t speed_masks[] = {0,
                                   masks[kSpeed1],
                                   masks[kSpeed1 + 1],
                                   masks[kSpeed1 + 2],
                                   masks[kSpeed1 + 3],
                                   masks[kSpeed1 + 4]};
    const uint64_t car = masks[kCar];
    const Lanes fronts = column * kCellBits;
    const Lanes backs = around(column + (kEach * kGrid - forward)) * kCellBits;
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint64_t trail = speed_masks[at(speed, lane)];
      rows[lane + 1] |= car << at(fronts, lane) | trail << at(backs, lane);
    }
    light(rows, row, kColumn, masks[kChicken]);
  }
};

}  // namespace

const Game kFreeway = game_table<Freeway>("freeway", kChannels);

}  // namespace weightgym::originals
