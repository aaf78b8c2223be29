"""The built-in games: one short file each, which is both what the prompt shows and what runs."""

#: Every game, by the name of its file.
GAMES = (
    "cargo_ferry",
    "fruit_basket",
    "gate_runner",
    "lane_gunner",
    "night_porter",
    "signal_box",
    "sky_lantern",
    "wall_rally",
)
