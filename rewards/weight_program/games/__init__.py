"""The built-in games: one short file each, which is both what the prompt shows and what runs."""

#: Every game, by the name of its file.
GAMES = (
    "cargo_ferry",
    "dart_gallery",
    "deep_drill",
    "fruit_basket",
    "gate_runner",
    "lane_gunner",
    "lift_operator",
    "night_porter",
    "pendulum_shot",
    "signal_box",
    "sky_lantern",
    "wall_rally",
)
