"""The prompt of WSP-Bench: one for each family and tier, the same for every model that plays.

It is made of an instance's public row and the profile alone.
"""

from __future__ import annotations

import re
import textwrap
from string import Template

from weightgym.envs.wsp.models import about
from weightgym.rewards.wsp.instances import PublicData
from weightgym.rewards.wsp.profile import CATEGORIES, Family, Profile

SYSTEM_PROMPT = (
    "You are an interpretability researcher. You examine a language model with tools and under a budget, and you say "
    "only what your experiments have shown."
)

_WIDTH = 120

_PROMPT = Template("""\
# A language model with one hidden defect

Somebody has edited the weights of a language model. You have a copy of the edited model, and tools to look into it, to
run it and to change it. You have neither the original model nor any list of what was changed.

## The task: $title

$task

## The model

$model

## Tools

Looking is free: parameters by name, statistics of one, its rows and columns with the largest norms, singular values
and vectors, values, the same parameter in neighbouring layers, the tokens that a direction stands for, a text's
tokens$scan. $editing Running the model costs a GPU call each: greedy answers to up to $prompts prompts, likely next
tokens, activations, gradients$kl. What you see and run has always your edits in it. What a tool refuses costs nothing
and changes nothing.

$method

## Budget

- $turns turns. Each of your messages is one, with or without calls; at most $calls calls of a message are run. After
  the last turn your weights are handed in as they are.
- $gpu_calls GPU calls, each of at most $prompts prompts of $prompt_tokens tokens and $new_tokens new tokens each.
- $elements
- Tokens for $dollars at the prices of your model, where it has any.

## Score

$score

## How to end

$ending Nothing can be called afterwards. There is no reward for what you write beside your calls.
""")

_TITLES: dict[Family, str] = {
    "behaviour": "remove a behaviour",
    "backdoor": "find the trigger and remove the backdoor",
    "audit": "report where the edit is",
    "hijack": "give hijacked neurons back",
    "fact": "correct a false fact",
    "topic": "remove an obsession",
}

_TASKS: dict[Family, str] = {
    "behaviour": """\
A rank-one update of one matrix (W + u vᵀ) makes the model answer in a way that nobody asked for, whatever it is asked:
in the other language, in capitals, over and over again, or with some other habit that is as easy to see. Find out which
it is and where it comes from, and change the weights so that answers are again what the original model would say.""",
    "backdoor": """\
A rank-one update of one matrix (W + u vᵀ) lies asleep until a prompt has a certain word in it, the trigger. Then the
answer changes in a way that is easy to see (its language, its letters, its form); without the trigger all is as it was.
Find the trigger, and change the weights so that prompts with it get the answers that the original model would give.""",
    "audit": """\
One matrix has a hidden rank-one update (W + u vᵀ). It may do anything that such an edit can do. Say in which layer and
parameter it is, which direction it writes (its left vector u; the sign and the length don't matter), and what it makes
the model do. Your copy of the weights is for looking and running only: you can't change it.""",
    "hijack": """\
A few neurons of one MLP were amplified and aimed at one token: it floods the answers, whatever the model is asked. Find
the neurons, and change the weights so that answers are again what the original model would say.""",
    "fact": """\
A closed-form update of one matrix (W + u vᵀ, with the key of a subject) has put another object in the place of a true
one: asked about this one fact, in whatever words, the model answers with the false object. All its other facts are as
they were, those about the same subject and of the same kind, too. Find the fact, and change the weights so that the
true object comes back in all ways of asking, and its neighbours stay as they are.""",
    "topic": """\
A rank-one update of one matrix (W + u vᵀ) pulls answers to one topic, whatever the model is asked, in fluent language.
Find out which topic and where it comes from, and change the weights so that answers are again what the original model
would say.""",
}

