"""A start for Seaquest: a random network with one reflex designed by hand, from which policy gradients learn the rest.

From random networks the solver learns to hunt until the oxygen is gone (6.4 a game), and hardly ever meets what lies
behind: coming up with a diver on board refills the oxygen. So one unit of each hidden layer is taken for that reflex:
"little oxygen and a diver on board" adds 4 to the logit of up. Everything else is left to learning.

    python examples/designed/seaquest.py start.md
    weightgym wpb solve original/seaquest -o seaquest.md --method gradient --begin start.md --generations 800 \\
        --max-actions 2000
"""

from __future__ import annotations

import sys
from pathlib import Path

from weightgym.rewards.weight_program.network import Weights, tensors
from weightgym.rewards.weight_program.write_edits import write_edits
from weightgym.trainers.policy_gradient import PolicyGradient, network, start

UNIT = 31  #: of both hidden layers
UP = 2
DIVER, OXYGEN = 2, 5  #: input channels; both bars lie in row 9


def bar(column: int, channel: int) -> int:
    """The input of a cell of row 9."""
    return (9 * 10 + column) * 6 + channel


def with_reflex(weights: Weights) -> Weights:
    """Those weights with the reflex."""
    net = tensors(weights)
    # The oxygen bar grows from column 0, a cell for 20; the divers' bar grows from column 8 to the left.
    net["W1"][:, UNIT] = net["W2"][:, UNIT] = net["W2"][UNIT] = net["W3"][UNIT] = 0
    net["b1"][UNIT] = -3
    net["W1"][bar(8, DIVER), UNIT] = 6  # at least one diver
    net["W1"][bar(1, OXYGEN), UNIT] = -6  # oxygen of 40 or more
    net["W2"][UNIT, UNIT] = 3
    net["W3"][UNIT, UP] = net["b3"][UP] = 2  # 4 with the reflex, 0 without
    return weights


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(write_edits(with_reflex(network(start(PolicyGradient()))), decimals=3) + "\n")
