"""Golf as its users meet it: the contract of both environments, attempts and what is told between them, policies."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from click.testing import CliRunner
from golf_answers import BROKEN, GOOD, ILLEGAL, NONE, POOR, PROFILE, answer
from score_runs import without_times

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.envs.golf.env import GolfEnv, GolfTurnsEnv
from weightgym.envs.golf.feedback import report
from weightgym.envs.golf.tasks import SOURCE, TURNS_SOURCE, GolfTasks
from weightgym.envs.testing import EnvSubject, contract_test
from weightgym.rewards.contracts import GraderError, SandboxError, Score, Task, TaskError
from weightgym.rewards.golf import evaluate, scorer
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rollouts.store import read as read_rollouts

INVALID = (BROKEN, ILLEGAL, GOOD.rstrip().removesuffix("```"), "```python\nimport numpy\n```")


def one_turn() -> EnvSubject:
    return EnvSubject(
        make=GolfEnv,
        gold=lambda task_id: (GOOD, -7.5),
        floor=-9.0,
        flags={"profile": (PROFILE, "golf-cpu-v1")},
        config={"profile": PROFILE},
        gym_id="weightgym/Golf-v1",
        slow_ids=("lang/0", "lang/24"),
        invalid=INVALID,
        tasks=GolfTasks(PROFILE),
    )


def several_turns() -> EnvSubject:
    return EnvSubject(
        make=GolfTurnsEnv,
        gold=lambda task_id: ([ILLEGAL, GOOD], -7.5),
        floor=-9.0,
        flags={"profile": (PROFILE, "golf-cpu-v1"), "attempts": (1, 2, 3)},
        config={"profile": PROFILE, "attempts": 2},
        gym_id="weightgym/GolfTurns-v1",
        slow_ids=("lang/0", "lang/24"),
        noops=("", [NONE, NONE]),
        invalid=INVALID,
        tasks=GolfTasks(PROFILE, attempts=2),
    )


test_contract = contract_test(one_turn)
test_contract_of_several_turns = contract_test(several_turns)


def play(env: Any, *answers: Any, task: str = "lang/1") -> list[tuple[Any, ...]]:
    env.reset(options={"task": task})
    return [env.step(text) for text in answers]


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The solutions that were evaluated."""
    seen: list[bytes] = []
    really = Evaluator.evaluate

    def counted(self: Evaluator, raw: bytes, corpus: Any) -> Any:
        seen.append(raw)
        return really(self, raw, corpus)

    monkeypatch.setattr(Evaluator, "evaluate", counted)
    return seen


def test_the_best_attempt_is_paid_at_the_end_and_none_is_evaluated_twice(evaluations: list[bytes]) -> None:
    answers = (BROKEN, GOOD, POOR, NONE)
    steps = play(GolfTurnsEnv(profile=PROFILE), *answers)
    assert len(evaluations) == 3  # the last is none
    assert [step[1] for step in steps[:-1]] == [0.0] * 3
    assert [step[2:4] for step in steps] == [(False, False)] * 3 + [(True, False)]
    score = steps[-1][4]["score"]
    assert steps[-1][1] == score.reward == -score.metrics["val_bpb"]
    assert (score.status, score.metrics["best_attempt"]) == ("ok", 2)
    assert (score.metrics["attempts"], score.metrics["valid_attempts"]) == (4, 2)
    task = GolfTasks(PROFILE, attempts=4).task("lang/1", prompt=False)
    said = [[{"role": "assistant", "content": text}, {"role": "user", "content": "go on"}] for text in answers]
    offline = scorer.score(task, list(itertools.chain(*said)), profile=PROFILE)
    assert without_times(offline) == without_times(score)
    alone = scorer.score(GolfTasks(PROFILE).task("lang/1"), GOOD, profile=PROFILE)
    assert alone.reward == score.reward
    assert alone.info == score.info


def test_the_order_of_attempts_moves_no_reward() -> None:
    env = GolfTurnsEnv(profile=PROFILE, attempts=2)
    rewards = {play(env, *order)[-1][1] for order in itertools.permutations((GOOD, POOR))}
    assert rewards == {play(GolfEnv(profile=PROFILE), GOOD)[0][1]}


def test_the_report_tells_what_the_evaluator_found_and_nothing_else() -> None:
    steps = play(GolfTurnsEnv(profile=PROFILE), NONE, BROKEN, GOOD, POOR)
    told = [step[0].split("\n") for step in steps]
    assert told[0] == [
        "Attempt 1 of 4: buggy, no_solution: the answer has no block that opens with ```python; put solution.py "
        "between it and a line ```",
        "Best so far: none is valid",
        "3 attempts left: give the whole file again, improved.",
    ]
    raised = "the model raised AttributeError while it was trained (line 14 of the file)"
    assert told[1][0] == f"Attempt 2 of 4: buggy, train_failed: {raised}"
    score = steps[3][4]["score"]
    best = f"val_bpb {score.metrics['val_bpb']:.5f}"
    assert told[2][0] == f"Attempt 3 of 4: ok, {best}"
    assert told[2][1] == (
        f"Artifact: {score.metrics['artifact_bytes']:,.0f} bytes (the model: you claim "
        f"{score.metrics['claimed_bytes']:,.0f}, we count {score.metrics['audited_bytes']:,.0f}; solution.py: "
        f"{score.metrics['source_bytes']:.0f})"
    )
    assert re.fullmatch(
        r"Time: training took under 25 % of its budget, packing and scoring took .* % of theirs", told[2][2]
    )
    assert told[2][3:] == [f"Best so far: {best} (attempt 3)", "1 attempt left: give the whole file again, improved."]
    assert told[3][-1] == f"Best so far: {best} (attempt 3)"
    assert "reply" not in steps[0][4]


