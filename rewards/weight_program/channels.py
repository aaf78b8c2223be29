"""Channel maps of ``wpb-v1``: which of the six input channels each native channel of an original game lights.

Several native channels on one input channel are OR-ed. A map is data: a corrected map is a new profile.
Native channels stand in MinAtar's own order (MinAtar 1.0.15, ``Env.channels`` of each game).
"""

from __future__ import annotations

LAYOUT = ("player", "danger", "reward", "projectile", "trail", "gauge")

CHANNEL_MAPS: dict[str, dict[str, tuple[int, ...]]] = {
    "breakout": {"paddle": (0,), "ball": (3,), "trail": (4,), "brick": (2,)},
    "asterix": {"player": (0,), "enemy": (1,), "trail": (4,), "gold": (2,)},
    "freeway": {
        "chicken": (0,),
        "car": (1,),
        # Speeds 1 and 2 are the fastest; they light the gauge too, so that fast and slow cars differ.
        "speed1": (4, 5),
        "speed2": (4, 5),
        "speed3": (4,),
        "speed4": (4,),
        "speed5": (4,),
    },
    "seaquest": {
        "sub_front": (0,),
        "sub_back": (4,),
        "friendly_bullet": (3,),
        "trail": (4,),
        "enemy_bullet": (1,),
        "enemy_fish": (1,),
        "enemy_sub": (1, 5),  # rows 1-8: the gauge channel tells subs from fish
        "oxygen_guage": (5,),  # row 9 (MinAtar's own spelling)
        "diver_guage": (2,),  # row 9; divers live in rows 1-8
        "diver": (2,),
    },
    "space_invaders": {
        "cannon": (0,),
        "alien": (2,),
        "alien_left": (4,),
        "alien_right": (5,),
        "friendly_bullet": (3,),
        "enemy_bullet": (1,),
    },
}

#: Game → reward cap. The reward is ``clip(mean score, 0, cap) / cap``.
CAPS: dict[str, int] = {"asterix": 1000, "breakout": 1000, "freeway": 100, "seaquest": 1000, "space_invaders": 1000}


def channel_masks(game: str) -> bytes:
    """One byte a native channel: bit c is set when it lights input channel c. Built-in games need no map."""
    if game not in CHANNEL_MAPS:
        return bytes(1 << channel for channel in range(len(LAYOUT)))
    return bytes(sum(1 << channel for channel in channels) for channels in CHANNEL_MAPS[game].values())
