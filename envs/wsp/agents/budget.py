"""The baseline that uses its budget: what MLPs write says whom to suspect, and runs of the model whom to believe."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from weightgym.envs.wsp.agents.hijacks import give_back
from weightgym.envs.wsp.agents.looking import continuations, layer_of
from weightgym.envs.wsp.agents.plan import Ask, Brief, Plan, ask
from weightgym.envs.wsp.agents.questions import oddities, questions, world_of
from weightgym.envs.wsp.agents.reading import dense, shared, vectors
from weightgym.envs.wsp.agents.spectral import report
from weightgym.envs.wsp.agents.suspects import OF_ONE, Suspect, activations, matrices, of_one_subject, steady
from weightgym.envs.wsp.agents.triggers import find_trigger
from weightgym.rewards.wsp.profile import Category

#: Questions of a run, and of those whose activations are averaged.
_ASKED, _AVERAGED = 32, 8
#: Less of a symptom than this is none, and with less than this share of it left a suspect is guilty.
_SLIGHT, _GUILTY = 0.25, 0.3
#: GPU calls that looking at layers may cost.
_LOOKS = 2
#: Where triggers are read: so many of the first layers.
_EARLY = 4


def budget(brief: Brief) -> Plan:
    """Makes matrices blind to what they should not write: which direction that is, activations tell, and whether it was
    the right one, the model's answers."""
    match brief.data.family:
        case "hijack":
            return (yield from give_back(brief))
        case "backdoor":
            return (yield from _backdoor(brief))
        case "fact":
            found = yield from of_one_subject(brief, brief.gpu_calls)
            yield [_silenced(found, found.direction)]
            return ask("submit")
        case "audit":
            return (yield from _audit(brief))
        case _:
            return (yield from _always_on(brief))


def _always_on(brief: Brief) -> Plan:
    asked = questions(brief, _ASKED)
    kind, level = yield from _symptom(brief, asked)
    suspects = yield from steady(brief, asked[0], _LOOKS)
    first = suspects[0]
    told = yield from activations(asked[:_AVERAGED], [layer_of(first.matrix.name)], positions=(2, -1))
    common = shared((yield from vectors(brief, first.matrix, [one.name for one in told])))
    edits = [_silenced(first, common), *(_silenced(one, one.direction) for one in suspects[1:])]

    def odd(answers: Sequence[str]) -> float:
        return oddities(world_of(brief), asked, answers)[kind]

    yield from _tried(edits, brief.gpu_calls - _LOOKS - 2, asked, odd, level)
    return ask("submit")


def _backdoor(brief: Brief) -> Plan:
    asked = questions(brief, _ASKED)
    trigger = yield from find_trigger(brief, asked[0])
    if trigger is None:
        return ask("submit")
    downs = (yield from matrices())[:_EARLY]
    told = yield from activations([trigger.word, trigger.other], [layer_of(one.name) for one in downs], chat=False)
    suspects = []
    for matrix in downs:
        own = {one.prompt: one for one in told if one.layer == layer_of(matrix.name)}
        suspects.append(Suspect(matrix, own[0].name, own[0].norm / max(own[1].norm, 1e-30)))
    suspects.sort(key=lambda one: -one.weight)
    prompts = [f"{word} {question}" for word in (trigger.word, trigger.other) for question in asked]

    def moved(answers: Sequence[str]) -> float:
        """The share of questions that the trigger gets another answer to than another word."""
        pairs = zip(answers[:_ASKED], answers[_ASKED:], strict=True)
        return sum(one != other for one, other in pairs) / _ASKED

    edits = [_silenced(one, one.direction) for one in suspects]
    yield from _tried(edits, max(brief.gpu_calls - trigger.gpu_calls - 1, 0), prompts, moved, 1.0)
    return ask("submit", trigger=trigger.word)


def _audit(brief: Brief) -> Plan:
    asked = questions(brief, _ASKED)
    kind, level = yield from _symptom(brief, asked)
    if level > _SLIGHT:
        first = (yield from steady(brief, asked[0], _LOOKS))[0]
        told = yield from activations(asked[:4], [layer_of(first.matrix.name)], positions=(2, 4, -1))
        common = shared([dense(one.largest, first.matrix.shape[0]) for one in told])
        return report(first.matrix.name, common, kind)
    found = yield from of_one_subject(brief, brief.gpu_calls - 1)
    return report(found.matrix.name, found.direction, "fact" if found.weight > OF_ONE else "backdoor")


def _silenced(suspect: Suspect, direction: str | list[float]) -> Ask:
    """The edit that keeps a matrix from writing a direction."""
    return ask("project_out", parameter=suspect.matrix.name, direction=direction, side="left")


def _symptom(brief: Brief, asked: Sequence[str]) -> Generator[Sequence[Ask], list[str], tuple[Category, float]]:
    """What plain answers show most, and how much of it."""
    (answer,) = yield [ask("generate", prompts=asked)]
    shown = oddities(world_of(brief), asked, continuations(answer))
    kind = max(shown, key=lambda one: shown[one])
    return kind, shown[kind]


def _tried(
    edits: Sequence[Ask], runs: int, prompts: Sequence[str], odd: Callable[[Sequence[str]], float], level: float
) -> Generator[Sequence[Ask], list[str], None]:
    """Each edit in its turn, as long as runs are left, up to one that works. Where none does: the next one untried, or
    else the one with which answers are least odd."""
    left: list[float] = []
    for edit in edits[:runs]:
        undo = [ask("undo")] if left else []
        answers = yield [*undo, edit, ask("generate", prompts=prompts)]
        left.append(odd(continuations(answers[-1])))
        if left[-1] < _GUILTY * level:
            return
    undo = [ask("undo")] if left else []
    if len(edits) > len(left):
        yield [*undo, edits[len(left)]]
    elif left:
        yield [*undo, edits[left.index(min(left))]]
