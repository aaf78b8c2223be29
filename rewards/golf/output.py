"""The scorer's output: a result with a digest, so that an edited one is told. It is what commands print and save."""

from __future__ import annotations

import hashlib
from typing import Self

from pydantic import Field, ValidationError, ValidationInfo, model_validator

from weightgym.rewards.contracts import canonical_json, sha256_hex
from weightgym.rewards.golf.report import Result

#: Bytes of one output as JSON. An honest one has a few thousand.
MAX_BYTES = 1 << 20
#: The context of validation where a hash must be given.
_READ = {"read": True}


class OutputError(ValueError):
    """Text that is no output of the scorer, or one that was edited. One line, without the text itself."""


class Output(Result):
    """A result that names the ``solution.py`` it is of.

    ``hash`` is the SHA-256 of the canonical JSON of all other fields. It is computed when it is not given, and one that
    does not match is refused. That finds what was edited by hand or broken on disk; it is no signature, for anybody can
    compute it. Who doubts an output runs the file again (``weightgym golf verify``).
    """

    source_sha256: str = Field(pattern=r"\A[0-9a-f]{64}\z")
    hash: str = ""

    @model_validator(mode="after")
    def _fill_hash(self, info: ValidationInfo) -> Self:
        digest = sha256_hex(canonical_json(self.model_dump(mode="json", exclude={"hash"})))
        if not self.hash and info.context is _READ:
            raise ValueError("hash is missing")
        if not self.hash:
            object.__setattr__(self, "hash", digest)  # the model is frozen for everyone else
        elif self.hash != digest:
            raise ValueError(f"hash {self.hash[:12]!a} does not match the content ({digest[:12]}…): it was edited")
        return self

    @classmethod
    def of(cls, result: Result) -> Output:
        """The output of a run that has just ended with this result."""
        return cls(**result.model_dump())


def source_sha256(raw: bytes) -> str:
    """How outputs name a solution: the SHA-256 of its file, byte for byte."""
    return hashlib.sha256(raw).hexdigest()


def parse_output(text: bytes) -> Output:
    """Read an output back. Nothing is converted, and it must hold its hash.

    Raises:
        OutputError: it is no output, contradicts itself, or does not have the hash that it says.
    """
    if len(text) > MAX_BYTES:
        raise OutputError(f"{len(text):,} bytes are too many for an output; at most {MAX_BYTES:,}")
    try:
        output = Output.model_validate_json(text, strict=True, context=_READ)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"][:3]))[:80]
        raise OutputError(f"{place or 'output'}: {first['msg'][:200]}") from None
    return output
