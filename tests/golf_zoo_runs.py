"""What the runs of Golf's zoo share: cases and their twins, a profile of a second, and what must hold outside."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import golf_evaluation
from golf_evaluation import evaluator

from weightgym.rewards.golf import evaluate, phases
from weightgym.rewards.golf.data.corpus import Corpus, language_corpus
from weightgym.rewards.golf.gate import Gate
from weightgym.rewards.golf.profile import Profile
from weightgym.rewards.golf.report import Result

ZOO = Path(__file__).parent / "golf_zoo"
#: The model that most files share, without any trick.
TWIN = "h100_twin"
#: Half the steps of a solution, and as much validation text as shows a peek at one position in ten.
PROFILE: Profile = dataclasses.replace(
    golf_evaluation.PROFILE,
    name="test-zoo",
    step_share=(1, 2),
    train_bytes=200_000,
    val_bytes=8_193,
    train_seconds=4,
    post_seconds=3,
)
#: For whole models of the user's own, in a few steps.
HONEST_PROFILE = dataclasses.replace(
    PROFILE, name="test-zoo-honest", step_share=(1, 25), train_seconds=60, post_seconds=60
)
#: Bits a byte by which an attack may be better than its twin: other initial values, other rounding.
SCORE_SLACK = 0.02
#: Seconds past a budget: the limit is looked at every 50 ms, on a busy machine later.
CPU_SLACK = 0.5
SECRET = "swordfish-of-the-zoo"
_HEAD = re.compile(r'"""(ATTACK|HONEST) (\w+) \[(\w+)\](?: gate=(\w+))?(?: twin=(\w+))?: .*"""')
#: Of its twin's bytes, what an attack that scores as well weighs at least: four bits of eight are honest.
LEAST = 0.5
_VARYING = {"runtime_s", "phase_s", "cpu_s", "apart"}
_PATH = re.compile(r"/(?:tmp|dev/shm|home|root|etc|var|work)/[\w./-]+")


@dataclass(frozen=True)
class Case:
    """A file of the zoo, as its first line tells."""

    path: Path
    attack: bool
    family: str
    gate: str
    twin: str

    @property
    def only_budgeted(self) -> bool:
        """Whether it trains more than its config says. Only the gate and the budget of CPU-seconds stand against that:
        what trained a state does not show in it."""
        return self.family == "compute"

    @property
    def source(self) -> bytes:
        return self.path.read_bytes()


def case(path: Path) -> Case:
    """The case in a file.

    Raises:
        ValueError: its first line is not of the form.
    """
    head = _HEAD.match(path.read_text().splitlines()[0])
    if head is None or head[2] != path.stem:
        raise ValueError(f'{path}: the first line must be \'"""ATTACK|HONEST name [family] gate=verdict: what"""\'')
    return Case(path, head[1] == "ATTACK", head[3], head[4] or "", head[5] or TWIN)


CASES = {path.stem: case(path) for path in sorted(ZOO.glob("*.py"))}
ATTACKS = {name: one for name, one in CASES.items() if one.attack}
HONEST = {name: one for name, one in CASES.items() if not one.attack}


@functools.cache
def corpus() -> Corpus:
    return language_corpus(PROFILE, "zoo/0")


def run(source: bytes) -> Result:
    """The result in the real sandbox."""
    return evaluator(PROFILE).evaluate(source, corpus())


def run_honest(source: bytes) -> Result:
    """The result with the time that a model of any size takes."""
    return evaluator(HONEST_PROFILE).evaluate(source, corpus())


def same(one: Result, other: Result) -> bool:
    """Whether two results are equal, but for times."""
    return one.model_dump(exclude=_VARYING) == other.model_dump(exclude=_VARYING)


def close() -> None:
    """End the evaluators that were made here."""
    for profile in (PROFILE, HONEST_PROFILE):
        evaluator(profile).close()
    evaluator.cache_clear()


@functools.cache
def twin(name: str) -> Result:
    """The result of an honest file."""
    result = run(CASES[name].source)
    assert result.status == "ok", result.message
    return result


def open_gate(_: object) -> Gate:
    """A gate that lets everything through."""
    return Gate("legal", ())


# --- what must hold of a result --------------------------------------------------------------------------------------


def gain(result: Result, other: Result) -> float:
    """Bits a byte by which the result is better than its twin's; minus infinity for one without a score."""
    if result.val_bpb is None:
        return -float("inf")
    assert other.val_bpb is not None
    return other.val_bpb - result.val_bpb


