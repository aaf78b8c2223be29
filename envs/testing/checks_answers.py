"""Good answers are paid, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterable

from weightgym.envs.testing.answers import EMPTY_MESSAGES, GARBAGE, UNICODE
from weightgym.envs.testing.expect import ContractError, expect_equal, fail, show
from weightgym.envs.testing.harness import Harness, Trace, actions_of
from weightgym.envs.testing.subject import Episode
from weightgym.rewards.contracts import Score


def gold_reaches_its_reward(h: Harness) -> None:
    """A known good episode is paid. Protects from a scorer that nobody can please, and from an unreachable task."""
    for id in h.slow_ids:
        least = h.least(id)
        trace = h.gold_trace(id)
        if not h.subject.floor < least:
            fail(f"gold reward of task {id!r}", wanted=f"more than the floor {h.subject.floor}", seen=str(least))
        if trace.score.status != "ok" or not sum(trace.rewards) >= least:
            fail(f"gold episode of task {id!r}", wanted=f"status ok, reward at least {least}", seen=_told(trace))
        with h.env(h.split_of[id]) as env:
            for action in trace.actions:
                if isinstance(action, str) and action not in env.action_space:
                    fail(f"gold action of task {id!r}", wanted=f"a member of {env.action_space}", seen=show(action))


def doing_nothing_gets_the_floor(h: Harness) -> None:
    """An empty answer, or submitting at once, earns the documented floor in every task. Protects from paid idleness."""
    if h.entry is not None and h.entry.floor != h.subject.floor:
        fail("the floor", wanted=f"{h.entry.floor}, as registered", seen=f"{h.subject.floor} in the subject")
    if not h.subject.noops:
        fail("noops of the subject", wanted="at least one episode that does nothing", seen="none")
    for split, ids in h.by_split(h.quick_ids).items():
        with h.env(split) as env:
            for id in ids:
                for noop in h.subject.noops:
                    _expect_floor(h, h.play(env, noop, id), f"doing nothing in task {id!r}")


def garbage_gets_the_floor(h: Harness) -> None:
    """Prose, broken markup, deep nesting, binary and forged verdicts get the floor, with a reason, and never raise."""
    _expect_floors(h, (*GARBAGE, *h.subject.invalid), "a garbage answer")


def unicode_gets_the_floor(h: Harness) -> None:
    """Emoji, right-to-left, zero-width, NUL and lone surrogates get the floor. Protects from a crash on encoding.

    A good answer with a lone surrogate behind it may be worth anything, but scores and goes through JSON.
    """
    _expect_floors(h, UNICODE, "a Unicode answer")
    for id in h.slow_ids:
        if (text := _gold_text(h, id)) is not None:
            _expect_sound(_attempt(h, text + "\n\ud800", id, "a gold answer and a lone surrogate").score)


def oversize_gets_the_floor(h: Harness) -> None:
    """A text beyond the size limit gets the floor, however good what it begins or ends with. Protects from a crash,
    and from an answer that is cut to size and then paid.
    """
    for id in h.slow_ids:
        with h.env(h.split_of[id]) as env:
            limit = getattr(env.action_space, "max_length", 1 << 20)
        answers: list[Episode] = ["x" * (limit + 1)]
        if (text := _gold_text(h, id)) is not None:
            answers += [text + "\n" * limit, "\n" * limit + text]
        if h.subject.oversize is not None:
            answers.append(h.subject.oversize)
        for answer in answers:
            _expect_floor(h, _attempt(h, answer, id, "an oversize answer"), f"an oversize answer to task {id!r}")


def messages_are_answers(h: Harness) -> None:
    """A message scores as its text does; one without text (``None``, a missing key, another type, another role) gets
    the floor. Protects from a crash on a model that only called a tool, and from text that is found elsewhere.
    """
    _expect_floors(h, EMPTY_MESSAGES, "a message without an answer")
    for id in h.slow_ids[:1]:
        if (text := _gold_text(h, id)) is None:
            continue
        _expect_floor(h, _attempt(h, {"role": "user", "content": text}, id, "the user's words"), "the user's words")
        for content in (text, [{"type": "text", "text": text}]):
            trace = _attempt(h, {"role": "assistant", "content": content}, id, "the gold answer as a message")
            expect_equal(f"the gold message to task {id!r}", wanted=h.gold_trace(id).score, seen=trace.score)


def scores_survive_json(h: Harness) -> None:
    """A score read back from JSON is the same score. Protects stored results (NaN, infinities, lone surrogates)."""
    for id in h.slow_ids:
        _expect_sound(h.gold_trace(id).score)
        _expect_sound(h.play_fresh("", id).score)


def _expect_floors(h: Harness, episodes: Iterable[Episode], what: str) -> None:
    """Every episode, in every slow task, one instance a split."""
    episodes = tuple(episodes)
    for split, ids in h.by_split(h.slow_ids).items():
        with h.env(split) as env:
            for id in ids:
                for episode in episodes:
                    said = f"{what} ({show(episode, 80)}) to task {id!r}"
                    try:
                        trace = h.play(env, episode, id)
                    except ContractError:
                        raise
                    except Exception as error:
                        raise _crash(said, error) from error
                    _expect_floor(h, trace, said)


def _attempt(h: Harness, episode: Episode, id: str, what: str) -> Trace:
    try:
        return h.play_fresh(episode, id)
    except ContractError:
        raise
    except Exception as error:
        raise _crash(f"{what} to task {id!r}", error) from error


def _crash(what: str, error: Exception) -> ContractError:
    seen = f"{type(error).__name__}: {show(str(error))}"
    return ContractError(f"{what}\n  wanted: the floor: an answer is no failure of ours\n  seen:   {seen}")


def _expect_floor(h: Harness, trace: Trace, what: str) -> None:
    score = trace.score
    if sum(trace.rewards) != h.subject.floor or score.reward != h.subject.floor:
        fail(what, wanted=f"the floor {h.subject.floor}", seen=_told(trace))
    # An episode of several turns may end with a valid state that is worth nothing; a single answer can't.
    if len(trace.actions) == 1 and score.status != "invalid":
        fail(what, wanted="status invalid", seen=_told(trace))
    if score.status == "invalid" and not (score.code and len(score.reason) > len(score.code) + 2):
        fail(what, wanted="a reason: a code, ': ' and a text for people", seen=repr(score.reason))
    _expect_sound(score)


def _expect_sound(score: Score) -> None:
    try:
        back = Score.model_validate_json(score.model_dump_json())
    except ValueError as error:  # pydantic's errors are ValueErrors
        fail(f"a score through JSON ({show(score)})", wanted="the same score", seen=show(str(error)))
    expect_equal("a score through JSON", wanted=score, seen=back)


def _gold_text(h: Harness, id: str) -> str | None:
    """The gold answer, where it is one text."""
    actions = actions_of(h.gold(id))
    return actions[0] if len(actions) == 1 and isinstance(actions[0], str) and h.max_turns == 1 else None


def _told(trace: Trace) -> str:
    return f"status {trace.score.status}, rewards {trace.rewards}, reason {show(trace.score.reason)}"
