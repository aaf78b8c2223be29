"""A model in, trajectories out: generation backends, the scheduler and the trajectory store."""
