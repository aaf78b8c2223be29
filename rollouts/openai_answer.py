"""What an OpenAI-compatible chat endpoint answers, made a sample. It is read with care: servers differ."""

from __future__ import annotations

import json
from typing import Any

from weightgym.rewards.contracts import BackendError, ModelError, completion_text
from weightgym.rollouts.backend import Request, Sample

_MOST_SHOWN = 300


def read_answer(body: bytes, request: Request, *, server: str, secret: str = "") -> Sample:
    """The sample in the body of a chat completion.

    A finish reason other than ``length`` is a stop: servers have several words for it. ``content_filter`` is none: what
    the provider cut is not what the model wrote.

    Raises:
        BackendError: it is no chat completion, or the provider's filter cut it; the message names ``server`` and
            shows no ``secret``.
    """
    try:
        choice = json.loads(body)["choices"][0]
        message = choice["message"]
        # a refusal is what the model said, too
        content = completion_text([{"role": "assistant", "content": message.get("content") or message.get("refusal")}])
        calls = tuple(_call(call) for call in message.get("tool_calls") or ())
        reason = choice.get("finish_reason")
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, ModelError):
        raise BackendError(f"{server} gave what is no chat completion: {told(body, secret=secret)}") from None
    if reason == "content_filter":
        raise BackendError(f"{server} cut the answer by its content filter")
    return Sample(
        request.id,
        _whole(content),
        "length" if reason == "length" else "stop",
        tool_calls=calls if calls or request.tools else None,
    )


def _call(call: Any) -> dict[str, Any]:
    """An OpenAI tool call with nothing else in it. Some servers give the arguments as an object."""
    function = call["function"]
    arguments = function.get("arguments") or ""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    named = {"name": _whole(function["name"]), "arguments": _whole(text)}
    return {"id": _whole(call.get("id") or ""), "type": "function", "function": named}


def _whole(text: str) -> str:
    """JSON can carry half a surrogate pair; no file can."""
    return text.encode("utf-8", "replace").decode()


def told(body: bytes, *, secret: str = "") -> str:
    """What the body of a refusal says, in one short line; the secret is taken out before anything is cut."""
    text = body.decode("utf-8", "replace")
    text = text.replace(secret, "[key]") if secret else text
    try:
        fields = json.loads(text)
        error = fields.get("error", fields)
        said = error if isinstance(error, str) else error.get("message") or error.get("detail") or text
        code = "" if isinstance(error, str) else error.get("code") or error.get("type") or ""
        text = f"{said} ({code})" if isinstance(code, str) and code and code not in str(said) else str(said)
    except (ValueError, AttributeError, RecursionError):
        pass  # not JSON, or of another form: shown as it is
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return (line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…") or "nothing"
