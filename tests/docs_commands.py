"""The shell commands that stand in Markdown, and whether the programs that they name would take them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from weightgym.cli.main import cli
from weightgym.trainers.config import load

ROOT = Path(__file__).parents[1]
#: Fences, with what is in them; a fence ends with as many backticks as it began with.
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^(?P=fence)`*$", re.MULTILINE | re.DOTALL)
_SHELL = ("sh", "bash", "console", "shell")


def written_pages() -> list[Path]:
    """README.md and every page of docs and examples."""
    folders = [path for name in ("docs", "examples") for path in (ROOT / name).rglob("*.md")]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(folders)]


def blocks(text: str, kinds: tuple[str, ...]) -> list[str]:
    """What stands in fences of these kinds."""
    return [found["text"] for found in _FENCE.finditer(text) if found["kind"] in kinds]


def fenced_commands(text: str) -> list[str]:
    """The commands in the shell blocks of a page: one a line, continuations joined, comments left out."""
    lines = "".join(blocks(text, _SHELL)).replace("\\\n", " ").splitlines()
    return [command for line in lines if (command := _without_comment(line))]


def inline_commands(text: str) -> list[str]:
    """The calls of weightgym in running text."""
    prose = _FENCE.sub("", text)
    return [" ".join(code.split()) for code in re.findall(r"`(weightgym(?:\s[^`]*)?)`", prose)]


def help_commands(command: click.Command = cli, name: str = "weightgym") -> Iterator[tuple[str, str]]:
    """The examples in the helps of all commands: whose help it is, and the call, which two blanks end."""
    for line in (command.epilog or "").replace("\\\n", "").splitlines():
        if "weightgym " in line:
            yield name, re.split(r"\s{2,}", line[line.index("weightgym ") :].strip())[0]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for sub in command.list_commands(context):
            if (found := command.get_command(context, sub)) is not None:
                yield from help_commands(found, f"{name} {sub}")


def check(command: str, *, in_prose: bool = False) -> None:
    """Whether the program that a command names would take it, as far as one can tell without running it.

    ``in_prose``: arguments that it needs may be left out.

    Raises:
        click.ClickException, AssertionError: it would not.
    """
    for inner in re.findall(r"\$\(([^)]*)\)", command):
        check(inner)
    for part in re.split(r" (?:\||&&|;) ", re.sub(r"\$\([^)]*\)", "X", command)):
        _check_one(re.split(r" [<>]+ ", part)[0], in_prose)


def _check_one(command: str, in_prose: bool) -> None:
    words = shlex.split(command)
    while "=" in words[0]:  # variables
        words.pop(0)
    if "weightgym" in words:
        _check_call(words[words.index("weightgym") + 1 :], in_prose)
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), command
    elif words[0] == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for wanted in re.findall(r"(?:\bweightgym|\.)\[([\w,-]+)\]", command):
            assert set(wanted.split(",")) <= extras.keys(), command
    elif words[0] in ("sh", "python", "cp"):
        assert (ROOT / words[1]).is_file(), command
    elif words[0] == "pytest":
        assert (ROOT / words[1]).is_dir(), command
    elif words[0] in ("vf-eval", "vf-validate"):
        assert (ROOT / "envs" / "hub" / f"{words[1].replace('-', '_')}.py").is_file(), command
    else:
        assert words[0] in (".", "head", "jq"), f"{command}: say here how it is checked"


def _check_call(words: list[str], in_prose: bool) -> None:
    """Go down the groups of commands, with click's own parsers; nothing is opened and nothing is run."""
    command, context = _command(cli), None
    while True:
        settings = dict(command.context_settings)
        context = click.Context(command, parent=context, info_name=command.name, **settings)
        if {"-h", "--help", "--version", "--fields"} & set(words):
            return
        given, rest, _ = command.make_parser(context).parse_args(list(words))
        for param in command.get_params(context):
            _check_value(context, param, given.get(param.name or ""), in_prose)
        if not isinstance(command, click.Group):
            break
        if not rest:
            return
        _, found, words = command.resolve_command(context, rest)
        command = _command(found)
    if rest:
        raise click.UsageError(f"unexpected {rest}", context)
    if command.name == "train" and (config := ROOT / str(given["config"])).is_file():
        load(config, given["flags"] if isinstance(given["flags"], tuple) else ())


def _command(found: click.Command | None) -> click.Command:
    assert found is not None
    return found


def _check_value(context: click.Context, param: click.Parameter, value: object, in_prose: bool) -> None:
    if value is None or param.value_is_missing(value):
        if param.required and not in_prose:
            raise click.MissingParameter(ctx=context, param=param)
        return
    try:
        param.type_cast_value(context, value)
    except click.BadParameter:
        if not isinstance(param.type, click.Path | click.File):  # the file need not be there
            raise


def _without_comment(line: str) -> str:
    """The line up to a # that begins a word outside quotes, with single spaces."""
    found = re.match(r"""(?:'[^']*'|"[^"]*"|(?<=\S)\#|[^'"\#])*""", line)
    assert found is not None
    assert line[found.end() :][:1] in ("", "#"), f"a quote is left open: {line}"
    return " ".join(found[0].split())
