"""The harness: one request to the model a turn, sent from this process. No shell, no sandbox, no tools of its own."""

from __future__ import annotations

import re

import openai
import verifiers.v1 as vf
from verifiers.v1.dialects.chat import message_to_wire

#: What servers say of a conversation that is too long for the model.
_TOO_LONG = re.compile(r"context.{0,20}(length|window|size)|maximum.{0,30}(context|length)|too long|overlong", re.I)


class InProcessHarnessConfig(vf.HarnessConfig):
    """Of requests to the model."""

    max_retries: int = 3
    """How often a request is tried again when the connection breaks, or the server is busy (429, 5xx)."""


class InProcessHarness(vf.Harness[InProcessHarnessConfig]):
    """Asks the model once a turn, with the conversation so far and the tools of the episode's environment.

    The conversation is sent back as it was recorded, so a trainer sees one growing branch.
    """

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """One turn. A conversation that has become too long ends the episode: what was said counts.

        Raises:
            openai.OpenAIError: the model can't be asked.
        """
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or ()]
        tools = list(getattr(trace.state, "tools", ()))
        client = openai.AsyncOpenAI(
            base_url=endpoint, api_key=secret, max_retries=self.config.max_retries, timeout=None
        )
        async with client:
            try:
                await client.chat.completions.create(model=ctx.model, messages=messages, tools=tools or openai.omit)
            except openai.APIStatusError as error:
                if trace.num_turns and error.status_code in (400, 413) and _TOO_LONG.search(str(error)):
                    trace.stop("max_input_tokens")
                raise
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")
