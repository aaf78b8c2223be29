"""The models of instances in memory: each loaded once, shared by its episodes, dropped by least recent use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.lab.errors import LabError


@dataclass(frozen=True)
class Instance:
    """What an episode is played on."""

    task: Task  #: with its prompt, as an agent is shown it
    engine: Engine  #: of the defective model


@dataclass(eq=False)
class _Entry:
    instance: Future[Instance] = field(default_factory=Future)
    users: int = 0


class LoadedInstances:
    """Instances by id. Safe to use from many threads.

    Args:
        load: of an id; None where there is none. It is called by one thread at a time for each id.
        most: instances in memory. One that is played is never dropped.
    """

    def __init__(self, load: Callable[[str], Instance | None], most: int) -> None:
        self._load = load
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def borrow(self, id: str) -> Instance:
        """The instance, which stays in memory until it is given back.

        Raises:
            LabError: there is none, or as many others as may be are being played.
            Exception: what ``load`` raises; the next one to borrow tries again.
        """
        with self._lock:
            if new := (entry := self._entries.get(id)) is None:
                self._make_room()
                entry = self._entries[id] = _Entry()
            assert entry is not None
            entry.users += 1
            self._entries.move_to_end(id)
        if new:
            try:
                if (loaded := self._load(id)) is None:
                    raise LabError(404, "unknown_instance", f"there is no instance {id!r} here")
                entry.instance.set_result(loaded)
            except BaseException as error:
                with self._lock:
                    del self._entries[id]
                entry.instance.set_exception(error)
        return entry.instance.result()

    def give_back(self, id: str) -> None:
        """One borrower less."""
        with self._lock:
            self._entries[id].users -= 1

    def __len__(self) -> int:
        return len(self._entries)

    def _make_room(self) -> None:
        while len(self._entries) >= self._most:
            idle = next((id for id, entry in self._entries.items() if not entry.users), None)
            if idle is None:
                raise LabError(
                    503, "busy", f"{self._most} instances are being played, and no more fit: try again later"
                )
            del self._entries[idle]
