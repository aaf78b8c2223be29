"""Chat templates in small, for the tokenizer of ``tiny_models``: ``<end>`` is its only special token."""

from __future__ import annotations

from typing import Any

import tiny_models

from weightgym.rollouts.hf_tokenizer import HFChatTokenizer

_PROMPT = "{% if add_generation_prompt %}<assistant>{% endif %}"


def _each(content: str) -> str:
    return "{% for m in messages %}<{{ m['role'] }}>" + content + "<end>\n{% endfor %}" + _PROMPT


#: Everything verbatim.
PLAIN = _each("{{ m['content'] }}")
#: Strips white space, as Llama's does.
TRIMS = _each("{{ m['content'] | trim }}")
#: Reasoning stays in the last turn only.
FORGETS = _each("{% if m['role'] == 'assistant' %}{{ m['content'].split('</think>')[-1] }}{% else %}{{ m['content'] }}{% endif %}")  # fmt: skip # noqa: E501
#: Tools in the system message, calls and results in tags.
TOOLS = (
    "{% if tools %}<system># Tools: <tool_call>{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<end>\n"
    "{% endif %}"
    "{% for m in messages %}{% if m['role'] == 'tool' %}<user><tool_response>{{ m['content'] }}</tool_response>"
    "{% else %}<{{ m['role'] }}>{{ m['content'] }}{% endif %}"
    "{% for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}"
    "<end>\n{% endfor %}" + _PROMPT
)
#: Refuses tools' messages, and two of one role in a row.
STRICT = (
    "{% for m in messages %}"
    "{% if m['role'] not in ['system', 'user', 'assistant'] %}{{ raise_exception('unknown role') }}{% endif %}"
    "{% if not loop.first and m['role'] == loop.previtem['role'] %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}<{{ m['role'] }}>{{ m['content'] }}<end>\n{% endfor %}"
    + _PROMPT
)


def chat(template: str) -> HFChatTokenizer:
    """The tiny tokenizer with a template."""
    made: Any = tiny_models.tokenizer()
    made.chat_template = template
    return HFChatTokenizer(made, name="tiny")
