"""What reports at random get in an audit: the reference row of a guess."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping

from weightgym.rewards.wsp.edits import Floats
from weightgym.rewards.wsp.profile import CATEGORIES, Profile
from weightgym.rewards.wsp.scores import Report, Site, audit_credits

_OF_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)")


def mean_report_score(
    start: Mapping[str, Floats], truth: Site, profile: Profile, count: int, rng: random.Random
) -> float:
    """The mean score of reports that each draw matrix, direction and category uniformly, 0 to 100."""
    matrices = [
        (name, found) for name in sorted(start) if (found := _OF_LAYER.fullmatch(name)) and start[name].ndim == 2
    ]
    total = []
    for _ in range(count):
        name, found = rng.choice(matrices)
        direction = [rng.gauss(0, 1) for _ in range(len(start[name]))]
        report = Report(found[2], int(found[1]), direction, rng.choice(CATEGORIES))
        total.append(audit_credits(report, truth, profile).score)
    return math.fsum(total) / count
