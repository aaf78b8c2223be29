"""The engine against the readable reference: the same bits in every episode, whatever must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played_in import dense_policy, played_in_policy
from weightgym.rewards.contracts import GraderError, TaskError
from weightgym.rewards.weight_program import reference, selftest, simulate
from weightgym.rewards.weight_program.channels import CHANNEL_MAPS, channel_masks
from weightgym.rewards.weight_program.network import PARAMETERS, Weights, tensors, zero_weights
from weightgym.rewards.weight_program.profile import Profile, profile

LOOP, ORIGINALS = (engine := simulate.find_engine()[0]) and (engine.loop, engine.originals)
