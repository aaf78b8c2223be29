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


@pytest.mark.slow
def test_packages_of_an_environment_in_tmp_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox's own /tmp would hide them."""
    assert tmp_path.is_relative_to("/tmp")
    package, facts = tmp_path / "site" / "hidden_gem", tmp_path / "site" / "hidden_gem-1.0.dist-info"
    package.mkdir(parents=True)
    facts.mkdir()
    (package / "__init__.py").write_text("VALUE = 42\n")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: hidden-gem\nVersion: 1.0\n")
    (facts / "RECORD").write_text("hidden_gem/__init__.py,,\nhidden_gem-1.0.dist-info/METADATA,,\n")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    runner = tmp_path / "runner.py"
    runner.write_text("import hidden_gem\ndef look(port):\n    port.send({'value': hidden_gem.VALUE})\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with (
        Sandbox(SandboxPolicy(cpu_seconds=5, packages=("hidden-gem",)), runner) as sandbox,
        sandbox.start("look", {}) as phase,
    ):
        assert phase.receive() == {"value": 42}
        phase.finish()
