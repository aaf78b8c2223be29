"""The baseline that only reads statistics: it runs the model not once."""

from __future__ import annotations

from statistics import median

from weightgym.envs.wsp.agents.looking import Parameter, in_turns, numbered, parameters
from weightgym.envs.wsp.agents.plan import Ask, Brief, Plan, ask

#: A column this many times the median of its matrix's large ones stands out.
_STANDS_OUT = 1.5


def spectral(brief: Brief) -> Plan:
    """Takes away the first singular component of the matrix in which it is largest beside the second; of a hijack, the
    columns with the largest norms."""
    matrices = yield from parameters("mlp.down_proj.weight")
    if brief.data.family == "hijack":
        answers = yield from in_turns(brief, [_columns(one) for one in matrices])
        name, columns = max(
            ((one.name, loud_columns(answer)) for one, answer in zip(matrices, answers, strict=True)),
            key=lambda found: sum(found[1].values()),
        )
        if columns:
            yield [ask("zero", parameter=name, axis="columns", indices=list(columns))]
        return ask("submit")
    answers = yield from in_turns(brief, [ask("singular_values", parameter=one.name, k=2) for one in matrices])
    name, first = max(
        ((one.name, numbered(answer)) for one, answer in zip(matrices, answers, strict=True)),
        key=lambda found: found[1][0] / max(found[1][1], 1e-30),
    )
    if brief.data.family == "audit":
        return report(name, "left singular vector 0")
    yield [
        ask("rank_one", parameter=name, left="left singular vector 0", right="right singular vector 0", scale=-first[0])
    ]
    return ask("submit")


def report(name: str, direction: str | list[float], category: str | None = None) -> Ask:
    """A report of a parameter by its full name."""
    _, _, after = name.partition("layers.")
    layer, _, local = after.partition(".")
    said = {"parameter": local, "layer": int(layer), "direction": direction}
    return ask("submit", report=said | ({"category": category} if category else {}))


def _columns(parameter: Parameter) -> Ask:
    return ask("top_norms", parameter=parameter.name, axis="columns", k=20)


def loud_columns(answer: str) -> dict[int, float]:
    """The columns before the largest step down in norm, with how many times the rest they are; none without a step."""
    norms = numbered(answer)
    ordered = list(norms.values())
    if len(ordered) < 2:
        return {}
    rest = median(ordered[len(ordered) // 2 :])
    return {index: norm / rest for index, norm in norms.items() if norm > _STANDS_OUT * rest}
