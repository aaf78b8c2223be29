// SPDX-License-Identifier: GPL-3.0-only
// Seaquest of MinAtar 1.0.15 (by Kenny Young and Tian Tian, GPL-3.0), written anew: shoot fish and submarines (+1),
// collect divers, and surface before the oxygen ends; with six divers that pays the oxygen left.
//
// MinAtar keeps lists; here everything has a fixed slot, because with ramping off everything runs to a timetable of 60
// steps. An enemy may come every 20 steps, a diver every 30; both move at ages 5, 11, ..., 53 and leave the board at
// 59, just before their slot is due again. A submarine fires at ages 10, 21, ..., 54, and its bullet is gone 10 steps
// later. So an enemy never moves and fires in one step, and the order of MinAtar's lists shows only among the divers:
// a row's enemies all swim one way, 3 columns or more apart, so no two share a cell, and no more do two bullets of
// ours. (MinAtar's removal by value takes the older of two bullets only where an enemy comes in at the edge, onto the
// older one, and the younger hits it. That bullet then flies on, off the board, as the older would have done.)
#include "games.hpp"

namespace weightgym::originals {
namespace {

constexpr int kOxygen = 200;
constexpr int kOxygenCell = kOxygen / kGrid;  // a cell of the gauge, and a point of the reward
constexpr int kSeats = 6;
constexpr int kCannonInterval = 5;
constexpr int kEnemies = 3;
constexpr int kDivers = 2;
constexpr int kShots = 2;  // the cannon loads for 5 steps and a bullet of ours flies for 9

enum Channel { kFront, kBack, kFriendlyBullet, kTrail, kEnemyBullet, kFish, kSub, kOxygenGauge, kDiverGauge, kDiver,
               kChannels };

// The lanes of what the player may meet: three enemies, the bullet of each, two divers.
constexpr int kFirstBullet = kEnemies;
constexpr int kFirstDiver = 2 * kEnemies;
constexpr Lanes kEnemyLanes = 0x010101;
constexpr Lanes kBulletLanes = kEnemyLanes << (8 * kFirstBullet);
constexpr Lanes kDiverLanes = Lanes{0x0101} << (8 * kFirstDiver);

constexpr int kHour = 60;
constexpr int kFirstStep = kHour;  // like minute 0, but nothing is due
constexpr int kNobody = -1;

/// What is due in one step: the slots concerned.
struct Minute {
  int8_t enemy_comes = kNobody, enemy_moves = kNobody, enemy_fires = kNobody, diver_comes = kNobody;
  bool divers_move = false;
};

struct Timetable {
  Minute minutes[kHour + 1];
};

constexpr Timetable timetable() {
  Timetable table{};
  for (int now = 0; now < kHour; ++now) {
    Minute& minute = table.minutes[now];
    for (int8_t slot = 0; slot < kEnemies; ++slot) {
      const int age = (now - 20 * slot + kHour) % kHour;
      if (age == 0) minute.enemy_comes = slot;
      if (age % 6 == 5) minute.enemy_moves = slot;
      if (age % 11 == 10) minute.enemy_fires = slot;
    }
    if (now % 30 == 0) minute.diver_comes = static_cast<int8_t>(now / 30);
    minute.divers_move = now % 6 == 5;  // both: 30 is a multiple of 6
  }
  return table;
}
constexpr Timetable kTimetable = timetable();

constexpr int kOff = kGrid + 1;

/// The cell of a thing and the one behind it, if that is on the board.
struct Picture {
  uint64_t body, wake;
};

struct Pictures {
  Picture of[2 * kOff];  // by x = column + 1 for things that go right, by kOff + x for those that go left
};

constexpr Pictures pictures() {
  Pictures table{};  // x = 0, an empty lane, has none
  for (int column = 0; column < kGrid; ++column) {
    table.of[column + 1] = {cell(column), shift_left(cell(column))};
    table.of[kOff + column + 1] = {cell(column), shift_right(cell(column))};
  }
  return table;
}
constexpr Pictures kPictures = pictures();

struct Shot {
  int x, row, step;  // x = column + 1, 0 when it is gone; step 1 or -1
};

struct Seaquest {
  Lanes xs, rows;          // column + 1, or 0 in an empty lane; row
  Lanes to_right, to_left;  // 1 in the lanes of things that go this way
  Shot shots[kShots];      // the player's
  int next_shot;
  uint8_t kind[kEnemies];  // kFish or kSub
  int column, row;         // of the player's front
  bool faces_right;
  int oxygen;
  int seated;  // divers on board; below zero after surfacing with six
  int cannon_timer;
  int minute;
  bool at_surface;
  bool over;

