"""Refuses to test another build than the one in this tree; and what tests of training share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: verifiers has environments of its own (make test-hub).
collect_ignore_glob = [] if find_spec("verifiers") else ["test_hub_*.py"]


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Begun in the background of a shell, and so would be all that tests start and send Ctrl-C to.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """The tests run against the installed package; one that is out of date would prove nothing."""
    stale = []
    hub = ROOT / "envs" / "hub"
    for layer in ("rewards", "envs", "rollouts", "trainers", "cli"):
        spec = find_spec(f"weightgym.{layer}")
        if spec is None or spec.origin is None:
            raise pytest.UsageError("weightgym is not installed in this interpreter: run make setup")
        installed = Path(spec.origin).parent
        for source in (ROOT / layer).rglob("*.py") if installed != ROOT / layer else ():
            # What is in envs/hub is installed beside the packages.
            beside = source.parent == hub
            copy = installed.parents[1] / source.name if beside else installed / source.relative_to(ROOT / layer)
            if not copy.exists() or copy.read_bytes() != source.read_bytes():
                stale.append(str(source.relative_to(ROOT)))
    if stale:
        raise pytest.UsageError(f"the installed weightgym is not of this tree ({stale[0]} differs): run make setup")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes begins first: started last, it would run on alone."""
    items.sort(key=lambda item: item.get_closest_marker("minutes") is None)


@pytest.fixture
def digits() -> Iterator[None]:
    """The environment of ``digits_env.py`` is there, and torch has one thread."""
    import digits_env
    import torch

    from weightgym.envs import registry

    torch.set_num_threads(1)
    with registry.override(digits_env.SPEC):
        yield


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small random language model."""
    import tiny_models

    folder = tmp_path_factory.mktemp("model")
    tiny_models.model().save_pretrained(folder)
    tiny_models.tokenizer().save_pretrained(folder)
    return folder
