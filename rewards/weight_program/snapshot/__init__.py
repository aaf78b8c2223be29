"""The published dataset, from a local copy (a snapshot): its tasks, its own scorer, its games on our engine.

The code of a snapshot is not ours. It runs in the sandbox only (``process.py``, and ``runner.py`` on the inside).
"""
