"""One client's episode in a lab: its lock, and its replies by message id."""

from __future__ import annotations

import json
import threading
import time
import zlib
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import JsonValue

from weightgym.rewards.contracts import BackendError, Task, canonical_json, sha256_hex
from weightgym.rewards.wsp.episode import Ending, Episode
from weightgym.rewards.wsp.lab.bodies import WrittenMessage
from weightgym.rewards.wsp.lab.errors import LabError

#: How a session ends: as its episode did; by the client; by its silence; or because the lab was closed.
Closing = Ending | Literal["closed", "lease", "shutdown"]


@dataclass(eq=False)
class Session:
    """Everything but ``id`` and ``lock`` is looked at under the lock."""

    id: str
    instance_id: str
    task: Task
    episode: Episode | None  #: None once it has been scored: its model can be dropped then
    tools: list[dict[str, Any]]
    begun: dict[str, JsonValue]  #: its budgets at the beginning
    #: When the client was last heard of.
    used: float = field(default_factory=time.monotonic)
    ended_by: Closing = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: By message id: what was asked, as a hash, and what was answered, packed.
    replies: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    #: Its budgets after the last message.
    status: dict[str, JsonValue] = field(init=False)

    def __post_init__(self) -> None:
        self.status = self.begun

    def answer(self, id: str, message: WrittenMessage) -> dict[str, Any]:
        """The reply to a message; to one that was answered before, the same.

        Raises:
            LabError: the id was another message's, the episode has ended, or the message lacks its usage.
        """
        written = message.model_dump(mode="json")
        try:
            digest = sha256_hex(canonical_json(written))
        except ValueError as error:
            raise LabError(400, "bad_request", "message: it holds numbers that are not finite") from error
        if (known := self.replies.get(id)) is not None:
            if known[0] != digest:
                raise LabError(409, "id_taken", f"message id {id!r} was used for another message of this episode")
            return _unpacked(known[1])
        if self.ended_by or self.episode is None:
            raise LabError(409, "ended", f"the episode has ended: {TOLD[self.ended_by]}")
        try:
            reply = self.episode.message(written)
        except BackendError as error:
            raise LabError(400, "bad_usage", str(error)) from error
        self.status = self.episode.status()
        packed = _packed({"messages": list(reply.messages), "done": reply.done, "status": self.status})
        self.replies[id] = digest, packed
        return _unpacked(packed)

    def told(self) -> dict[str, JsonValue]:
        """What its client may know."""
        return {"episode": self.id, "ended_by": self.ended_by, "done": bool(self.ended_by), "status": self.status}


#: For clients.
TOLD: dict[str, str] = {
    "submit": "submitted",
    "turns": "out of turns, submitted as it was",
    "dollars": "out of API dollars, submitted as it was",
    "closed": "closed by its client, submitted as it was",
    "lease": "nothing was heard of its client for too long, submitted as it was",
    "shutdown": "the lab was closed",
}


def _packed(reply: dict[str, Any]) -> bytes:
    return zlib.compress(canonical_json(reply).encode())


def _unpacked(packed: bytes) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(zlib.decompress(packed))
    return reply