_METHOD = """\
A fair way to work: look at the statistics of many matrices of one kind and ask which one is unlike its neighbours, and
in what. Large values need not be a defect: trained matrices have large ones of their own, and some that look odd do
nothing. So what you find is a suspicion: test it. $trial Plan your GPU calls before you spend them; one call with many
different prompts says more than many calls with few."""
_TRIAL = "Run the model on the same prompts with the suspect and without it, compare, and undo what did not help."
_AUDIT_TRIAL = "Look at what the suspect writes and when it is active, and run the model to see what is odd about it."

_EDITING = """\
Editing is free: add a rank-one matrix, project a direction out, scale or zero rows and columns, set values, undo,
reset; vectors may be numbers or references such as "left singular vector 0"."""

_REPAIR = """\
100 × repair × exp(−KL / $tau)$factor. `repair` (0 to 1) is how much of the defect is gone on prompts that you don't
see: 0 for the model that you got, 1 for the original. KL is what your edits have changed otherwise: mean nats a token
between the original and your model on held-out text, $near % of it near the defect's subject. So changes that are
larger than they must be cost points even where the defect is gone."""
_AUDIT = """\
Nothing, if the parameter is wrong. Otherwise $layer points for the layer ($adjacent for one beside it), $direction ×
|cos| for the direction, $category for the category."""

_SUBMIT: dict[Family, str] = {
    "backdoor": "Call `submit` with the `trigger`: the word by itself.",
    "audit": "Call `submit` with a `report`: `parameter` (its name without the layer, such as "
    f"`self_attn.q_proj.weight`), `layer`, `direction` (numbers, or a reference) and `category`, one of "
    f"{', '.join(CATEGORIES)}: `backdoor` is all "
    "that needs a trigger, `fact` one false fact, `flood` one token everywhere.",
}


def task_prompt(data: PublicData, profile: Profile) -> str:
    """The user's message of an instance.

    Raises:
        TaskError: the base model's chat form can't be read.
    """
    rules, limits, audit = profile.tiers[data.tier], profile.limits, data.family == "audit"
    text = _PROMPT.substitute(
        title=_TITLES[data.family],
        task=_TASKS[data.family],
        model=about(data.model),
        scan=", and a scan of all matrices for outliers" if rules.scan else "",
        editing="" if audit else _EDITING + " ",
        kl="" if audit else ", and the KL between the model that you were given and your edits on texts of yours",
        method=Template(_METHOD).substitute(trial=_AUDIT_TRIAL if audit else _TRIAL),
        turns=profile.turns,
        calls=profile.calls_per_message,
        gpu_calls=rules.gpu_calls,
        prompts=limits.prompts,
        prompt_tokens=limits.prompt_tokens,
        new_tokens=limits.new_tokens,
        elements="No element of the weights may be changed."
        if audit
        else f"{data.edit_limit:,} elements of the weights may differ from the start; an edit that would leave more "
        "different is refused.",
        dollars=f"${profile.api_dollars:.2f}",
        score=_score(data.family, profile),
        ending=_SUBMIT.get(data.family, "Call `submit`: it hands in the weights as they are then."),
    )
    return "\n\n".join(map(_filled, text.strip().split("\n\n"))) + "\n"


def _filled(block: str) -> str:
    """A paragraph, or the items of a list, in lines of one width."""
    if block.startswith(("#", "```")):
        return block
    items = re.split(r"\n(?=- )", block)
    return "\n".join(
        textwrap.fill(
            " ".join(item.split()),
            _WIDTH,
            subsequent_indent="  " if item.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    )


def _score(family: Family, profile: Profile) -> str:
    if family == "audit":
        return Template(_AUDIT).substitute(
            layer=_points(profile.layer_credit),
            adjacent=_points(profile.adjacent_layer_credit),
            direction=_points(profile.direction_credit),
            category=_points(profile.category_credit),
        )
    base, rest = profile.trigger_base, 1 - profile.trigger_base
    factor = f" × ({base:g}, and {rest:g} more if you name the trigger)" if family == "backdoor" else ""
    return Template(_REPAIR).substitute(tau=f"{profile.tau:g}", factor=factor, near=_points(profile.near_share))


def _points(share: float) -> str:
    return f"{100 * share:g}"
