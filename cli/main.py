"""The ``weightgym`` command. Subcommands are imported when they are called, so that ``--help`` is quick."""

from __future__ import annotations

import difflib
import importlib
import io
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

#: Every subcommand: where it lives, and its line in the help.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "envs": ("weightgym.cli.envs:envs", "List the environments."),
    "tasks": ("weightgym.cli.tasks:tasks", "List the tasks of an environment."),
    "prompt": ("weightgym.cli.prompt:prompt", "Print what the model is shown for a task."),
    "score": ("weightgym.cli.score:score", "Score a file of answers, or one answer."),
    "rollout": ("weightgym.cli.rollout:rollout", "Let a policy answer tasks, and score its answers."),
    "eval": ("weightgym.cli.evaluate:evaluate", "How good is a policy? Mean, best@k and pass@k, or against another."),
    "train": ("weightgym.cli.train:train", "Fine-tune a language model with GRPO."),
    "inspect": ("weightgym.cli.inspect:inspect", "Look at scored answers, or at a training run."),
    "golf": ("weightgym.cli.golf:golf", "Tools for Mini Parameter Golf."),
    "docs": ("weightgym.cli.docs:docs", "Make the documentation's pages that follow from the code."),
    "doctor": ("weightgym.cli.doctor:doctor", "Say whether this machine can sandbox foreign code."),
    "wpb": ("weightgym.cli.wpb:wpb", "Tools for WeightProgramBench."),
    "wsp": ("weightgym.cli.wsp:wsp", "Tools for WSP-Bench."),
}
#: Packages that a plain installation leaves out, and the extra that brings each.
EXTRAS: Mapping[str, str] = {
    "PIL": "games", "numba": "games",
    "safetensors": "train", "tokenizers": "train", "torch": "train", "transformers": "train",
    "httpx": "servers", "tenacity": "servers",
    "jinja2": "plots", "matplotlib": "plots",
    "huggingface_hub": "hf", "modal": "modal", "peft": "lora", "pyarrow": "parquet",
}  # fmt: skip


class LazyGroup(click.Group):
    """A group that knows its subcommands by name and imports one when it is called."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the table's order."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the subcommand; a missing package is one line, not a traceback."""
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            raise click.ClickException(
                f"{cmd_name!r} needs the module {error.name!r}, which is not installed"
            ) from None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name on a typo."""
        near = [] if args[0] in self.table else difflib.get_close_matches(args[0], self.table, n=1)
        if near:
            ctx.fail(f"no such command {args[0]!r}: did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help, out of the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.table.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; what is expected to go wrong becomes one ``Error:`` line."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            # Names and texts come from files.
            vars(error)["message"] = "\n".join(map(_printable, error.message.split("\n")))
            raise
        except BrokenPipeError:
            raise  # the reader of our output left: click ends quietly
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in EXTRAS:
                raise
            needed = f"this needs {package}: pip install 'weightgym[{EXTRAS[package]}]'"
            raise click.ClickException(needed) from error
        except OSError as error:
            raise click.ClickException(_os_error_text(error)) from error
        except Exception as error:
            if _is_boundary_error(error):
                raise click.ClickException(" ".join(str(error).split())) from error
            raise


def _printable(text: str) -> str:
    from weightgym.cli.console import printable

    return printable(text)


def _os_error_text(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}"


def _is_boundary_error(error: Exception) -> bool:
    contracts = sys.modules.get("weightgym.rewards.contracts")  # not imported just to look
    return contracts is not None and isinstance(error, contracts.WeightgymError)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: weightgym prompt original/breakout",
)
@click.version_option(package_name="weightgym", prog_name="weightgym")
def cli() -> None:
    """Reinforcement-learning environments for language models that work on neural-network weights."""


def main(args: Sequence[str] | None = None, *, standalone_mode: bool = True) -> None:
    """Run the command line (``sys.argv`` by default)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # texts from JSON may hold what no encoding can
    cli.main(args, prog_name="weightgym", standalone_mode=standalone_mode)
