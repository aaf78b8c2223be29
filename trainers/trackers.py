"""Where metrics can go beside ``metrics.jsonl``, which is the truth: trackio, wandb, TensorBoard.

Each is an extra of its name, imported on use. What is wrong at the start (a missing package, no login) is an error
before any work is done; a tracker that fails later says so once and is left out, and the training goes on. The names of
the runs are kept in the run's folder, so that a resumed run goes on where it was.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import json
import math
import secrets
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from weightgym.rewards.one_line import one_line

TrackerName = Literal["trackio", "wandb", "tensorboard"]


#: Seconds that closing one tracker may take: what is still to be sent then is not waited for.
_CLOSE = 60.0
#: Seconds that wandb may take to begin.
_BEGIN = 60
_IDS = "trackers.json"


class TrackerError(ValueError):
    """A tracker can't be opened; the message says why, in one line."""


class TrackerWarning(UserWarning):
    """A tracker failed in the middle of a run; it gets no more metrics."""


class _Sink(Protocol):
    def log(self, metrics: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class Tracker:
    """Passes metrics to every tracker that was asked for; to none, if none was. A context manager."""

    def __init__(self, sinks: Mapping[str, _Sink]) -> None:
        self._sinks = dict(sinks)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Pass on the metrics of a step; those that are not finite are left out."""
        values = {name: value for name, value in metrics.items() if name != "step" and math.isfinite(value)}
        for name, sink in list(self._sinks.items()):
            try:
                sink.log(values, step)
            except Exception as error:  # whatever it is: a tracker may not end a training
                del self._sinks[name]
                _warn(f"{name} failed at step {step} and gets no more metrics: {_told(error)}")

    def close(self) -> None:
        """Let each finish, within a minute. The second call does nothing."""
        sinks, self._sinks = self._sinks, {}
        for name, sink in sinks.items():
            failed: list[BaseException] = []
            thread = threading.Thread(target=_close, args=(sink, failed), name=f"close {name}", daemon=True)
            with contextlib.redirect_stdout(sys.stderr):  # trackio says goodbye on stdout
                thread.start()
                thread.join(_CLOSE)
            if thread.is_alive():
                _warn(f"{name} did not finish within {_CLOSE:g} s: its last metrics may be missing")
            elif failed:
                _warn(f"{name} failed as it was closed: {_told(failed[0])}")

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_trackers(
    names: Sequence[TrackerName], *, run_folder: Path, project: str, config: Mapping[str, Any]
) -> Tracker:
    """Open trackers for the run in that folder; a run that was tracked before goes on.

    Args:
        config: the run's configuration, as JSON values.

    Raises:
        TrackerError: a name is unknown or given twice, a package is missing, or a tracker can't begin.
    """
    for name in names:
        if name not in _OPEN or names.count(name) > 1:
            problem = "is given twice" if name in _OPEN else f"is no tracker: want {', '.join(get_args(TrackerName))}"
            raise TrackerError(f"trackers: {name!r} {problem}")
    sinks: dict[str, _Sink] = {}
    for name in names:
        try:
            sinks[name] = _OPEN[name](run_folder, project, dict(config))
        except Exception as error:
            Tracker(sinks).close()
            if isinstance(error, ImportError):
                missing = error.name or name
                raise TrackerError(f"tracker {name} needs {missing}: pip install 'weightgym[{name}]'") from error
            hint = "; WANDB_MODE=offline needs neither network nor login" if name == "wandb" else ""
            raise TrackerError(f"tracker {name} can't begin: {_told(error)}{hint}") from error
    return Tracker(sinks)


class _Trackio:
    """Local unless trackio's own environment variables name a Space or a server."""

    def __init__(self, run_folder: Path, project: str, config: dict[str, Any]) -> None:
        import trackio

        name = _run_id(run_folder, "trackio", lambda: f"{_title(run_folder)}-{secrets.token_hex(3)}")
        begin = functools.partial(trackio.init, project=project, name=name, config=config, resume="allow", embed=False)
        with contextlib.redirect_stdout(sys.stderr):  # it greets on stdout
            # In a context of its own it is no "current run", which trackio would finish again at exit.
            self._run = contextvars.copy_context().run(begin)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()


class _Wandb:
    """Its own environment variables (``WANDB_MODE=offline``, …) hold. Steps are a metric, not wandb's own counter,
    which would refuse the steps that a resumed run makes again."""

    def __init__(self, run_folder: Path, project: str, config: dict[str, Any]) -> None:
        import wandb

        self._run = wandb.init(
            project=project,
            name=_title(run_folder),
            id=_run_id(run_folder, "wandb", lambda: secrets.token_hex(4)),
            dir=str(run_folder),
            config=config,
            resume="allow",
            settings=wandb.Settings(init_timeout=_BEGIN, login_timeout=_BEGIN, console="off"),
        )
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._run.log({**metrics, "step": step})

    def close(self) -> None:
        self._run.finish()


class _TensorBoard:
    """Event files in the run's folder. The first step that is logged hides what an earlier part wrote from there on."""

    def __init__(self, run_folder: Path, project: str, config: dict[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._open: Any = SummaryWriter
        self._folder = run_folder / "tensorboard"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._config = f"```json\n{json.dumps(config, indent=1)}\n```"
        self._project = project
        self._writer: Any = None

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        if self._writer is None:
            again = any(self._folder.iterdir())
            self._writer = self._open(str(self._folder), purge_step=step if again else None)
            self._writer.add_text(self._project, self._config, step)
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


_OPEN: Mapping[str, type[_Trackio] | type[_Wandb] | type[_TensorBoard]] = {
    "trackio": _Trackio,
    "wandb": _Wandb,
    "tensorboard": _TensorBoard,
}


def _run_id(run_folder: Path, tracker: str, make: Any) -> str:
    """What the tracker calls this run: as before, if it was tracked before."""
    path = run_folder / _IDS
    try:
        ids = json.loads(path.read_text("utf-8")) if path.exists() else {}
        known = ids.get(tracker)
    except (ValueError, AttributeError):
        raise TrackerError(f"{path} is no JSON object of names: delete it, and the run gets new names") from None
    if isinstance(known, str) and known:
        return known
    ids[tracker] = made = str(make())
    run_folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{_IDS}.partial")
    partial.write_text(json.dumps(ids, indent=1) + "\n", "utf-8")
    partial.replace(path)
    return made


def _title(run_folder: Path) -> str:
    return run_folder.resolve().name or "run"


def _close(sink: _Sink, failed: list[BaseException]) -> None:
    try:
        sink.close()
    except BaseException as error:  # wandb ends threads by SystemExit
        failed.append(error)


def _warn(text: str) -> None:
    warnings.warn(text, TrackerWarning, stacklevel=3)


def _told(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}", 1000)
