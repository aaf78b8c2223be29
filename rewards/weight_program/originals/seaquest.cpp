// SPDX-License-Identifier: GPL-3.0-only
// Seaquest of MinAtar 1.0.15 (by Kenny Young and Tian Tian, GPL-3.0), written anew: shoot fish and submarines (+1),
// collect divers, and surface before the oxygen ends; with six divers that pays the oxygen left.
#include "games.hpp"

namespace weightgym::originals {
namespace {

constexpr int kOxygen = 200;
constexpr int kOxygenCell = kOxygen / kGrid;  // a cell of the gauge, and a point of the reward
constexpr int kSeats = 6;
constexpr int kEnemyInterval = 20;
constexpr int kDiverInterval = 30;
constexpr int kMoveInterval = 5;
constexpr int kCannonInterval = 5;
constexpr int kEnemyShotInterval = 10;

enum Channel {
  kFront,
  kBack,
  kFriendlyBullet,
  kTrail,
  kEnemyBullet,
  kFish,
  kSub,
  kOxygenGauge,
  kDiverGauge,
  kDiver,
  kChannels
};

/// Whatever swims or flies along a row. It may be one column off the board while it is being removed.
struct Thing {
  int8_t column, row;
  bool right;
  uint8_t move_timer, shot_timer;  // 0 where a kind has none

  void advance() { column = static_cast<int8_t>(column + (right ? 1 : -1)); }
  bool is_at(int c, int r) const { return (column == c) & (row == r); }
  bool is_at(const Thing& other) const { return is_at(other.column, other.row); }
  bool is_gone() const { return static_cast<unsigned>(column) >= kGrid; }
  bool operator==(const Thing& other) const {
    return is_at(other) & (right == other.right) & (move_timer == other.move_timer) & (shot_timer == other.shot_timer);
  }
};

/// Things in order of age. MinAtar walks them from the youngest to the oldest and removes by value, so the one that
/// goes is the oldest of equals: then the walk meets the younger again, one place further down.
struct School {
  // Enemies and divers come every 20 and 30 steps and take 60 to cross, bullets live for 10 steps at most and a gun
  // loads for 5 or more: no school ever holds more than four.
  static constexpr int kCapacity = 8;
  Thing things[kCapacity];
  int count;

  /// False when it is full.
  bool add(const Thing& thing) {
    if (count == kCapacity) return false;
    things[count++] = thing;
    return true;
  }

  void remove_at(int index) {
    --count;
    for (int i = index; i < count; ++i) things[i] = things[i + 1];
  }

  /// Removes the first that equals things[index], and says where the one that was there is now: -1 if it went itself.
  int remove_equal(int index) {
    for (int i = 0; i < index; ++i) {
      if (things[i] == things[index]) {
        remove_at(i);
        return index - 1;
      }
    }
    remove_at(index);
    return -1;
  }

  /// The first at the cell of `thing`, or -1.
  int find_at(const Thing& thing) const {
    for (int i = 0; i < count; ++i)
      if (things[i].is_at(thing)) return i;
    return -1;
  }

  /// Whether one in this row swims the other way.
  bool opposes(int row, bool right) const {
    for (int i = 0; i < count; ++i)
      if (things[i].row == row && things[i].right != right) return true;
    return false;
  }
};

struct Seaquest {
  School friendly_bullets, enemy_bullets, fish, subs, divers;
  int column, row;  // of the player's front
  bool right;
  int oxygen;
  int seated;  // divers on board; below zero after surfacing with six
  int enemy_timer, diver_timer, cannon_timer;
  bool at_surface;
  bool over, fault;

  void reset(Mt19937&) {
    column = 5;
    row = 0;
    oxygen = kOxygen;
    enemy_timer = kEnemyInterval;
    diver_timer = kDiverInterval;
    at_surface = true;
  }

  void add(School& school, const Thing& thing) { fault |= !school.add(thing); }

  bool meets(const Thing& thing) const { return thing.is_at(column, row); }

  static Thing at_edge(bool right, int row, int shot_timer) {
    return {static_cast<int8_t>(right ? 0 : kEdge), static_cast<int8_t>(row), right, kMoveInterval,
            static_cast<uint8_t>(shot_timer)};
  }

  void spawn_enemy(Mt19937& rng) {
    const bool to_right = rng.uniform() < 0.5;
    const bool is_sub = rng.uniform() < 1.0 / 3.0;
    const int at = rng.integer(1, kEdge);
    if (subs.opposes(at, to_right) || fish.opposes(at, to_right)) return;
    add(is_sub ? subs : fish, at_edge(to_right, at, is_sub ? kEnemyShotInterval : 0));
  }

  void spawn_diver(Mt19937& rng) {
    const bool to_right = rng.uniform() < 0.5;
    add(divers, at_edge(to_right, rng.integer(1, kEdge), 0));
  }

  void spawn(Mt19937& rng) {
    if (enemy_timer == 0) {
      spawn_enemy(rng);
      enemy_timer = kEnemyInterval;
    }
    if (diver_timer == 0) {
      spawn_diver(rng);
      diver_timer = kDiverInterval;
    }
  }

