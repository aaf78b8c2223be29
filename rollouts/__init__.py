"""Trajectories out of a model: arrives with the rollout backends."""