  void reset(Mt19937&) {
    column = 5;
    oxygen = kOxygen;
    minute = kFirstStep;
    at_surface = true;
  }

  /// 1 in the lanes whose thing is at this cell.
  Lanes things_at(int x, int r) const {
    return kEach - at_least((xs ^ kEach * static_cast<Lanes>(x)) | (rows ^ kEach * static_cast<Lanes>(r)), 1);
  }

  Lanes met() const { return things_at(column + 1, row); }

  void place(int lane, int x, int r, bool right) {
    const Lanes others = ~in_lane(0xff, lane);
    xs = (xs & others) | in_lane(x, lane);
    rows = (rows & others) | in_lane(r, lane);
    to_right = (to_right & others) | in_lane(right, lane);
    to_left = (to_left & others) | in_lane(!right, lane);
  }

  void remove(Lanes which) {
    const Lanes others = ~filled(which);
    xs &= others;
    to_right &= others;
    to_left &= others;
  }

  void advance(Lanes which) {
    xs = xs + (to_right & which) - (to_left & which);
    xs &= ~filled(at_least(xs, kOff));
    const Lanes on_board = at_least(xs, 1);
    to_right &= on_board;
    to_left &= on_board;
  }

  void bring_enemy(int slot, Mt19937& rng) {
    const bool right = rng.uniform() < 0.5;
    const bool is_sub = rng.uniform() < 1.0 / 3.0;
    const int at_row = rng.integer(1, kEdge);
    const Lanes opposed = right ? to_left : to_right;
    const Lanes same_row = kEach - at_least(rows ^ kEach * static_cast<Lanes>(at_row), 1);
    if (opposed & same_row & kEnemyLanes) return;
    place(slot, right ? 1 : kGrid, at_row, right);
    kind[slot] = is_sub ? kSub : kFish;
  }

  void bring_diver(int slot, Mt19937& rng) {
    const bool right = rng.uniform() < 0.5;
    place(kFirstDiver + slot, right ? 1 : kGrid, rng.integer(1, kEdge), right);
  }

  void act(int action) {
    if (action == kFire && cannon_timer == 0) {
      shots[next_shot] = {column + 1, row, faces_right ? 1 : -1};
      next_shot ^= 1;
      cannon_timer = kCannonInterval;
    }
    column = clamp(column + kColumnMove[action], 0, kEdge);
    row = clamp(row + kRowMove[action], 0, kEdge - 1);
    faces_right = (faces_right | (action == kRight)) & (action != kLeft);
  }

  int move_shots() {
    int kills = 0;
    for (Shot& shot : shots) {
      if (shot.x == 0) continue;
      shot.x = (shot.x + shot.step) % kOff;
      if (shot.x == 0) continue;
      const Lanes struck = things_at(shot.x, shot.row) & kEnemyLanes;
      if (struck == 0) continue;
      remove(struck);
      shot.x = 0;
      ++kills;
    }
    return kills;
  }

  bool takes(Lanes diver) {
    if ((met() & diver) == 0 || seated == kSeats) return false;
    remove(diver);
    ++seated;
    return true;
  }

  /// The younger diver goes first: there may be one seat left for two.
  void move_divers(bool due) {
    if (!due && (met() & kDiverLanes) == 0) return;
    const int younger = minute < 30 ? 0 : 1;
    for (int turn = 0; turn < kDivers; ++turn) {
      const Lanes diver = in_lane(1, kFirstDiver + (younger ^ turn));
      if (takes(diver) || !due) continue;
      advance(diver);
      takes(diver);
    }
  }