def test_the_shares_of_the_budgets_are_told_in_quarters() -> None:
    fingerprint: dict[str, Any] = {"device": "cpu"}
    info = {"result": {"fingerprint": fingerprint}}
    times = {"train_cpu_s": 39.9, "pack_cpu_s": 6.0, "serve_cpu_s": 5.0, "audit_cpu_s": 39.0}
    score = Score(
        status="invalid", reward=-9.0, reason="audit_random: so", info=info, timings=times, profile="golf-cpu-v1"
    )
    assert "training took over 75 % of its budget, packing and scoring took 25 to 50 % of theirs" in report([score], 1)
    fingerprint |= {"device": "cuda", "gpus": ["H100"] * 8}
    walls = dict.fromkeys(times, 1.0) | {"train_s": 29.0, "pack_s": 1.0, "serve_s": 50.0}
    score = score.model_copy(update={"profile": "golf-full-v1", "info": info, "timings": walls})
    assert "training took 25 to 50 % of its budget, packing and scoring took over 75 % of theirs" in report([score], 1)


@pytest.mark.parametrize("where", ["raise ValueError(SECRET)", "print(SECRET)", "assert False, SECRET"])
def test_text_of_the_solution_s_code_is_never_told(where: str) -> None:
    secret = "lorem-ipsum-dolor"
    code = answer(extra=f"SECRET = {secret!r}\n{where}\n")
    steps = play(GolfTurnsEnv(profile=PROFILE, attempts=2), code, code)
    for step in steps:
        assert secret not in step[0]
        assert secret not in json.dumps(step[4], default=str)


def test_a_fault_of_ours_is_an_error_and_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: Evaluator, *_: Any) -> Any:
        raise SandboxError("its process is gone")

    envs = GolfEnv(profile=PROFILE), GolfTurnsEnv(profile=PROFILE)
    assert play(envs[1], NONE)[0][1] == 0
    with monkeypatch.context() as patched:
        patched.setattr(evaluate.Evaluator, "evaluate", lost)
        for env in envs:
            with pytest.raises(GraderError, match="SandboxError: its process is gone"):
                play(env, GOOD)
            with pytest.raises(RuntimeError, match="call reset"):
                env.step(GOOD)
        task = TURNS_SOURCE.task("lang/0", prompt=False)
        both = [{"role": "assistant", "content": text} for text in (NONE, GOOD)]
        assert scorer.score(task, both, profile=PROFILE).status == "error"  # one attempt's fault spoils the rest
    assert play(envs[0], GOOD)[0][1] > -9


def test_a_message_that_can_t_be_read_is_an_attempt_that_failed() -> None:
    steps = play(GolfTurnsEnv(profile=PROFILE, attempts=2), GOOD, {"role": "assistant", "content": 5})
    assert steps[-1][1] > -9
    assert steps[-1][0].startswith("Attempt 2 of 2: buggy, no_solution: ")
    said: list[dict[str, Any]] = [{"role": "assistant", "content": GOOD}, {"role": "assistant", "content": 5}]
    task = GolfTasks(PROFILE, attempts=2).task("lang/1", prompt=False)
    assert without_times(scorer.score(task, said, profile=PROFILE)) == without_times(steps[-1][4]["score"])


def test_more_answers_than_attempts_are_worth_the_floor() -> None:
    task = TURNS_SOURCE.task("lang/0", prompt=False)
    score = scorer.score(task, [{"role": "assistant", "content": NONE}] * 5, profile=PROFILE)
    assert (score.status, score.reward, score.code) == ("invalid", -9.0, "too_many_attempts")


@pytest.mark.parametrize(
    "change",
    [
        {"env": "weight-program"},
        {"env": "golf"},
        {"data": {"language": "lang/0", "generator": "golf-lang-0", "attempts": 4}},
        *({"data": SOURCE.task("lang/0").data | {"attempts": wrong}} for wrong in (0, -1, True, "4", None, 4.0)),
        {"data": SOURCE.task("lang/0").data},
        {"env": "golf", "data": SOURCE.task("lang/0").data | {"attempts": None}},
    ],
)
def test_foreign_tasks_are_refused(change: dict[str, Any]) -> None:
    row = TURNS_SOURCE.task("lang/0", prompt=False).model_dump(exclude={"hash"}) | change
    with pytest.raises(TaskError, match="want env golf or golf-turns"):
        scorer.score(Task.model_validate(row), NONE)


