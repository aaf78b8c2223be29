"""Better models out of trajectories: arrives with the GRPO trainer."""
