"""Trajectories in, a better model out: the GRPO trainer and its parts."""
