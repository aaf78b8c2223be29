"""``weightgym inspect FILE``: what is suspicious is said, the page is harmless and small, numbers are right."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from run_folders import healthy_run, make_run, rollout, step_row
from scored_rows import ATTACK, row, write
from test_inspect import Page

from weightgym.cli.main import cli
from weightgym.rollouts.store import line
from weightgym.trainers.jumps import Series, jumps

pytestmark = pytest.mark.usefixtures("digits")


def test_a_jump_from_end_to_end_of_floats() -> None:
    values = [-1.7e308] * 20 + [1.7e308] * 20
    (jump,) = jumps([float(place) for place in range(40)], values, {"x": Series(values, "up", sudden=3.0)})
    assert (jump.place, jump.reward) == (20.0, (-1.7e308, 1.7e308))


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["inspect", *map(str, args)], prog_name="weightgym")


def inspected(path: Path, *args: str) -> dict[str, Any]:
    done = run(path, "--json", *args)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def said(path: Path) -> str:
    return "\n".join(f"{one['level']}: {one['text']}" for one in inspected(path)["findings"])


def healthy(count: int = 40) -> list[dict[str, Any]]:
    """Answers of one length with rewards that differ in every group."""
    return [
        row(f"{place:06}", reward=(place * 7 % 10) / 10, group=place // 4, id=f"a{place}", metrics={"m": place % 3})
        for place in range(count)
    ]


def test_a_healthy_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", healthy())
    found = inspected(path)
    assert found["findings"] == []
    (part,) = found["rollouts"]["parts"]
    assert part["quartiles"] == {"reward": [0.0, 0.2, 0.5, 0.7, 0.9], "m": [0.0, 0.0, 1.0, 2.0, 2.0]}
    assert found["rollouts"]["groups"] == {"count": 10, "zero_spread": 0, "all_invalid": 0}
    assert found["page"] == str(tmp_path / "a.report.html")
    text = run(path).output
    assert "40 answers: 40 ok" in text
    assert "nothing suspicious was found" in text


def attacked() -> list[Any]:
    """Hostile text wherever a file can have some."""
    evil: dict[str, Any] = {"group": ATTACK, "policy": ATTACK, "finish_reason": ATTACK}
    calls = [{"id": ATTACK, "function": {"name": ATTACK, "arguments": ATTACK}}]
    talk = [{"role": ATTACK, "content": ATTACK}, {"role": "assistant", "content": None, "tool_calls": calls}]
    bad: dict[str, Any] = {"status": "invalid", "reward": 0.0, "reason": f"c{ATTACK}: {ATTACK}"}
    fault: dict[str, Any] = {"status": "error", "reward": None, "reason": ATTACK}
    rows = [
        row(ATTACK, id=f"{ATTACK}1", metrics={ATTACK: 1.0, f"{ATTACK}n": float("nan")}, **evil),
        row(talk, id=f"{ATTACK}2", reward=0.5, metrics={ATTACK: 2.0}, **evil),
        row(ATTACK, id=f"{ATTACK}3", **bad, **evil),
        row(ATTACK, id=f"{ATTACK}3", **fault, **evil),
        row(ATTACK, env=ATTACK, task=ATTACK, profile=ATTACK, id=f"{ATTACK}4"),
        row(ATTACK, task=ATTACK, id=f"{ATTACK}5"),
    ]
    rows[3]["score"]["info"] = {"traceback": ATTACK}
    return [*rows, ATTACK, json.dumps({"env": ATTACK}), json.dumps({"steps": ATTACK})]


def test_text_cannot_act_in_the_page_or_the_terminal(tmp_path: Path) -> None:
    path = write(tmp_path / "<script>x<.jsonl", (one for one in attacked() if one != ATTACK))
    done = run(path)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "<script>x<.report.html").read_text("utf-8")
    page = Page(text)
    assert {"script", "svg", "iframe", "a:javascript"}.isdisjoint(page.tags)
    assert page.tags.count("style") == 1
    assert page.tags.count("meta") == 3  # charset, policy, viewport: no refresh
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert {value.split(":")[0] for name, value in page.attributes if name == "src"} == {"data"}
    assert not [value for name, value in page.attributes if name == "href" and not value.startswith("#")]
    assert ATTACK[:60] in "".join(page.pres)
    for shown in (text, done.output):
        assert all(char in "\n\t" or char.isprintable() for char in shown)
        assert "\\u202e" in shown
    policy = [value for name, value in page.attributes if name == "content" and "default-src" in value]
    assert policy == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]


def varied(place: int, **change: Any) -> dict[str, Any]:
    return row(f"{place:06}", id=f"a{place}", **({"reward": (place * 7 % 10) / 10} | change))


SUSPICIOUS: list[tuple[list[Any], str]] = [
    ([row(f"{n:06}", reward=0.5, group=n // 4) for n in range(40)], "100% of 10 groups have equal rewards"),
    ([row(f"{n:06}", reward=0.5, task=f"{n // 4}") for n in range(40)], "100% of 10 tasks have equal rewards"),
    ([row("same", reward=n % 2, id=n) for n in range(40)], "20 answers have another reward than the same answer"),
    ([varied(n % 10) | {"id": n} for n in range(40)], "75% of answers were given before, word by word"),
    ([varied(n % 39) for n in range(40)], "1 lines have an id that a line before them has (a0)"),
    ([varied(n, profile=f"p{n % 2}") for n in range(40)], "scores of 2 profiles (p0, p1), which don't compare"),
    ([varied(n, metrics={"m": float("nan")}) for n in range(40)], "metric m is no finite number in 40 answers"),
    ([row("1" * n, reward=n / 40, id=n) for n in range(1, 40)], "longer answers get more reward (rank correlation 1"),
    ([varied(n, status="invalid", reward=0, reason="x") for n in range(40)], "40 of 40 answers can't be read"),
    ([varied(n, finish_reason="length") for n in range(40)], "40 of 40 answers are cut at their limit"),
    (
        [varied(1), varied(2, status="error", reward=None, reason="x")],
        "1 of 2 answers have no reward through our fault",
    ),
    ([varied(1), "{"], "1 lines are neither rollouts nor scored rows and are left out; the first: line 2: not JSON"),
]


@pytest.mark.parametrize(("rows", "wanted"), SUSPICIOUS)
def test_what_is_suspicious_is_said(tmp_path: Path, rows: list[Any], wanted: str) -> None:
    assert wanted in said(write(tmp_path / "a.jsonl", rows))
    assert wanted not in said(write(tmp_path / "b.jsonl", healthy()))


def hacked(version: int, place: int) -> dict[str, Any]:
    """From version 20 on the reward is higher, and a third can't be read; the KL jumps."""
    late = version >= 20
    bad: dict[str, Any] = {"status": "invalid", "reward": 0.0, "reason": "x"} if late and place % 3 == 0 else {}
    kl = {"kl": 0.5 if late else 0.01 + place / 1000}
    fields: dict[str, Any] = {"reward": 0.2 + 0.6 * late + place / 100, "metrics": kl} | bad
    return row(f"{version:03} {place:03}", id=f"{version}#{place}", policy_version=version, **fields)


