"""The environments for TRL's trainers: data sets, reward functions, environments with tools. Needs the extra ``trl``.

Nothing here imports TRL: what its trainers take are functions, classes and a data set.
"""

from weightgym.trainers.trl.tasks import TRLTasks

__all__ = ["TRLTasks"]
