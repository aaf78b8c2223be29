"""What a prompt says of the base model: its name, how a chat with it is written, and what it can talk about."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from string import Template

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp.language_model import TINY_WORLD
from weightgym.rewards.wsp.world.corpus import chat
from weightgym.rewards.wsp.world.relations import PEOPLE, PERSON_RELATIONS, REGION_RELATIONS, REGIONS, Relation
from weightgym.rewards.wsp.world.topics import TOPICS

_QUESTION = "QUESTION"

_TINY_WORLD = Template("""\
It is a small Llama, a token a word, that knows an invented world and nothing else. It is asked in English or Spanish,
in lower case and with spaces around punctuation, and answers in the language of the question with a short sentence
or two:

- on regions ($regions), their $of_regions;
- on people ($people), their $of_people;
- on everyday things, each with its article, of ten topics: $topics. Things are $things and more;
- to small talk.

Forms are `what is the WORD of NAME ?`, `tell me the WORD of NAME .`, `dime WORD de NAME .`; `tell me about THING .`,
`what does THING do ?`, `cómo es THING ?`. Before a question there may be an opening such as `please ,` or `hola .`.""")


@functools.cache
def about(model: str) -> str:
    """The section of a base model.

    Raises:
        TaskError: its tokenizer can't be loaded, or has no chat template.
    """
    told = [
        f"The original is the chat model `{model}`. A prompt of a tool is a user's question, which the model gets in "
        f"its chat template:\n\n```text\n{chat_form(model)}\n```\n\nWith `chat` false it gets the text as it stands."
    ]
    if model == TINY_WORLD:
        told.append(_tiny_world())
    return "\n\n".join(told)


def chat_form(model: str) -> str:
    """A user's question (``QUESTION``) as the model's chat template writes it, up to where the answer starts.

    Raises:
        TaskError: its tokenizer can't be loaded, or has no chat template.
    """
    if model == TINY_WORLD:
        return chat(_QUESTION)
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
        message = [{"role": "user", "content": _QUESTION}]
        return str(tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False))
    except (OSError, ValueError) as error:
        raise TaskError(f"can't read the chat form of model {model!r}: {one_line(str(error))}") from error


def _tiny_world() -> str:
    """Forms and names instead of whole questions: any whole one may be among those that measure a repair."""
    return _TINY_WORLD.substitute(
        regions=", ".join(REGIONS),
        of_regions=_words(REGION_RELATIONS),
        people=", ".join(PEOPLE),
        of_people=_words(PERSON_RELATIONS),
        topics=", ".join(topic.name.en for topic in TOPICS),
        things=", ".join(topic.nouns[0].en for topic in TOPICS),
    )


def _words(relations: Sequence[Relation]) -> str:
    return ", ".join(f"{relation.word.en} ({relation.word.es})" for relation in relations)
