"""Every field of ``BackendOptions`` as a flag of a command, out of the model itself: name, type, help and default."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import click
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from weightgym.rollouts.backends import BackendOptions

Command = Callable[..., Any]

#: Fields that only a trainer has a use for.
_OF_TRAINERS = frozenset({"lora_rank"})
_FIELDS = {name: field for name, field in BackendOptions.model_fields.items() if name not in _OF_TRAINERS}


class BackendOption(click.Option):
    """An option that stands in a section of its own in the help."""


class PolicyCommand(click.Command):
    """A command whose help lists the options of backends after its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Two sections."""
        for title, of_backend in (("Options", False), ("Backend options", True)):
            options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
            chosen = [one for one in options if isinstance(one, BackendOption) is of_backend]
            with formatter.section(title):
                formatter.write_dl([record for one in chosen if (record := one.get_help_record(ctx))])


def backend_options(function: Command) -> Command:
    """Add the flags; the command is given a ``BackendOptions`` as ``backend``."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in _FIELDS}
        return function(*args, backend=_checked(given), **kwargs)

    command: Command = run
    for name in reversed(_FIELDS):
        command = _option(name, _FIELDS[name])(command)
    return command


def _checked(given: dict[str, Any]) -> BackendOptions:
    """What was not given is left to the model.

    Raises:
        click.BadParameter: a value is out of range.
    """
    try:
        return BackendOptions(**{name: value for name, value in given.items() if value not in (None, ())})
    except ValidationError as error:
        first = error.errors()[0]
        raise click.BadParameter(
            f"{first['msg'].lower()}, got {first['input']!r}", param_hint=_flag(str(first["loc"][0]))
        ) from error


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _option(name: str, field: FieldInfo) -> Callable[[Command], Command]:
    default = field.default
    flag, help = _flag(name), field.description or ""
    kind = next(one for one in (*get_args(field.annotation), field.annotation) if one is not NoneType)
    if get_origin(field.annotation) is Literal:
        kind = click.Choice(get_args(field.annotation))
    if kind is bool:
        return click.option(
            f"{flag}/--no-{flag[2:]}", name, cls=BackendOption, default=None, help=f"{help}  [default: {default}]"
        )
    if default not in (None, "", ()):
        help = f"{help}  [default: {default:g}]" if isinstance(default, float) else f"{help}  [default: {default}]"
    multiple = get_origin(field.annotation) is tuple
    return click.option(flag, name, cls=BackendOption, type=kind, multiple=multiple, help=help)
