"""``weightgym wsp``: commands of WSP-Bench alone."""

from __future__ import annotations

import click

from weightgym.cli.main import LazyGroup

_COMMANDS = {
    "make": ("weightgym.cli.wsp_make:make", "Make instances: a file of tasks, and their truth beside it."),
    "play": ("weightgym.cli.wsp_play:play", "Play an episode yourself, or let a scripted agent do it."),
    "serve": ("weightgym.cli.wsp_serve:serve", "Serve episodes over HTTP, for agents of your own."),
    "score": ("weightgym.cli.wsp_score:score", "Score conversations, and say what came of them."),
    "report": ("weightgym.cli.wsp_report:report", "Overall result of scored episodes, and their report cards."),
    "references": ("weightgym.cli.wsp_references:references", "Score the scripted agents on a set of instances."),
}


@click.group(cls=LazyGroup, table=_COMMANDS, epilog="Start with: weightgym tasks wsp-bench")
def wsp() -> None:
    """WSP-Bench: find and repair a defect that was planted into a language model's weights.

    Instances are those that the package ships, and of the files named in WEIGHTGYM_WSP_SETS (NAME.jsonl, with the truth
    in NAME.truth beside it).
    """
