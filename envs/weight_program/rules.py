"""The five original games (MinAtar, by Kenny Young and Tian Tian) in prose, and what their channel maps leave out."""

from __future__ import annotations

RULES = {
    "asterix": """\
You move in four directions over rows 1-8 and all ten columns, starting at row 5, column 5. Every ten steps an enemy or
a treasure appears at the left or right edge of a free row (one of eight slots, a treasure one time in three) and
crosses the board, moving one cell every five steps. Touching a treasure gives +1 and removes it; touching an enemy ends
the episode. The trail lights the cell that an enemy or a treasure came from, so the side of the trail tells where it is
heading.""",
    "breakout": """\
You slide a one-cell paddle along row 9 (it starts in column 4). The ball moves one cell diagonally at every step and
bounces off walls, bricks and paddle; it starts in row 3, at column 0 heading right or at column 9 heading left. Rows
1-3 start full of bricks; each brick that the ball breaks gives +1. When all are gone, three new rows appear as the ball
reaches the bottom. As the ball comes down from row 8: if it is in the paddle's column it is reflected upwards; if only
the column that it is heading for is the paddle's it goes back the way it came; otherwise the episode ends. The trail
lights the ball's previous cell, so ball and trail together tell its direction.""",
    "freeway": """\
You stand in column 4, start in row 9, and move up or down at most once every three steps. Eight cars, one in each of
rows 1-8, drive left or right and wrap around the edges; a car of speed s moves once every s+1 steps (speed 1 is the
fastest, 5 the slowest). A car that touches you sends you back to row 9. Reaching row 0 gives +1, sends you back to row
9 and draws new speeds and directions for all cars. The episode ends after 2,501 steps. The trail lights the cell behind
each car, which tells its direction.""",
    "seaquest": """\
You steer a submarine over rows 0-8 and all columns (it starts on the surface, row 0, column 5, facing left). Left and
right also turn it; fire shoots a bullet ahead, at most once every five steps. Fish and enemy submarines enter from the
sides in rows 1-8 and move one cell every six steps; enemy submarines also shoot. A bullet of yours that hits either
gives +1. Touching a fish, an enemy submarine or an enemy bullet ends the episode. Divers enter from the sides too;
touching one picks it up while you carry fewer than six. Under water your oxygen (200 at start) falls by one a step, and
running out ends the episode. Coming back to row 0 with no diver ends it too; with one to five divers it costs one diver
and refills the oxygen; with six it gives a reward of (oxygen*10)//200, takes them all (the count then stands at -1,
which still lets you surface once more) and refills the oxygen. A submarine that never leaves the surface survives all
10,000 steps and scores nothing.""",
    "space_invaders": """\
You slide a cannon along row 9 (it starts in column 5); fire shoots upwards, at most once every five steps, and bullets
fly one row a step. A block of 4x6 aliens moves sideways together every few steps, faster as fewer remain, and at the
edge turns round and comes down a row. Every ten steps the alien nearest to your column (lowest in its column)
drops a bullet. Each alien hit gives +1; when all are gone a new block appears. An alien or an alien's bullet that
reaches your cell, or an alien that is in row 9 when the block turns, ends the episode.""",
}

#: What several native channels on one input channel make impossible to tell apart.
LOSSES = {
    "asterix": "Nothing is lost: each channel holds one kind of thing.",
    "breakout": "Nothing is lost: each channel holds one kind of thing.",
    "freeway": """\
The five speeds become two groups: speeds 1 and 2 (the fastest) light trail and gauge, speeds 3 to 5 light the trail
only. Within a group they look alike.""",
    "seaquest": """\
Danger holds fish, enemy submarines and enemy bullets; an enemy submarine also lights the gauge in its cell, which tells
it from the others. Trail holds the back half of your submarine and the trails of fish, submarines and divers. Reward
holds divers (rows 1-8) and, in row 9, the bar of divers on board; gauge holds, in row 9, the oxygen bar.""",
    "space_invaders": "Nothing is lost: each channel holds one kind of thing.",
}
