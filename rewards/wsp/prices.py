"""What a conversation has cost: the tokens of each message's ``usage`` at the prices of a config."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from weightgym.rewards.contracts import BackendError

_MILLION = 1_000_000


class Prices(BaseModel):
    """Dollars for a million tokens. All 0, the default, is a local model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    #: Of prompt tokens that ``usage.prompt_tokens_details.cached_tokens`` names; None: the price of the others.
    cached_prompt: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    completion: float = Field(default=0.0, ge=0, allow_inf_nan=False)

    @property
    def free(self) -> bool:
        """Whether nothing costs anything, so that no usage is needed."""
        return not (self.prompt or self.cached_prompt or self.completion)

    def cost(self, usage: Mapping[str, Any] | None) -> Fraction:
        """Dollars of one message, exact: a sum over a conversation meets its limit at the same message everywhere.

        Args:
            usage: of the OpenAI API: ``prompt_tokens`` (cached ones included) and ``completion_tokens``.

        Raises:
            BackendError: tokens cost something and the usage is missing or impossible.
        """
        if self.free:
            return Fraction(0)
        prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        details = (usage or {}).get("prompt_tokens_details")
        cached = _count(details, "cached_tokens") if isinstance(details, Mapping) and "cached_tokens" in details else 0
        if cached > prompt:
            raise BackendError(f"usage: {cached} cached tokens of {prompt} prompt tokens")
        cheap = self.prompt if self.cached_prompt is None else self.cached_prompt
        parts = (self.prompt, prompt - cached), (cheap, cached), (self.completion, completion)
        # As a decimal: 0.1 dollars are a tenth, not its nearest binary fraction.
        return sum((Fraction(str(price)) * tokens for price, tokens in parts), Fraction(0)) / _MILLION


def _count(usage: Mapping[str, Any] | None, name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else None
    if type(value) is not int or value < 0:
        raise BackendError(f"usage.{name}: {value!r}, want a number of tokens: this model's tokens have a price")
    return value