  int move_enemy(int slot) {
    advance(in_lane(1, slot));
    const int x = at(xs, slot), r = at(rows, slot);
    if (x == 0) return 0;
    if (x == column + 1 && r == row) {
      over = true;
      return 0;
    }
    for (Shot& shot : shots) {
      if (shot.x != x || shot.row != r) continue;
      remove(in_lane(1, slot));
      shot.x = 0;
      return 1;
    }
    return 0;
  }

  int move_enemies(const Minute& due) {
    over |= (met() & kEnemyLanes) != 0;
    const int kills = due.enemy_moves == kNobody ? 0 : move_enemy(due.enemy_moves);
    if (due.enemy_fires != kNobody && kind[due.enemy_fires] == kSub && at(xs, due.enemy_fires) != 0)
      place(kFirstBullet + due.enemy_fires, at(xs, due.enemy_fires), at(rows, due.enemy_fires),
            at(to_right, due.enemy_fires) != 0);
    const Lanes before = met();
    advance(kBulletLanes);
    over |= ((before | met()) & kBulletLanes) != 0;
    return kills;
  }

  /// What surfacing pays. A seat is the price of the oxygen, whatever their number.
  int surface() {
    at_surface = true;
    int reward = 0;
    if (seated == kSeats) {
      seated = 0;
      reward = oxygen / kOxygenCell;
    }
    --seated;
    oxygen = kOxygen;
    return reward;
  }

  int breathe() {
    over |= oxygen <= 0;
    if (row > 0) {
      --oxygen;
      at_surface = false;
      return 0;
    }
    if (at_surface) return 0;
    if (seated != 0) return surface();
    over = true;
    return 0;
  }

  StepResult step(int action, Mt19937& rng) {
    const Minute& due = kTimetable.minutes[minute];
    if (due.enemy_comes != kNobody) bring_enemy(due.enemy_comes, rng);
    if (due.diver_comes != kNobody) bring_diver(due.diver_comes, rng);
    act(action);
    int reward = move_shots();
    move_divers(due.divers_move);
    reward += move_enemies(due);
    cannon_timer -= cannon_timer > 0;
    minute = minute >= kHour - 1 ? minute - (kHour - 1) : minute + 1;
    reward += breathe();
    return {reward, over ? kTerminal : 0};
  }

  void observe(const uint8_t* masks, uint64_t* out) const {
    const Lanes pictures = xs + kOff * to_left;
    const auto draw = [&](int lane, uint64_t body, uint64_t wake) {
      const Picture& picture = kPictures.of[at(pictures, lane)];
      out[at(rows, lane)] |= picture.body * body | picture.wake * wake;
    };
    for (int slot = 0; slot < kEnemies; ++slot) {
      draw(slot, masks[kind[slot]], masks[kTrail]);
      draw(kFirstBullet + slot, masks[kEnemyBullet], 0);
    }
    for (int slot = 0; slot < kDivers; ++slot) draw(kFirstDiver + slot, masks[kDiver], masks[kTrail]);
    for (const Shot& shot : shots) out[shot.row] |= kPictures.of[shot.x].body * masks[kFriendlyBullet];
    out[row] |= cell(column) * masks[kFront] | cell(column + 1 - 2 * faces_right) * masks[kBack];
    // Oxygen fills row 9 from the left; divers end at column 8.
    const int air = oxygen > 0 ? oxygen / kOxygenCell : 0;
    const int crew = seated > 0 ? seated : 0;
    out[kEdge] |= (span(0, kGrid) & (cell(air) - 1)) * masks[kOxygenGauge] |
                  (span(0, kEdge) & ~(cell(kEdge - crew) - 1)) * masks[kDiverGauge];
  }
};

}  // namespace

const Game kSeaquest = game_table<Seaquest>("seaquest", kChannels);

}  // namespace weightgym::originals
