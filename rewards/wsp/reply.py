"""What an episode answers. It stands by itself: clients of a lab need no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reply:
    """The answer to one assistant message.

    ``messages`` are of the role ``tool`` (with ``tool_call_id``), in the order of the calls; then perhaps one of
    ``user``.
    """

    messages: tuple[dict[str, str], ...]
    done: bool  #: the episode has ended: submitted, out of turns, or out of API dollars