@pytest.mark.parametrize("attempts", [0, 17, -1])
def test_attempts_have_a_range(attempts: int) -> None:
    with pytest.raises(ValueError, match=f"attempts is {attempts}, want 1 to 16"):
        GolfTurnsEnv(attempts=attempts)


def test_prompts_are_of_the_environment_s_profile_and_attempts() -> None:
    for name in ("golf", "golf-turns"):
        entry = registry.spec(name)
        texts = {profile: entry.tasks_under(profile).task("lang/2").prompt[0].content for profile in
                 ("golf-cpu-v1", "golf-full-v1", PROFILE)}  # fmt: skip
        for profile, text in texts.items():
            prompt, _ = gymnasium.make(entry.gym_id, profile=profile).reset(options={"task": "lang/2"})
            assert prompt == text
            assert f"(profile {profile})" in text
        assert ("You have 4 attempts" in texts[PROFILE]) == (name == "golf-turns")
    prompt, _ = GolfTurnsEnv(attempts=7).reset(options={"task": "lang/2"})
    assert "You have 7 attempts" in prompt
    done = CliRunner().invoke(cli, ["prompt", "golf-turns", "lang/2", "--profile", "golf-full-v1"])
    assert "60 seconds on all GPUs" in done.output
    for command in (
        ["prompt", "golf", "lang/2"],
        ["rollout", "scripted:empty", "--env", "golf", "--split", "test", "-o", "x"],
    ):
        refused = CliRunner().invoke(cli, [*command, "--profile", "golf-cpu-v2"])
        assert refused.exit_code == 2
        assert "did you mean 'golf-cpu-v1'" in refused.output


def test_environments_and_tasks_need_no_torch() -> None:
    code = "import sys; from weightgym.envs.golf.env import GolfTurnsEnv; GolfTurnsEnv().reset(seed=0); "
    code += "sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_attempt_may_take_its_time() -> None:
    """An hour of a busy machine is no fault of the environment's."""
    entry = registry.spec("golf-turns")
    assert entry.step_timeout > 4 * (40 + 40 + 40)  # all that golf-cpu-v1 allows, on the wall
    assert entry.step_timeout > 3 * 60 * 20 * 4  # golf-full-v1 without a GPU, eight at a time on two cores
    assert entry.max_turns == 4


# --- answers out of a folder as a policy


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    folder = tmp_path / "answers"
    folder.mkdir()
    code = GOOD[GOOD.index("```python\n") + len("```python\n") :].rstrip().removesuffix("```")
    (folder / "1.md").write_text(NONE)
    (folder / "2.py").write_text(code + "# a fence in a comment:\n```\n".replace("```", "# ```"))
    (folder / "3.md").write_text(ILLEGAL)
    (folder / ".hidden").write_text("no answer")
    return folder


def test_a_folder_of_answers_is_a_policy(answers: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    command = ["rollout", f"scripted:{answers}", "--env", "golf", "--task", "lang/0", "--task", "lang/25"]
    done = CliRunner().invoke(cli, [*command, "--samples", "4", "--profile", PROFILE, "--workers", "1", "-o", str(out)])
    assert done.exit_code == 0, done.output
    rows = {one.id: one for one in read_rollouts(out)}
    for task in ("lang/0", "lang/25"):
        codes = [rows[f"golf/{task}#{index}"].score.code for index in range(4)]
        assert codes == ["no_solution", "", "illegal", "no_solution"]
    assert "8 rollouts (0 kept): 6 invalid, 2 ok" in done.output


def test_in_several_turns_a_folder_answers_file_by_file(answers: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    command = ["eval", f"scripted:{answers}", "--env", "golf-turns", "--task", "lang/0", "--samples", "2", "--json"]
    done = CliRunner().invoke(cli, [*command, "--profile", PROFILE, "-k", "1,2", "-o", str(out)])
    assert done.exit_code == 0, done.output
    rows = {one.id: one for one in read_rollouts(out)}
    best = [rows[f"golf-turns/lang/0#{index}"].score.metrics["best_attempt"] for index in range(2)]
    assert best == [2, 1]
    one = rows["golf-turns/lang/0#0"]
    assert [step.role for step in one.steps] == ["system", "user", *["assistant", "user"] * 3, "assistant"]
    assert one.steps[3].content.startswith("Attempt 1 of 4: buggy, no_solution")
    assert one.task_sha256 == TURNS_SOURCE.under(PROFILE).task("lang/0").hash


@pytest.mark.parametrize(("file", "why"), [(None, "holds no files of answers"), (b"\xff", "can't read the answer")])
def test_a_folder_without_answers_is_no_policy(tmp_path: Path, file: bytes | None, why: str) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    if file:
        (folder / "a.md").write_bytes(file)
    command = ["rollout", f"scripted:{folder}", "--env", "golf", "--task", "lang/0", "-o", str(tmp_path / "r.jsonl")]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code != 0
    assert why in done.output
