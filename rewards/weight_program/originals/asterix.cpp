// SPDX-License-Identifier: GPL-3.0-only
// Asterix of MinAtar 1.0.15 (by Kenny Young and Tian Tian, GPL-3.0), written anew: collect gold (+1), touch no enemy.
// Both cross the eight middle rows from either side, at most one a row.
#include "games.hpp"

namespace weightgym::originals {
namespace {

constexpr int kSlots = 8;  // slot i is row i + 1
constexpr int kSpawnInterval = 10;
constexpr int kMoveInterval = 5;

enum Channel { kPlayer, kEnemy, kTrail, kGold, kChannels };

struct Asterix {
  uint64_t body[kSlots];       // one cell, or nothing in an empty slot
  uint64_t trail[kSlots];      // the cell behind it, while that is on the board
  uint64_t rightwards[kSlots];  // all ones or zero
  uint8_t channel[kSlots];     // kEnemy or kGold
  int column, row;
  int spawn_timer, move_timer;
  bool over;

  void reset(Mt19937&) {
    column = 5;
    row = 5;
    spawn_timer = kSpawnInterval;
    move_timer = kMoveInterval;
  }

  void spawn(Mt19937& rng) {
    const bool right = rng.uniform() < 0.5;
    const bool gold = rng.uniform() < 1.0 / 3.0;
    int empty[kSlots];
    int count = 0;
    for (int slot = 0; slot < kSlots; ++slot) {
      empty[count] = slot;
      count += body[slot] == 0;
    }
    if (count == 0) return;
    const int slot = empty[rng.integer(0, count)];
    body[slot] = cell(right ? 0 : kEdge);
    trail[slot] = 0;
    rightwards[slot] = right ? ~uint64_t{0} : 0;
    channel[slot] = gold ? kGold : kEnemy;
  }

  /// The player meets what stands on its cell.
  int meet() {
    const int slot = row - 1;
    if ((body[slot] & cell(column)) == 0) return 0;
    if (channel[slot] == kEnemy) {
      over = true;
      return 0;
    }
    body[slot] = trail[slot] = 0;
    return 1;
  }

  void move_all() {
    for (int slot = 0; slot < kSlots; ++slot) {
      const uint64_t from = body[slot];
      const uint64_t to = (shift_right(from) & rightwards[slot]) | (shift_left(from) & ~rightwards[slot]);
      body[slot] = to;
      trail[slot] = to ? from : 0;
    }
  }

  StepResult step(int action, Mt19937& rng) {
    if (spawn_timer == 0) {
      spawn(rng);
      spawn_timer = kSpawnInterval;
    }
    column = clamp(column + kColumnMove[action], 0, kEdge);
    row = clamp(row + kRowMove[action], 1, kSlots);
    int reward = meet();
    if (move_timer == 0) {
      move_timer = kMoveInterval;
      move_all();
      reward += meet();
    }
    --spawn_timer;
    --move_timer;
    return {reward, over ? kTerminal : 0};
  }

  void observe(const uint8_t* masks, uint64_t* rows) const {
    for (int slot = 0; slot < kSlots; ++slot)
      rows[slot + 1] |= body[slot] * masks[channel[slot]] | trail[slot] * masks[kTrail];
    light(rows, row, column, masks[kPlayer]);
  }
};

}  // namespace

const Game kAsterix = game_table<Asterix>("asterix", kChannels);

}  // namespace weightgym::originals
