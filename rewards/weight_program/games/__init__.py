"""The built-in games: one short file each, which is both what the prompt shows and what runs."""

from pkgutil import iter_modules

#: Every game, by the name of its file, sorted.
GAMES = tuple(sorted(file.name for file in iter_modules(__path__) if file.name != "kit"))
