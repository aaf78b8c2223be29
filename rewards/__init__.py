"""Scoring: a task and an answer in, a :class:`~weightgym.rewards.contracts.Score` out."""