def faults(result: Result) -> list[str]:
    """What is wrong with a result that passed the gate, whoever made the file."""
    found = []
    if not _fixed(result.message):
        found.append(f"a message that is not in fixed words: {result.message!r}")
    if SECRET in result.model_dump_json():
        found.append("the environment's secret is in the result")
    if result.status == "ok":
        assert result.artifact_bytes is not None
        assert result.audited_bytes is not None
        assert result.claimed_bytes is not None
        if result.artifact_bytes < max(result.audited_bytes, result.claimed_bytes) + result.source_bytes:
            found.append("fewer artifact bytes than were claimed or counted")
    profile = PROFILE if result.profile == PROFILE.name else HONEST_PROFILE
    training, after = profile.budgets(evaluator(profile).hardware)
    used = result.cpu_s
    spent = {
        "train": (used.get("train", 0.0), training.cpu_seconds),
        "pack and serve": (used.get("pack", 0.0) + used.get("serve", 0.0), after.cpu_seconds),
        "audit": (used.get("audit", 0.0), 4 * after.cpu_seconds),  # each row four times at most
    }
    found += [f"{name}: {got:.2f} of {most} CPU-s" for name, (got, most) in spent.items() if got > most + CPU_SLACK]
    return found


def _fixed(message: str) -> bool:
    return any(pattern.fullmatch(message) for pattern in _messages())


@functools.cache
def _messages() -> list[re.Pattern[str]]:
    """All that an evaluation can say once the file has passed the gate."""
    raised = "|".join(["an exception", *sorted(phases._EXCEPTIONS)])
    texts = [re.escape(text).replace(r"\{error\}", f"(?:{raised})") for text in phases._TEXTS.values()]
    texts = [rf"{text}(?: \(line \d+ of the file\))?" for text in texts]
    texts += [re.escape(text) for text in evaluate._AUDIT_TEXTS.values()]
    texts += [
        "",
        r"packed model and source are [\d,]+ bytes; [\d,]+ are allowed",
        r"[\w ]+ is no plain int of at least 0",
    ]
    texts += [r"more than \d+ tensors", "an item of the state is no tensor", "a tensor of a shape that is too large"]
    texts += ["a truth value that is neither 0 nor 1", "artifact_bytes is not a plain int of at least 0"]
    return [re.compile(text) for text in texts]


# --- what must hold outside ------------------------------------------------------------------------------------------


@contextmanager
def nothing_changes(home: Path, source: bytes) -> Iterator[list[str]]:
    """A list that afterwards says what was touched outside the sandbox: files in ``home`` (the user's, with a marker in
    it), places that the source names, shared memory, processes in the sandbox."""
    marker = home / "marker"
    marker.write_text(SECRET)
    places = [Path(place) for place in _PATH.findall(source.decode("utf-8", "replace"))]
    before, shared = [_state(place) for place in places], set(os.listdir("/dev/shm"))
    changes: list[str] = []
    yield changes
    if os.listdir(home) != ["marker"] or marker.read_text() != SECRET:
        changes.append("the user's home")
    changes += [str(place) for place, old in zip(places, before, strict=True) if _state(place) != old]
    changes += [f"/dev/shm/{name}" for name in set(os.listdir("/dev/shm")) - shared if "stash" in name]
    if left := left_over():
        changes.append(f"processes {left}")


def _state(place: Path) -> tuple[int, int, int] | None:
    try:
        found = place.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_mode


def left_over() -> list[int]:
    """Processes that are still there after some seconds."""
    deadline = time.monotonic() + 5
    while (left := processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def processes() -> list[int]:
    """Processes in the sandbox, besides the zygote and bwrap, which holds it."""
    zygote = evaluator(PROFILE)._sandbox._zygote
    if zygote is None:
        return []
    top = zygote._process.pid
    found = _children(top)
    if _name(top) == "bwrap":
        found = [pid for child in found for pid in _children(child)]
    return [pid for pid in found if _alive(pid)]


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
