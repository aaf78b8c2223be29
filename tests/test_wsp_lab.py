"""Episodes of many clients in one lab: retries, leases, results, shared models."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import wsp_labs
from wsp_episodes import NAME, call
from wsp_labs import INSTANCES, REWARD, lab, message, results, waited

from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.instances import PublicData
from weightgym.rewards.wsp.lab.bodies import WrittenMessage
from weightgym.rewards.wsp.lab.errors import LabError
from weightgym.rewards.wsp.lab.lab import Lab
from weightgym.rewards.wsp.lab.loaded import Instance

EDIT = call("zero", parameter=NAME, axis="rows", indices=[0])
SUBMIT = message(call("submit"))


def opened(one: Lab, instance: str = "one", id: str = "open") -> str:
    return str(one.open(id, instance)["episode"])


def test_an_episode_is_opened_with_its_prompt_tools_and_budgets(tmp_path: Path) -> None:
    with lab(tmp_path) as one:
        made = one.open("a", "one")
        assert made["messages"] == [{"role": "user", "content": "Repair one."}]
        assert {tool["function"]["name"] for tool in made["tools"]} >= {"generate", "rank_one", "submit"}
        assert made["status"]["gpu_calls"] == {"used": 0, "left": 8}
        one.message(made["episode"], "m", message(EDIT))
        assert one.open("a", "one") == made
        assert one.open("b", "one")["episode"] != made["episode"]
        with pytest.raises(LabError, match="'a' was used for another instance") as refusal:
            one.open("a", "two")
        assert refusal.value.status == 409
        with pytest.raises(LabError, match="no instance 'four'") as refusal:
            one.open("c", "four")
        assert refusal.value.status == 404
        assert one.open("c", "two")["episode"]  # an id that came to nothing is free


def test_a_retry_gets_the_same_reply_and_changes_nothing(tmp_path: Path) -> None:
    with lab(tmp_path) as one:
        id = opened(one)
        sent = message(EDIT, call("generate", prompts=["abc"]))
        first = one.message(id, "m1", sent)
        one.message(id, "m2", message(EDIT))
        status = one.status(id)
        assert status["status"]["turns"] == {"used": 2, "left": 38}  # type: ignore[index,call-overload]
        for _ in range(3):
            assert one.message(id, "m1", sent) == first
        assert one.status(id) == status
        with pytest.raises(LabError, match="'m1' was used for another message") as refusal:
            one.message(id, "m1", message(EDIT))
        assert refusal.value.status == 409
        assert one.status(id) == status
        last = one.message(id, "end", SUBMIT)
        assert last["done"]
        assert one.message(id, "end", SUBMIT) == last
        assert one.message(id, "m1", sent) == first
        with pytest.raises(LabError, match="has ended: submitted"):
            one.message(id, "more", message(EDIT))
    assert len(results(tmp_path)) == 1


def test_retries_at_once_are_run_once(tmp_path: Path) -> None:
    held = wsp_labs.Held()
    with lab(tmp_path, held.load) as one, ThreadPoolExecutor(8) as threads:
        id = opened(one)
        sent = message(call("next_tokens", prompts=["abc"]))
        replies = [threads.submit(one.message, id, "m", sent) for _ in range(8)]
        assert held.begun.wait(20)
        held.go.set()
        assert len({str(reply.result()) for reply in replies}) == 1
        assert held.passes == 1


def test_an_ended_episode_leaves_one_line_that_its_client_never_sees(tmp_path: Path) -> None:
    with lab(tmp_path) as one:
        id = opened(one)
        seen = [
            str(one.open("open", "one")),
            str(one.message(id, "m", message(EDIT))),
            str(one.message(id, "e", SUBMIT)),
        ]
        (row,) = waited(lambda: results(tmp_path))
        seen.append(str(one.status(id)))
        assert one.close_episode(id)["ended_by"] == "submit"
        assert not any(str(REWARD) in text or "score" in text.casefold() for text in seen)
        assert "submitted" in seen[2]
    assert (row["env"], row["task"], row["track"], row["ended_by"]) == ("wsp-bench", "one", "fixed", "submit")
    assert row["score"]["reward"] == REWARD
    assert row["score"]["metrics"] == {"changed": 48.0, "turns": 2.0}
    assert (tmp_path / "results.jsonl").stat().st_mode & 0o777 == 0o600
    assert len(results(tmp_path)) == 1


def test_a_silent_client_is_closed_and_counted_and_others_go_on(tmp_path: Path) -> None:
    with lab(tmp_path, lease=0.6) as one:
        gone, here = opened(one, id="gone"), opened(one, id="here")
        one.message(gone, "m", message(EDIT))

        def others_go_on() -> Any:
            one.message(here, f"m{time.monotonic() // 0.2 % 30}", message(EDIT))
            return results(tmp_path)

        found = waited(others_go_on)
        assert [(row["episode"], row["ended_by"]) for row in found] == [(gone, "lease")]
        assert found[0]["score"]["metrics"]["changed"] == 48
        assert one.message(here, "last", SUBMIT)["done"]
        waited(lambda: len(results(tmp_path)) == 2)
        time.sleep(1.5)  # both are forgotten
        for id in (gone, here):
            with pytest.raises(LabError, match="no such episode"):
                one.status(id)
        again = opened(one, id="gone")
        assert again != gone
        assert one._instances._entries["one"].users == 1
    assert [row["ended_by"] for row in results(tmp_path)] == ["lease", "submit", "shutdown"]


def test_a_client_can_end_its_episode(tmp_path: Path) -> None:
    with lab(tmp_path) as one:
        id = opened(one)
        one.message(id, "m", message(EDIT))
        assert one.close_episode(id)["ended_by"] == one.close_episode(id)["ended_by"] == "closed"
        with pytest.raises(LabError, match="closed by its client"):
            one.message(id, "n", message(EDIT))
    (row,) = results(tmp_path)
    assert (row["ended_by"], row["score"]["reward"]) == ("closed", REWARD)


def test_what_a_closing_lab_cuts_off_is_no_score(tmp_path: Path) -> None:
    with lab(tmp_path, track="open") as one:
        id, other = opened(one), opened(one, id="other")
        one.message(other, "e", SUBMIT)
        one.close()
        one.close()
        for ask in (lambda: one.status(id), lambda: one.open("x", "one"), lambda: one.message(id, "m", SUBMIT)):
            with pytest.raises(LabError, match="closed") as refusal:
                ask()
            assert refusal.value.status == 503
    rows = {row["episode"]: row for row in results(tmp_path)}
    assert rows[other]["score"]["status"] == "ok"
    cut = rows[id]["score"]
    assert (rows[id]["ended_by"], cut["status"], cut["reward"], cut["info"]) == (
        "shutdown",
        "error",
        None,
        {"track": "open"},
    )


def test_a_scorer_that_fails_is_in_the_line_and_nowhere_else(tmp_path: Path) -> None:
    def fail(task: Any, episode: Any) -> Any:
        raise ValueError("secret/path.py is broken")

    with lab(tmp_path, scorer=fail) as one:
        id = opened(one)
        assert "secret" not in str(one.message(id, "e", SUBMIT))
        (row,) = waited(lambda: results(tmp_path))
        assert "secret" not in str(one.status(id))
    assert (row["score"]["status"], row["score"]["reward"]) == ("error", None)
    assert "secret/path.py" in row["score"]["reason"]


def test_half_a_line_of_a_killed_lab_harms_no_other(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text('{"whole": 1}\n{"ha')
    with lab(tmp_path) as one:
        one.message(opened(one), "e", SUBMIT)
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert lines[:2] == ['{"whole": 1}', '{"ha']
    assert '"task":"one"' in lines[2]


def test_a_fault_of_ours_changes_nothing_and_the_same_message_can_come_again(tmp_path: Path) -> None:
    fail = True

    def load(id: str) -> Instance | None:
        made = wsp_labs.load(id)
        assert made is not None

        def hook(*_: Any) -> None:
            if fail:
                raise MemoryError("full")

        made.engine.model.network.model.layers[0].register_forward_pre_hook(hook)
        return made

    with lab(tmp_path, load) as one:
        id = opened(one)
        before = one.status(id)
        sent = message(EDIT, call("generate", prompts=["abc"]))
        with pytest.raises(MemoryError):
            one.message(id, "m", sent)
        assert one.status(id) == before
        fail = False
        assert one.message(id, "m", sent)["status"]["elements"]["used"] == 48


def test_an_instance_is_loaded_once_for_all_who_want_it(tmp_path: Path) -> None:
    loads: list[str] = []
    gate = threading.Event()

    def load(id: str) -> Instance | None:
        loads.append(id)
        assert gate.wait(20)
        return wsp_labs.load(id)

    with lab(tmp_path, load) as one, ThreadPoolExecutor(12) as threads:
        openings = [threads.submit(one.open, f"id{index % 9}", INSTANCES[index % 3]) for index in range(12)]
        waited(lambda: len(loads) == 3)
        gate.set()
        ids = [opening.result()["episode"] for opening in openings]
        assert sorted(loads) == sorted(INSTANCES)
        assert len(set(ids)) == 9
        assert len(one._instances) == 3


def test_a_load_that_fails_fails_for_all_who_wait_and_is_tried_again(tmp_path: Path) -> None:
    tries: list[str] = []

    def load(id: str) -> Instance | None:
        tries.append(id)
        if len(tries) == 1:
            raise OSError("disk")
        return wsp_labs.load(id)

    with lab(tmp_path, load) as one:
        with pytest.raises(OSError, match="disk"):
            one.open("a", "one")
        assert one.open("a", "one")["episode"]
        assert len(tries) == 2


def test_models_that_nobody_plays_are_dropped_by_least_recent_use(tmp_path: Path) -> None:
    loads: list[str] = []

    def load(id: str) -> Instance | None:
        loads.append(id)
        return wsp_labs.load(id)

    with lab(tmp_path, load, most_instances=2) as one:
        ids = {name: opened(one, name, id=name) for name in ("one", "two")}
        with pytest.raises(LabError, match="2 instances are being played") as refusal:
            one.open("c", "three")
        assert refusal.value.status == 503
        one.close_episode(ids["one"])
        one.close_episode(ids["two"])
        waited(lambda: len(results(tmp_path)) == 2)
        waited(lambda: one._sessions[ids["two"]].episode is None)
        opened(one, "one", id="d")
        opened(one, "three", id="e")
        assert loads == ["one", "two", "three"]
        assert len(one._instances) == 2


def test_there_is_a_limit_of_episodes(tmp_path: Path) -> None:
    with lab(tmp_path, most_episodes=2) as one:
        first = opened(one, id="a")
        opened(one, id="b")
        with pytest.raises(LabError, match="2 episodes are open") as refusal:
            one.open("c", "one")
        assert refusal.value.status == 503
        one.close_episode(first)
        assert one.open("c", "one")["episode"]


def script(dice: random.Random) -> list[WrittenMessage]:
    """Messages of an episode: edits, generations, captures, and edits by what was captured."""
    site = {"layer": dice.randrange(2), "point": "residual"}
    prompts = ["".join(dice.choices("abcdef ", k=dice.randint(1, 30))) for _ in range(dice.randint(1, 4))]
    left: dict[str, Any] = {
        "left": [round(dice.gauss(0, 1), 3) for _ in range(32)],
        "right": f"row {dice.randrange(32)}",
    }
    return [
        message(call("rank_one", parameter=NAME, **left), call("generate", prompts=prompts, max_new_tokens=6)),
        message(call("capture", prompts=prompts, sites=[site]), call("next_tokens", prompts=prompts)),
        message(call("project_out", parameter=NAME, direction="captured activation #0"), call("kl", texts=prompts)),
        message(call("gradient", prompts=["ab"], targets=["c"], sites=[site]), call("generate", prompts=prompts)),
        message(call("edit_log")),
        SUBMIT,
    ]


def test_sixty_four_episodes_at_once_are_each_as_if_alone(tmp_path: Path) -> None:
    scripts = [script(random.Random(number)) for number in range(64)]

    def play(number: int) -> list[Any]:
        id = opened(one, INSTANCES[number % 3], id=f"open{number}")
        return [one.message(id, str(turn), sent)["messages"] for turn, sent in enumerate(scripts[number])]

    with lab(tmp_path) as one, ThreadPoolExecutor(64) as threads:
        together = list(threads.map(play, range(64)))
    alone = [wsp_labs.load(id) for id in INSTANCES]
    for number, replies in enumerate(together):
        instance = alone[number % 3]
        assert instance is not None
        episode = Episode(instance.engine, PublicData.model_validate(dict(instance.task.data)))
        assert replies == [list(episode.message(one.model_dump(mode="json")).messages) for one in scripts[number]]
    assert len(results(tmp_path)) == 64
