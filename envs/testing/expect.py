"""How a check says what it wanted and what it saw, and how two results are compared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from pydantic import BaseModel

from weightgym.rewards.contracts import Score


class ContractError(AssertionError):
    """The environment breaks its contract. The message says what was wanted and what was seen."""


def fail(what: str, *, wanted: str, seen: str) -> NoReturn:
    """Raise the ``ContractError``."""
    raise ContractError(f"{what}\n  wanted: {wanted}\n  seen:   {seen}")


def show(value: Any, limit: int = 200) -> str:
    """A value as printable ASCII (answers may hold anything), cut to ``limit`` characters."""
    text = ascii(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def comparable(value: Any) -> Any:
    """``value`` as plain lists, dicts and scalars that ``==`` compares. A ``Score`` comes without its times, only."""
    if isinstance(value, Score):
        return comparable(value.model_dump(exclude={"seconds", "timings"}))
    if isinstance(value, BaseModel):
        return comparable(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: comparable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars, without importing NumPy
        return comparable(value.tolist())
    if isinstance(value, float) and math.isnan(value):
        return "nan"  # equal to itself, unlike the number
    return value


def first_difference(wanted: Any, seen: Any, path: str = "") -> tuple[str, str, str] | None:
    """Where two comparable values differ first, as (path, wanted, seen), or None."""
    if isinstance(wanted, dict) and isinstance(seen, dict):
        for key in sorted(wanted.keys() | seen.keys(), key=repr):
            if key not in wanted or key not in seen:
                left, right = ("nothing" if key not in side else show(side[key]) for side in (wanted, seen))
                return f"{path}[{key!r}]", left, right
            if found := first_difference(wanted[key], seen[key], f"{path}[{key!r}]"):
                return found
        return None
    if isinstance(wanted, list) and isinstance(seen, list):
        for index, (left, right) in enumerate(zip(wanted, seen, strict=False)):
            if found := first_difference(left, right, f"{path}[{index}]"):
                return found
        return None if len(wanted) == len(seen) else (f"len({path})", str(len(wanted)), str(len(seen)))
    return None if wanted == seen else (path, show(wanted), show(seen))


def expect_equal(what: str, *, wanted: Any, seen: Any) -> None:
    """Fail at the first difference of two results."""
    if found := first_difference(comparable(wanted), comparable(seen)):
        path, left, right = found
        fail(f"{what} (they differ at {path or 'the top'})", wanted=left, seen=right)


def expect_raises(what: str, call: Callable[[], Any], *kinds: type[Exception], mention: str = "") -> None:
    """Fail unless ``call`` raises one of ``kinds``, with ``mention`` in the message."""
    wanted = " or ".join(kind.__name__ for kind in kinds) + (f" that mentions {mention}" if mention else "")
    try:
        result = call()
    except kinds as error:
        if mention not in str(error):
            fail(what, wanted=wanted, seen=f"{type(error).__name__}: {error}")
    except Exception as error:
        fail(what, wanted=wanted, seen=f"{type(error).__name__}: {error}")
    else:
        fail(what, wanted=wanted, seen=f"no error, but {show(result)}")
