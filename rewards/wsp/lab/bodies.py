"""The bodies of requests, checked strictly. What a model wrote inside a call may be anything: the episode judges it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError

from weightgym.rewards.wsp.lab.errors import LabError

#: Calls of one message that are read at all; an episode runs eight.
MOST_CALLS = 32

Id = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,100}$")]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Written(BaseModel):
    """Of a model server, which may have fields that we don't know."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class WrittenFunction(_Written):
    """A tool's name and arguments."""

    name: str
    arguments: str


class WrittenCall(_Written):
    """A tool call in OpenAI's form."""

    id: str = Field(max_length=200)
    type: Literal["function"] = "function"
    function: WrittenFunction


class WrittenMessage(_Written):
    """An assistant message in OpenAI's form."""

    role: Literal["assistant"] = "assistant"
    content: str | list[JsonValue] | None = None
    tool_calls: list[WrittenCall] | None = Field(default=None, max_length=MOST_CALLS)
    usage: dict[str, JsonValue] | None = None


class OpenEpisode(_Body):
    """``POST /episodes``. The same id again is the same episode."""

    id: Id
    instance: str = Field(min_length=1, max_length=200)


class SendMessage(_Body):
    """``POST /episodes/EPISODE/messages``. The same id again gets the same reply."""

    id: Id
    message: WrittenMessage


Body = TypeVar("Body", OpenEpisode, SendMessage)


def read(body: type[Body], raw: bytes) -> Body:
    """A request's body.

    Raises:
        LabError: it has another form.
    """
    try:
        return body.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise LabError(400, "bad_request", f"{where}: {first['msg']}" if where else first["msg"]) from error
    except (ValueError, RecursionError) as error:
        raise LabError(400, "bad_request", "the body is no JSON object that can be read") from error
