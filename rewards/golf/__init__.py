"""Mini Parameter Golf: one file ``solution.py`` is trained and evaluated in a sandbox; the score is its val_bpb."""