def test_a_jump_is_found_where_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [hacked(version, place) for version in range(40) for place in range(9)])
    text = said(path)
    where = "around policy version 20 the reward rises from 0.24 to 0.5633 while"
    assert f"{where} the invalid share goes from 0 to 0.3333" in text
    assert f"{where} kl goes from 0.014 to 0.5" in text


def test_a_jump_in_a_run(tmp_path: Path) -> None:
    def at(n: int) -> dict[str, float]:
        late = n > 20
        return {"reward__mean": 0.2 + 0.4 * late + n % 3 / 100, "loss__kl": 0.01 + 0.5 * late + n % 2 / 1000}

    folder = make_run(tmp_path / "run", [step_row(n, **at(n)) for n in range(1, 41)])
    where = "around step 21 the reward rises from 0.211 to 0.609"
    assert f"{where} while loss/kl goes from 0.0105 to 0.5105" in said(folder)


@pytest.mark.parametrize("seed", range(20))
def test_noise_and_slow_growth_are_no_jumps(seed: int) -> None:
    """None in 20 runs of 200 steps."""
    noise = random.Random(seed)
    rewards = [step / 200 + noise.gauss(0, 0.05) for step in range(200)]
    others = {
        "invalid": Series([0.1 + noise.gauss(0, 0.03) for _ in range(200)], "up", least=0.05),
        "kl": Series([step / 1000 + abs(noise.gauss(0, 0.02)) for step in range(200)], "up", factor=0.5, sudden=3.0),
        "held out": Series([step / 200 + noise.gauss(0, 0.05) for step in range(200)], "down", least=0.02),
    }
    assert jumps(list(range(200)), rewards, others) == []


