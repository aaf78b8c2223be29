// SPDX-License-Identifier: GPL-3.0-only
// Breakout of MinAtar 1.0.15 (by Kenny Young and Tian Tian, GPL-3.0), written anew: keep the ball off the floor, +1 a
// brick. The ball moves diagonally; a wall without bricks is rebuilt when the ball comes down.
#include "games.hpp"

namespace weightgym::originals {
namespace {

constexpr int kWallTop = 1;
constexpr int kWallBottom = 3;

enum Channel { kPaddle, kBall, kTrail, kBrick, kChannels };

struct Breakout {
  uint64_t bricks[kGrid];  // only rows kWallTop to kWallBottom ever hold any
  int paddle;
  int column, row;            // of the ball
  int last_column, last_row;  // where the ball was
  int right, down;            // its direction, each 1 or -1
  bool in_wall;               // it struck a brick and has been among bricks since: these let it pass
  bool over;

  void build_wall() {
    for (int r = kWallTop; r <= kWallBottom; ++r) bricks[r] = span(0, kGrid);
  }

  bool wall_is_gone() const { return (bricks[1] | bricks[2] | bricks[3]) == 0; }

  void reset(Mt19937& rng) {
    const bool from_right = rng.integer(0, 2) == 1;
    column = last_column = from_right ? kEdge : 0;
    row = last_row = 3;
    right = from_right ? -1 : 1;
    down = 1;
    paddle = 4;
    build_wall();
  }

  /// The ball would enter the floor at `to`: true when the paddle returns it.
  bool bounces_off_paddle(int to) {
    if (column == paddle) {
      down = -1;
      return true;
    }
    if (to == paddle) {  // caught with the corner: back to where it came from
      right = -right;
      down = -1;
      return true;
    }
    return false;
  }

  StepResult step(int action, Mt19937&) {
    paddle = clamp(paddle + kColumnMove[action], 0, kEdge);
    const int ahead = column + right;
    const int to = clamp(ahead, 0, kEdge);
    right = ahead == to ? right : -right;

    int next_row = row + down;
    int reward = 0;
    bool among_bricks = false;
    if (next_row < 0) {
      next_row = 0;
      down = 1;
    } else if (bricks[next_row] & cell(to)) {
      among_bricks = true;
      if (!in_wall) {
        reward = 1;
        bricks[next_row] ^= cell(to);
        next_row = row;
        down = -down;
      }
    } else if (next_row == kEdge) {
      if (wall_is_gone()) build_wall();
      if (bounces_off_paddle(to))
        next_row = row;
      else
        over = true;
    }
    in_wall = among_bricks;
    last_column = column;
    last_row = row;
    column = to;
    row = next_row;
    return {reward, over ? kTerminal : 0};
  }

  void observe(const uint8_t* masks, uint64_t* rows) const {
    for (int r = kWallTop; r <= kWallBottom; ++r) rows[r] |= bricks[r] * masks[kBrick];
    light(rows, row, column, masks[kBall]);
    light(rows, last_row, last_column, masks[kTrail]);
    light(rows, kEdge, paddle, masks[kPaddle]);
  }
};

}  // namespace

const Game kBreakout = game_table<Breakout>("breakout", kChannels);

}  // namespace weightgym::originals
