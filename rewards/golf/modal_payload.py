"""What goes to a container on Modal, and what comes back: two JSON texts with a version and bounds, read strictly.

No pickles in either direction. A reply is no proof of anything but its form: it is compared with what was asked for.
The text of the corpus travels beside the payload, as files that the payload names by size and SHA-256: so languages and
files of bytes go one way, and ``WEIGHTGYM_SECRET`` never leaves this machine (its hash does, in ``origin``).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import secrets
from typing import Annotated, Any, Literal, NoReturn, Self, get_args

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError, model_validator

from weightgym.rewards.contracts import SandboxError, canonical_json
from weightgym.rewards.golf.data.corpus import LEAST_BYTES, Corpus
from weightgym.rewards.golf.profile import Profile, profile
from weightgym.rewards.golf.report import Result
from weightgym.rewards.golf.source import MAX_BYTES
from weightgym.rewards.one_line import one_line

#: Of both texts. A change of either is a new version, which the other side refuses.
VERSION: Literal[1] = 1
MAX_PAYLOAD_BYTES = 2 << 20
MAX_REPLY_BYTES = 1 << 20
_MAX_FAULT = 2000
#: A reply is folded, so that nothing between there and here has to carry long lines.
_LINE = 1000

#: The parts of a corpus that travel, each in a file of its own.
StreamName = Literal["train", "val", "other"]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Stream(BaseModel):
    """Which bytes a file must hold."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    size: int = Field(ge=LEAST_BYTES)
    sha256: Sha256

    @classmethod
    def of(cls, data: npt.NDArray[np.uint8]) -> Self:
        """That of an array, uint8 of shape (bytes,)."""
        return cls(size=data.size, sha256=hashlib.sha256(np.ascontiguousarray(data).data).hexdigest())


class Payload(BaseModel):
    """One candidate: the bytes of its file, and what it is scored on, by which evaluator. ``origin`` names the corpus
    (task, generator, hash of the secret); ``nonce`` is repeated by the reply."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: Literal[1] = VERSION
    nonce: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    profile: str = Field(min_length=1, max_length=100)
    evaluator: str = Field(min_length=1, max_length=100)
    source: str = Field(max_length=4 * math.ceil(MAX_BYTES / 3))  #: base64
    streams: dict[StreamName, Stream]
    origin: dict[str, JsonValue]
    unsafe: bool = False

    @classmethod
    def of(cls, raw: bytes, known: Profile, corpus: Corpus, *, evaluator: str, unsafe: bool) -> Self:
        """The payload of a ``solution.py`` of at most ``MAX_BYTES``, with a new nonce.

        Raises:
            SandboxError: the corpus is too small for the longest row, or its origin is no JSON.
        """
        try:
            return cls(
                nonce=secrets.token_hex(16),
                profile=known.name,
                evaluator=evaluator,
                source=base64.b64encode(raw).decode(),
                streams={name: Stream.of(getattr(corpus, name)) for name in get_args(StreamName)},
                origin=corpus.origin,
                unsafe=unsafe,
            )
        except ValidationError as error:
            raise SandboxError(f"nothing can be sent to Modal: {first_fault(error)}") from None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if missing := set(get_args(StreamName)) - set(self.streams):
            raise ValueError(f"streams lack {', '.join(sorted(missing))}")
        return self

    @property
    def raw(self) -> bytes:
        """The bytes of the file."""
        return base64.b64decode(self.source, validate=True)

    def encode(self) -> bytes:
        """One line of ASCII; ``SandboxError`` if it is too long."""
        text = canonical_json(self.model_dump(mode="json")).encode()
        if len(text) > MAX_PAYLOAD_BYTES:
            raise SandboxError(f"the payload has {len(text):,} bytes; {MAX_PAYLOAD_BYTES:,} are allowed")
        return text

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read a payload.

        Raises:
            SandboxError: it is too long, of another version, or not what this class says.
        """
        if len(text) > MAX_PAYLOAD_BYTES:
            raise SandboxError(f"the payload has more than {MAX_PAYLOAD_BYTES:,} bytes")
        try:
            payload = cls.model_validate_json(text)
            if len(payload.raw) > MAX_BYTES:
                raise SandboxError(f"the payload's source has more than {MAX_BYTES:,} bytes")
        except ValueError as error:  # of JSON, of this class, of base64
            raise SandboxError(f"the payload is not of version {VERSION}: {first_fault(error)}") from None
        return payload


class Reply(BaseModel):
    """What the container says: a result, or what went wrong on our side of it (one line)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = VERSION
    nonce: str
    result: Result | None = None
    fault: str | None = Field(default=None, max_length=_MAX_FAULT)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.result is None) == (self.fault is None):
            raise ValueError("a reply holds a result or a fault")
        return self

    @classmethod
    def of_fault(cls, payload: Payload, text: str) -> Self:
        """That of a failure which is not the candidate's."""
        return cls(nonce=payload.nonce, fault=one_line(text, _MAX_FAULT))

    def encode(self) -> bytes:
        """ASCII, folded into lines."""
        text = canonical_json(self.model_dump(mode="json")).encode()
        return b"".join(text[start : start + _LINE] + b"\n" for start in range(0, len(text), _LINE))


def read_reply(text: bytes, payload: Payload) -> Result:
    """The result in a reply to that payload.

    Raises:
        SandboxError: the container reports a fault, or this is not one reply, well-formed, to this very question.
    """
    if len(text) > MAX_REPLY_BYTES:
        _malformed(f"more than {MAX_REPLY_BYTES:,} bytes")
    text = text.replace(b"\n", b"")
    try:
        json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
        reply = Reply.model_validate_json(text, strict=True)
    except (ValueError, RecursionError) as error:
        _malformed(first_fault(error) if text else "nothing at all")
    if reply.nonce != payload.nonce:
        _malformed("it answers another question")
    if reply.result is None:
        raise SandboxError(f"on Modal: {one_line(reply.fault or '')}")
    raw, result = payload.raw, reply.result
    asked = {
        "profile": payload.profile,
        "evaluator": payload.evaluator,
        "corpus": payload.origin,
        "source_bytes": len(raw),
        "source_sha256": hashlib.sha256(raw).hexdigest(),
    }
    for name, value in asked.items():
        if getattr(result, name) != value:
            _malformed(f"its {name} is not the one that was asked for")
    cap = profile(payload.profile).artifact_cap
    if result.status == "ok" and not 0 < (result.artifact_bytes or 0) <= cap:
        _malformed(f"its artifact_bytes {result.artifact_bytes} are not 1 to {cap:,}")
    return result


def first_fault(error: Exception) -> str:
    """What is wrong, in one line, without the value that is (it may be long)."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        return one_line(f"{where}: {first['msg']}" if where else first["msg"])
    return one_line(str(error))


def _malformed(why: str) -> NoReturn:
    raise SandboxError(f"the reply from Modal is malformed: {why}")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)


def _refuse_number(text: str) -> Any:
    raise ValueError(f"the number {text[:20]} is not finite")