  void act(int action) {
    if (action == kFire && cannon_timer == 0) {
      add(friendly_bullets, {static_cast<int8_t>(column), static_cast<int8_t>(row), right, 0, 0});
      cannon_timer = kCannonInterval;
    }
    column = clamp(column + kColumnMove[action], 0, kEdge);
    row = clamp(row + kRowMove[action], 0, kEdge - 1);
    right = (right && action != kLeft) || action == kRight;
  }

  int move_friendly_bullets() {
    int kills = 0;
    for (int i = friendly_bullets.count - 1; i >= 0; --i) {
      Thing& bullet = friendly_bullets.things[i];
      bullet.advance();
      if (bullet.is_gone()) {
        friendly_bullets.remove_equal(i);
        continue;
      }
      School* struck = &fish;
      int target = fish.find_at(bullet);
      if (target < 0) {
        struck = &subs;
        target = subs.find_at(bullet);
      }
      if (target < 0) continue;
      struck->remove_at(target);
      friendly_bullets.remove_equal(i);
      ++kills;
    }
    return kills;
  }

  bool takes(const Thing& diver) const { return meets(diver) && seated < kSeats; }

  void move_divers() {
    for (int i = divers.count - 1; i >= 0; --i) {
      Thing& diver = divers.things[i];
      bool taken = takes(diver);
      if (!taken) {
        if (diver.move_timer > 0) {
          --diver.move_timer;
          continue;
        }
        diver.move_timer = kMoveInterval;
        diver.advance();
        taken = takes(diver);
      }
      if (taken || diver.is_gone()) divers.remove_equal(i);
      seated += taken;
    }
  }

  /// Moves enemy `index` when its time has come, and says where it is now in its school (-1: removed).
  int move_enemy(School& school, int index, int* kills) {
    Thing& enemy = school.things[index];
    over |= meets(enemy);
    if (enemy.move_timer > 0) {
      --enemy.move_timer;
      return index;
    }
    enemy.move_timer = kMoveInterval;
    enemy.advance();
    if (enemy.is_gone()) return school.remove_equal(index);
    if (meets(enemy)) {
      over = true;
      return index;
    }
    const int bullet = friendly_bullets.find_at(enemy);
    if (bullet < 0) return index;
    friendly_bullets.remove_at(bullet);
    ++*kills;
    return school.remove_equal(index);
  }

  int move_subs() {
    int kills = 0;
    for (int i = subs.count - 1; i >= 0; --i) {
      Thing sub = subs.things[i];
      if (sub.move_timer == 0) sub.advance();
      const int now = move_enemy(subs, i, &kills);
      // The gun outlives the submarine: one that was just removed may still fire, from off the board too.
      if (sub.shot_timer == 0) {
        sub.shot_timer = kEnemyShotInterval;
        add(enemy_bullets, {sub.column, sub.row, sub.right, 0, 0});
      } else {
        --sub.shot_timer;
      }
      if (now >= 0) subs.things[now].shot_timer = sub.shot_timer;
    }
    return kills;
  }

  int move_fish() {
    int kills = 0;
    for (int i = fish.count - 1; i >= 0; --i) move_enemy(fish, i, &kills);
    return kills;
  }

  void move_enemy_bullets() {
    for (int i = enemy_bullets.count - 1; i >= 0; --i) {
      Thing& bullet = enemy_bullets.things[i];
      over |= meets(bullet);
      bullet.advance();
      over |= meets(bullet);
      if (bullet.is_gone()) enemy_bullets.remove_equal(i);
    }
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
    spawn(rng);
    act(action);
    int reward = move_friendly_bullets();
    move_divers();
    reward += move_subs();
    move_enemy_bullets();
    reward += move_fish();
    enemy_timer -= enemy_timer > 0;
    diver_timer -= diver_timer > 0;
    cannon_timer -= cannon_timer > 0;
    reward += breathe();
    return {reward, (over ? kTerminal : 0) | (fault ? kFault : 0)};
  }

  static void draw(const School& school, uint64_t body, uint64_t trail, uint64_t* rows) {
    for (int i = 0; i < school.count; ++i) {
      const Thing& thing = school.things[i];
      const uint64_t wake = trail << (thing.column * kCellBits);
      rows[thing.row] |= body << (thing.column * kCellBits) | (thing.right ? shift_left(wake) : shift_right(wake));
    }
  }

  void observe(const uint8_t* masks, uint64_t* rows) const {
    light(rows, row, column, masks[kFront]);
    light(rows, row, right ? column - 1 : column + 1, masks[kBack]);
    draw(friendly_bullets, masks[kFriendlyBullet], 0, rows);
    draw(enemy_bullets, masks[kEnemyBullet], 0, rows);
    draw(fish, masks[kFish], masks[kTrail], rows);
    draw(subs, masks[kSub], masks[kTrail], rows);
    draw(divers, masks[kDiver], masks[kTrail], rows);
    // Oxygen fills row 9 from the left; divers end at column 8.
    const int air = oxygen > 0 ? oxygen / kOxygenCell : 0;
    const int crew = seated > 0 ? seated : 0;
    rows[kEdge] |= (span(0, kGrid) & (cell(air) - 1)) * masks[kOxygenGauge];
    rows[kEdge] |= (span(0, kEdge) & ~(cell(kEdge - crew) - 1)) * masks[kDiverGauge];
  }
};

}  // namespace

const Game kSeaquest = game_table<Seaquest>("seaquest", kChannels);

}  // namespace weightgym::originals
