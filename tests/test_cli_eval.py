"""``weightgym eval``, and what ``weightgym rollout`` shares with it: backend flags, resuming, clear failures."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import toy_scorers
from click.testing import CliRunner, Result
from openai_server import Reply, Seen, chat, refusal, serve
from tenacity.wait import wait_none

from weightgym.cli.backend_options import BackendOption
from weightgym.cli.evaluate import evaluate as command
from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.rewards.statistics import mean_interval
from weightgym.rollouts import openai_backend
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.evaluation import Outcome, compare, evaluate
from weightgym.rollouts.store import read

PROFILE = "wpb-v1-e4"
GAMES = ("builtin/fruit_basket", "builtin/wall_rally")
TASKS = ("--task", GAMES[0], "--task", GAMES[1])
CHEAP = (*TASKS, "--profile", PROFILE, "--workers", "1")
TOY = ("--env", "toy", "--split", "test", "--workers", "1")


def weightgym(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, args)), prog_name="weightgym")


def answers(path: Path, *rows: tuple[str, str], env: str = "toy") -> str:
    """A policy that replays ``(task, completion)`` rows."""
    path.write_text("".join(json.dumps({"env": env, "task": t, "completion": c}) + "\n" for t, c in rows))
    return f"replay:{path}"


def toys(folder: Path, name: str, one: list[str], two: list[str]) -> str:
    return answers(folder / name, *(("easy/one", text) for text in one), *(("easy/two", text) for text in two))


def outcomes(path: Path) -> list[Outcome]:
    return [Outcome.of(one) for one in read(path)]


def test_the_numbers_are_those_of_the_rollouts(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    with registry.override(toy_scorers.SPEC):
        policy = toys(tmp_path, "a.jsonl", ["a", "b", "c"], ["", "e", "f"])
        done = weightgym(
            "eval", policy, *TOY, "--samples", "3", "-k", "3,1,2,2", "--threshold", "0.5", "-o", out, "--json"
        )
        again = weightgym("eval", out, "-k", "1,2,3", "--threshold", "0.5", "--json")
        table = weightgym("eval", out, "-k", "1,3")
    assert done.exit_code == again.exit_code == table.exit_code == 0, done.output
    got = json.loads(done.stdout)
    assert json.loads(again.stdout) == got
    rewards = {
        task: [one.reward or 0.0 for one in outcomes(out) if one.key[1] == task] for task in ("easy/one", "easy/two")
    }
    wanted = mean_interval(list(rewards.values()))
    assert got["overall"]["reward"] == {"mean": wanted.mean, "low": wanted.low, "high": wanted.high}
    assert (got["policy"], got["profile"], got["thresholds"]) == (policy, "toy-v1", {"toy": 0.5})
    assert [row["task"] for row in got["tasks"]] == ["easy/one", "easy/two"]
    assert [row["best"]["3"] for row in got["tasks"]] == [max(values) for values in rewards.values()]
    assert got["tasks"][1]["invalid"] == 1
    assert set(got["overall"]["passed"]) == {"1", "2", "3"}
    assert f"{wanted.mean:.4f}  {wanted.low:.4f} to {wanted.high:.4f}" in table.stdout
    assert "best@3" in table.stdout
    assert "pass@" not in table.stdout  # the toy declares no threshold


def test_the_threshold_of_the_environment(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = weightgym("eval", "scripted:echo", *CHEAP, "-o", out)
    assert done.exit_code == 0, done.output
    assert "from 0.5 on a reward passes" in done.stdout
    assert json.loads(weightgym("eval", out, "--json").stdout)["overall"]["passed"] == {"1": 0.0}
    low = json.loads(weightgym("eval", out, "--json", "--threshold", "0.05").stdout)
    assert low["overall"]["passed"] == {"1": 0.5}  # fruit_basket gets 0.075


def test_faults_are_left_out_and_told(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    with registry.override(toy_scorers.SPEC):
        policy = toys(tmp_path, "a.jsonl", ["a", "raise"], ["raise", "raise"])
        done = weightgym("eval", policy, *TOY, "--samples", "2", "-k", "1,2", "-o", out)
        whole = json.loads(weightgym("eval", out, "-k", "1,2", "--json").stdout)
        mended = toys(tmp_path, "a.jsonl", ["a", "b"], ["c", "d"])
        resumed = weightgym("eval", mended, *TOY, "--samples", "2", "-k", "1,2", "-o", out, "--resume")
    assert done.exit_code == 1
    assert "partial: 3 of 4 rollouts have no reward and are left out" in done.stderr
    assert "best@1 and pass@1 are of 1 of 2 tasks" in done.stderr
    (good,) = [one.reward for one in outcomes(out) if one.id.endswith("one#0")]
    assert whole["overall"]["reward"]["mean"] == good
    assert whole["overall"]["best"] == {"1": good}
    assert (whole["overall"]["faults"], whole["tasks"][1]["reward"]) == (3, None)
    assert resumed.exit_code == 0, resumed.output  # faults were made again, and nothing else
    assert "partial" not in resumed.stderr


def test_two_policies_are_compared_on_the_same_samples(tmp_path: Path) -> None:
    out, beside = tmp_path / "r.jsonl", tmp_path / "r.against.jsonl"
    with registry.override(toy_scorers.SPEC):
        first = toys(tmp_path, "a.jsonl", ["a", "b"], ["c", "d"])
        second = toys(tmp_path, "b.jsonl", ["b", "b"], ["", "raise"])
        done = weightgym("eval", first, "--against", second, *TOY, "--samples", "2", "-o", out, "--json")
        files = weightgym("eval", out, "--against", beside, "--json")
        mixed = weightgym("eval", first, "--against", beside, *TOY, "--samples", "2", "-o", out, "--resume")
    assert done.exit_code == files.exit_code == mixed.exit_code == 1  # one rollout has no reward
    got = json.loads(done.stdout)
    assert json.loads(files.stdout) == got
    wanted = compare(outcomes(out), outcomes(beside))
    assert got["against"]["policy"] == second
    assert got["comparison"]["overall"]["difference"]["mean"] == wanted.overall.difference.mean
    assert got["comparison"]["overall"]["pairs"] == 3
    assert got["comparison"]["unpaired"] == 2  # the fault and its partner
    assert got["comparison"]["same_seeds"]
    assert [row["task"] for row in got["comparison"]["tasks"]] == ["easy/one", "easy/two"]
    assert "on the same samples" in mixed.stdout
    assert f"{wanted.overall.difference.mean:+.4f}" in mixed.stdout
    assert evaluate(outcomes(out), [1], {}).overall.faults == 0


def test_what_does_not_compare_is_told(tmp_path: Path) -> None:
    one, two, three = (tmp_path / f"{name}.jsonl" for name in "abc")
    weightgym("eval", "scripted:echo", *CHEAP, "-o", one)
    weightgym("eval", "scripted:echo", *TASKS, "--profile", "wpb-v1-e2", "--workers", "1", "-o", two)
    weightgym("eval", "scripted:echo", *CHEAP, "--seed", "1", "-o", three)
    done = weightgym("eval", one, "--against", two)
    assert done.exit_code == 1
    assert "Error: scores compare within one profile only, not wpb-v1-e4 with wpb-v1-e2" in done.stderr
    done = weightgym("eval", one, "--against", three)
    assert done.exit_code == 0
    assert "the two sides have other seeds" in done.stderr
    one.write_bytes(one.read_bytes() * 2)
    assert "Error: " + f"{one}: rollout weight-program/{GAMES[0]}#0 is there 2 times" in weightgym("eval", one).stderr


def test_it_resumes_what_it_made_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    whole = weightgym("eval", "scripted:garbage", *CHEAP, "--samples", "2", "-o", out)
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:2]) + lines[2][:50])
    more = ("eval", "scripted:garbage", *CHEAP, "--samples", "2", "-o", out, "--resume")
    assert weightgym(*more).stdout == whole.stdout
    assert len(list(read(out))) == 4
    kept = out.read_bytes()
    for change, why in (
        (("--seed", "5"), "was made with another --seed"),
        (("--profile", "wpb-v1-e2"), "was made with another --profile"),
        (("--max-tokens", "9"), "was made with another --max-tokens"),
        (("--temperature", "0.3"), "was made with another --temperature"),
    ):
        done = weightgym(*more, *change)
        assert done.exit_code == 1
        assert why in done.stderr
    other = weightgym("eval", "scripted:empty", *CHEAP, "--samples", "3", "-o", out, "--resume")
    assert f"{out} is of policy scripted:garbage, not scripted:empty" in other.stderr
    assert out.read_bytes() == kept
    fewer = weightgym("eval", "scripted:garbage", *CHEAP, "--samples", "1", "-o", out, "--resume", "--json")
    assert json.loads(fewer.stdout)["overall"]["rollouts"] == 2  # what was asked for
    assert len(list(read(out))) == 4  # and nothing is lost


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("scripted:empty", *CHEAP), "say where the rollouts of scripted:empty go: -o FILE"),
        (("scripted:empty", "-o", "x.jsonl"), "either --task"),
        (("scripted:empty", *CHEAP, "--task", GAMES[0], "-o", "x.jsonl"), "a --task is named twice"),
        (("nothing.jsonl",), "there is no file nothing.jsonl"),
        (("scripted:empty", *CHEAP, "-o", "x.jsonl", "-k", "4"), "-k 4 needs --samples 4 or more, not 1"),
        (("scripted:empty", *CHEAP, "-o", "x.jsonl", "-k", "0"), "'0', want numbers from 1"),
        (("scripted:empty", *CHEAP, "-o", "x.jsonl", "-k", "1,,2"), "want numbers from 1"),
        (("scripted:empty", *CHEAP, "-o", "x.jsonl", "--threshold", "nan"), "nan, want a finite number"),
        (("scripted:empty", *CHEAP, "-o", "x.jsonl", "--profile", "wpb-v9"), "wpb-v9"),
        (("scripted:empty", *CHEAP, "-o", "x.jsonl", "--lanes", "0"), "--lanes: input should be greater than"),
        (("scripted:empty", *CHEAP, "-o", "x.jsonl", "--dtype", "int8"), "'int8' is not one of"),
        (("scripted:empty", *CHEAP, "-o", "x.jsonl", "--temperature", "nan"), "temperature: nan, want 0"),
        (("here.jsonl", "--split", "test"), "leave out -o, --task, --split, --resume"),
        (("here.jsonl",), "here.jsonl: there are no rollouts"),
        (("bad.jsonl",), "bad.jsonl:1 is no trajectory"),
    ],
)
def test_wrong_commands_are_told(
    tmp_path: Path, args: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here.jsonl").touch()
    Path("bad.jsonl").write_bytes(b"\xff{}\n")
    done = weightgym("eval", *args)
    assert done.exit_code in (1, 2)
    assert not done.stdout
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("x.jsonl").exists()


def test_every_field_of_a_backend_is_a_flag() -> None:
    flags = {one.name: one for one in command.params if isinstance(one, BackendOption)}
    assert flags.keys() == BackendOptions.model_fields.keys() - {"lora_rank"}
    for args in (("eval",), ("rollout",)):
        help = weightgym(*args, "--help").stdout
        own, _, backend = help.partition("Backend options:")
        assert "--samples" in own
        assert "--no-eager" in backend
        assert "[default: OPENAI_API_KEY]" in backend
        assert "Examples:" in backend


def test_an_endpoint_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_backend, "_BACKOFF", wait_none())

    # Runs have keys of their own: requests of the first may still be on their way when the second begins.
    def first(seen: Seen) -> bool:
        return seen.headers["authorization"] == "Bearer first"

    def script(number: int, seen: Seen) -> Reply:
        return refusal(500, "boom") if first(seen) and number > 2 else chat("```edits\nb3[1]=50\n```", "length")

    out = tmp_path / "r.jsonl"
    with serve(script) as server:
        run = ("rollout", "openai:m", "--urls", server.url, *CHEAP, "--samples", "2", "--lanes", "1", "-o", out)
        monkeypatch.setenv("OPENAI_API_KEY", "first")
        done = weightgym(*run, "--max-tokens", "7")
        assert done.exit_code == 1
        assert done.stderr.count("Error: ") == 1
        assert "answers 500" in done.stderr
        kept = sum(one.reward is not None for one in outcomes(out))
        assert f"{kept} of 4 rollouts have their reward in {out}: --resume goes on with it" in done.stderr
        monkeypatch.setenv("OPENAI_API_KEY", "second")
        done = weightgym(*run, "--max-tokens", "7", "--resume")
    assert done.exit_code == 0, done.output
    assert sum(not first(seen) for seen in server.seen) == 4 - kept  # nothing was made twice
    assert "4 of 4 answers were cut at --max-tokens" in done.stderr
    assert {body["max_tokens"] for body in server.bodies} == {7}
    assert len({body["seed"] for body in server.bodies}) == 4


def test_a_backend_that_does_not_start_leaves_nothing_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_backend, "_BACKOFF", wait_none())
    out = tmp_path / "r.jsonl"
    for policy, why in (
        ("openai:m", "can't reach http://127.0.0.1:1/v1/chat/completions"),
        ("replay:nothing", "can't read nothing"),
        ("scripted:nothing", "no script 'nothing'"),
    ):
        url = ["--urls", "http://127.0.0.1:1/v1"] if policy.startswith("openai") else []
        done = weightgym("rollout", policy, *url, *CHEAP, "-o", out)
        assert done.exit_code == 1
        assert done.stderr.splitlines()[-1].startswith("Error: ")
        assert why in done.stderr
        if out.exists():  # rollouts that are known to have failed
            assert f"0 of 2 rollouts have their reward in {out}: --resume goes on with it" in done.stderr
            out.unlink()


def test_a_missing_package_is_told_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "weightgym.rollouts.openai_backend")
    done = weightgym("rollout", "openai:m", *CHEAP, "-o", tmp_path / "r.jsonl")
    assert done.exit_code == 1
    assert done.stderr == "Error: openai needs httpx: pip install 'weightgym[servers]'\n"
    assert not (tmp_path / "r.jsonl").exists()


def test_a_prompt_that_does_not_fit_is_told(tmp_path: Path) -> None:
    args = ("tiny-writer", "--task", GAMES[0], "--max-tokens", "100000", "--workers", "1")
    done = weightgym("rollout", *args, "-o", tmp_path / "r.jsonl")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert "100000" in done.stderr or "shorten" in done.stderr


def test_a_picture(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    args = ("scripted:echo", "--against", "scripted:garbage", *CHEAP, "--samples", "2", "-o", out)
    done = weightgym("eval", *args, "--plot", tmp_path / "r.png")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def limited(args: list[str], limit: int) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own; more than ``limit`` bytes end a write as a full disk does."""

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    code = f"from weightgym.cli.main import main; main({args!r})"
    start: dict[str, Any] = {"capture_output": True, "text": True, "preexec_fn": small}
    return subprocess.run([sys.executable, "-c", code], check=False, timeout=120, **start)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    args = ["rollout", "scripted:garbage", *CHEAP, "--samples", "3", "-o", str(out)]
    assert weightgym(*args).exit_code == 0
    wanted = {one.id: one.completion for one in read(out)}
    limit = int(out.stat().st_size * 0.55)
    out.unlink()
    full = limited(args, limit)
    assert full.returncode == 1
    assert full.stderr.splitlines()[-1] == (
        f"Error: can't write {out}: File too large. What it holds is whole: make room, then --resume goes on"
    )
    kept = out.read_bytes()
    assert kept.endswith(b"\n")
    assert 0 < len(list(read(out))) < len(wanted)
    assert limited([*args, "--resume"], limit).returncode == 1
    assert out.read_bytes() == kept
    assert weightgym(*args, "--resume").exit_code == 0
    assert {one.id: one.completion for one in read(out)} == wanted