@pytest.mark.parametrize("values", [[], [1.0], [1e308, -1e308] * 20, [0.0] * 50])
def test_no_jumps_without_a_change(values: list[float]) -> None:
    """Nor warnings, at the ends of floats."""
    places = [float(place) for place in range(len(values))]
    assert jumps(places, values, {"x": Series(values, "up", sudden=3.0), "y": Series(values, "down")}) == []


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([], "holds no scored answer: it is empty"),
        (["", "  "], "holds no scored answer: it is empty"),
        (["[1]", "{"], "holds no scored answer: line 1: want a JSON object, not list"),
        (
            [{"env": "digits", "task": "one", "completion": "1"}],
            "the row has none; `weightgym score FILE` gives it one",
        ),
    ],
)
def test_not_a_file_of_answers_is_one_line(tmp_path: Path, rows: list[Any], wanted: str) -> None:
    done = run(write(tmp_path / "a.jsonl", rows))
    assert done.exit_code == 1
    assert wanted in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "a.report.html").exists()


def test_rewards_at_the_ends_of_floats(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [row(f"{n}", reward=(-1) ** n * 1.7e308, group=n // 4) for n in range(40)])
    assert inspected(path)["rollouts"]["groups"]["count"] == 10


def test_the_page_stays_small(tmp_path: Path) -> None:
    """Thousands of answers of many megabytes, to hundreds of tasks, in a hundred environments."""
    talk = [{"role": "user" if n % 2 else "assistant", "content": "<" * 100_000} for n in range(100)]
    rows = [row(talk, env=f"e{n}", id=n, group=1, metrics={f"m{k}": n for k in range(50)}) for n in range(6)] * 2
    rows += [row("\u202e" * 500, reward=n / 999, task=f"t{n}", env=f"e{n % 100}", id=f"x{n}") for n in range(1500)]
    path = write(tmp_path / "a.jsonl", rows)
    assert path.stat().st_size > 40 << 20
    assert run(path).exit_code == 0
    assert (tmp_path / "a.report.html").stat().st_size < 8 << 20


def test_rollouts_have_their_tokens_shaded(tmp_path: Path) -> None:
    """Without a tokenizer as ids; with that of tiny-writer as bytes, whose characters are whole."""
    path = tmp_path / "a.jsonl"
    made = rollout("a", text="aä").model_dump()
    ids = (300, *"aä".encode(), 2)
    answer = made["steps"][1] | {"token_ids": ids, "logprobs": [0.0, *[-0.5] * 4], "mask": [False, *[True] * 4]}
    path.write_text(json.dumps(made | {"steps": [made["steps"][0], answer], "policy": "x"}) + "\n")
    assert run(path).exit_code == 0
    page = (tmp_path / "a.report.html").read_text("utf-8")
    assert '<span class="o" title="300">300 </span><span class="t" title="97 log p -0.5">97 </span>' in page
    assert "Tokens are shown as ids" not in page or "--tokenizer DIR" in page
    assert run(path, "--tokenizer", "tiny-writer").exit_code == 0
    page = (tmp_path / "a.report.html").read_text("utf-8")
    assert '<span class="t" title="97 log p -0.5">a</span><span class="t" title="195 164 log p -1">ä</span>' in page


def test_what_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", [row()])
    assert "--workers goes with --rescore" in run(path, "--workers", "2").stderr
    assert "--explain tells of one answer" in run(path, "--explain", "1", "--rescore", "1").stderr
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = run(path)
    assert done.exit_code == 0
    assert "no page without jinja2" in done.stderr


def test_a_run_and_its_file_of_rollouts_agree(tmp_path: Path) -> None:
    folder = healthy_run(tmp_path / "run", steps=12)
    with (folder / "rollouts.jsonl").open("ab") as file:
        file.write(line(rollout("half"))[:-9])
    whole, alone = inspected(folder)["rollouts"], inspected(folder / "rollouts.jsonl", "-o", str(tmp_path / "p.html"))
    for name in ("count", "statuses", "parts", "groups", "duplicates"):
        assert whole[name] == alone["rollouts"][name]
    assert "the last line is half: left out" in json.dumps(alone["findings"])


def test_the_same_text_to_another_task_is_no_duplicate(tmp_path: Path) -> None:
    """Nor is it one under another profile; and our faults contradict nothing."""
    rows = [row("same", reward=n / 9, id=n, task=f"t{n // 3}", profile=f"p{n % 3}") for n in range(9)]
    rows += [
        row("same", reward=None, status="error", reason="x", id=f"e{n}", task="t0", profile="p0") for n in range(2)
    ]
    found = inspected(write(tmp_path / "a.jsonl", rows))
    assert found["rollouts"]["duplicates"] == {"share": pytest.approx(2 / 11), "contradictions": [], "repeated_ids": 0}


def test_an_evaluation_that_falls_after_its_best(tmp_path: Path) -> None:
    """Also where it ends above its beginning; not where the reward fell as well."""
    ends = [{"step": float(step), "eval/reward": reward} for step, reward in ((0, 0.1), (20, 0.6), (40, 0.2))]
    steps = [step_row(n) for n in range(1, 41)]
    assert "the evaluation falls: 0.6 at step 20, 0.2 at last" in said(make_run(tmp_path / "a", [*steps, *ends]))
    fell = [step_row(n, reward__mean=0.1 + 0.02 * min(n, 40 - n)) for n in range(1, 41)]
    assert "the evaluation falls" not in said(make_run(tmp_path / "b", [*fell, *ends]))
    rising = [{"step": float(step), "eval/reward": step / 100} for step in (0, 20, 40)]
    assert "the evaluation falls" not in said(make_run(tmp_path / "c", [*steps, *rising]))


def test_a_fault_is_told_in_the_terminal_too(tmp_path: Path) -> None:
    fault: dict[str, Any] = {"status": "error", "reward": None, "reason": "grader_error: no module"}
    done = run(write(tmp_path / "a.jsonl", [row("a"), row("b", id="r7", **fault)]))
    assert "\nno reward: r7: grader_error: no module\n" in done.output


def test_names_of_any_length_keep_the_page_small(tmp_path: Path) -> None:
    long = "<n" * 200_000
    bad: dict[str, Any] = {"status": "invalid", "reward": 0.0, "reason": long}
    fault: dict[str, Any] = {"status": "error", "reward": None, "reason": long}
    rows = [row("1", id=f"{long}{n}", group=long, task=long, profile=long, metrics={f"{long}{n}": n}) for n in range(6)]
    rows += [row(f"{n}", id=f"b{n}", **bad) for n in range(3)] + [row("x", **fault), row("y", env=long)]
    rows[-2]["score"]["info"] = {"traceback": long}
    path = write(tmp_path / "a.jsonl", rows)
    assert path.stat().st_size > 10 << 20
    assert run(path).exit_code == 0
    assert (tmp_path / "a.report.html").stat().st_size < 2 << 20
