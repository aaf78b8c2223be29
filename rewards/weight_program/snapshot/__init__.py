"""The published dataset, from a local copy (a snapshot): its tasks, its own scorer, its games on our engine.

The code of a snapshot is not ours. It runs in a process of its own (``worker.py``), and only when the user allows it.
"""
