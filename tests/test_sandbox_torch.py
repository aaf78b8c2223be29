"""PyTorch in the sandbox: the same bits warm, cold and without a sandbox, whatever a phase before has done."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from weightgym.rewards.sandbox import PhaseError, Sandbox, SandboxPolicy, Tensor

RUNNER = Path(__file__).with_name("sandbox_torch_runner.py")
POLICY = SandboxPolicy(cpu_seconds=20, packages=("torch", "numpy"), memory_bytes=1 << 30)
DATA = random.Random(0).randbytes(64 * 256)


def trained(sandbox: Sandbox) -> tuple[float, bytes, str]:
    with sandbox.start("train", {"data": DATA}) as phase:
        frame = phase.receive()
        phase.finish()
    loss, weights, capability = frame["loss"], frame["weights"], frame["capability"]
    assert isinstance(weights, Tensor)
    assert weights[:2] == ("float32", (128, 64))
    assert isinstance(loss, float)
    assert isinstance(capability, str)
    return loss, bytes(weights.data), capability


@pytest.mark.slow
def test_warm_is_cold_is_unconfined() -> None:
    with Sandbox(POLICY, RUNNER) as warm:
        first = trained(warm)
        with contextlib.suppress(PhaseError), warm.start("poison") as phase:  # it may fall into its own traps
            assert phase.receive() == {"poisoned": 1}
            phase.finish()
        assert trained(warm) == first
    with Sandbox(POLICY, RUNNER, warm=False) as cold:
        assert trained(cold) == first
    with pytest.warns(UserWarning, match="without a sandbox"):
        unsafe = Sandbox(POLICY, RUNNER, unsafe=True)
    with unsafe:
        assert trained(unsafe) == first
