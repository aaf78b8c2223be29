// SPDX-License-Identifier: GPL-3.0-only
// Space Invaders of MinAtar 1.0.15 (by Kenny Young and Tian Tian, GPL-3.0), written anew: shoot aliens (+1 each) that
// march, sink and shoot back; a cleared wave is followed by the next.
#include "games.hpp"

namespace weightgym::originals {
namespace {

constexpr int kRanks = 4;  // a wave never spans more rows
constexpr int kWaveAliens = kRanks * 6;
constexpr int kCannonInterval = 5;
constexpr int kAlienShotInterval = 10;
constexpr int kMarchInterval = 12;
constexpr int kNoShotAbove = -1;
constexpr int kNoShotBelow = kGrid;

enum Channel { kCannon, kAlien, kAlienLeft, kAlienRight, kFriendlyBullet, kEnemyBullet, kChannels };

struct Bullet {
  int row, column;
};

struct SpaceInvaders {
  uint64_t rank[kRanks];  // the wave, in rows top, top + 1, ..., round the bottom edge
  int top;
  int aliens;  // in all ranks
  int march;   // 1 to the right, -1 to the left
  int march_timer, alien_shot_timer, cannon_timer;
  int cannon;  // its column
  // The cannon loads for 5 steps and a bullet flies for 9, so there are never more than two; a shot takes the slot of
  // the one before last. Aliens shoot every 10 steps and a bullet is on the board for at most 10: there is one.
  Bullet friendly[2];
  Bullet enemy;
  int next_slot;
  bool over;

  void start_wave() {
    for (uint64_t& row : rank) row = span(2, 8);
    top = 0;
    aliens = kWaveAliens;
  }

  void reset(Mt19937&) {
    start_wave();
    march = -1;
    march_timer = kMarchInterval;
    alien_shot_timer = kAlienShotInterval;
    cannon = 5;
    friendly[0].row = friendly[1].row = kNoShotAbove;
    enemy.row = kNoShotBelow;
  }

  int row_of(int r) const { return top + r < kGrid ? top + r : top + r - kGrid; }

  uint64_t columns_in_use() const { return rank[0] | rank[1] | rank[2] | rank[3]; }

  uint64_t aliens_on_floor() const {
    const int r = kEdge - top;
    return r < kRanks ? rank[r] : 0;
  }

  bool cannon_is_rammed() const { return (aliens_on_floor() & cell(cannon)) != 0; }

  void fire() {
    friendly[next_slot] = {kEdge, cannon};
    next_slot ^= 1;
    cannon_timer = kCannonInterval;
  }

  void move_aliens() {
    march_timer = aliens < kMarchInterval ? aliens : kMarchInterval;
    if (columns_in_use() & cell(march < 0 ? 0 : kEdge)) {
      march = -march;
      over |= aliens_on_floor() != 0;
      top = row_of(1);  // aliens on the floor come out on top, in the very step that ends the game
    } else {
      for (uint64_t& row : rank) row = march < 0 ? shift_left(row) : shift_right(row);
    }
    over |= cannon_is_rammed();
  }

  /// The column in use that is nearest to the cannon, the left one of two.
  int nearest_column() const {
    const uint64_t used = columns_in_use();
    for (int distance = 0; distance < kGrid; ++distance) {
      if (cannon >= distance && (used & cell(cannon - distance))) return cannon - distance;
      if (cannon + distance < kGrid && (used & cell(cannon + distance))) return cannon + distance;
    }
    return 0;  // not reached: a wave has at least one alien
  }

  void shoot_back() {
    alien_shot_timer = kAlienShotInterval;
    enemy = {0, nearest_column()};
    for (int r = 0; r < kRanks; ++r)
      if ((rank[r] & cell(enemy.column)) && row_of(r) > enemy.row) enemy.row = row_of(r);
  }

  /// Both the bullet and the alien that it meets go.
  int resolve(Bullet& bullet) {
    const int below = bullet.row - top;
    const int r = below < 0 ? below + kGrid : below;
    if (bullet.row == kNoShotAbove || r >= kRanks || (rank[r] & cell(bullet.column)) == 0) return 0;
    rank[r] ^= cell(bullet.column);
    bullet.row = kNoShotAbove;
    return 1;
  }

  StepResult step(int action, Mt19937&) {
    cannon = clamp(cannon + kColumnMove[action], 0, kEdge);
    if (action == kFire && cannon_timer == 0) fire();
    for (Bullet& bullet : friendly) bullet.row -= bullet.row != kNoShotAbove;
    enemy.row += enemy.row != kNoShotBelow;
    over = (enemy.row == kEdge && enemy.column == cannon) || cannon_is_rammed();
    if (march_timer == 0) move_aliens();
    if (alien_shot_timer == 0) shoot_back();
    const int kills = resolve(friendly[0]) + resolve(friendly[1]);
    aliens -= kills;
    cannon_timer -= cannon_timer > 0;
    --march_timer;
    --alien_shot_timer;
    if (aliens == 0) start_wave();
    return {kills, over ? kTerminal : 0};
  }

  void observe(const uint8_t* masks, uint64_t* rows) const {
    const uint64_t alien = masks[kAlien] | masks[march < 0 ? kAlienLeft : kAlienRight];
    for (int r = 0; r < kRanks; ++r) rows[row_of(r)] |= rank[r] * alien;
    for (const Bullet& bullet : friendly)
      if (bullet.row != kNoShotAbove) light(rows, bullet.row, bullet.column, masks[kFriendlyBullet]);
    if (enemy.row != kNoShotBelow) light(rows, enemy.row, enemy.column, masks[kEnemyBullet]);
    light(rows, kEdge, cannon, masks[kCannon]);
  }
};

}  // namespace

const Game kSpaceInvaders = game_table<SpaceInvaders>("space_invaders", kChannels);

}  // namespace weightgym::originals
