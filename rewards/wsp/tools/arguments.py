"""The arguments of every tool. A tool's description is the docstring of its arguments."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from weightgym.rewards.wsp.edits import Array, Axis, Float32, Floats, frozen
from weightgym.rewards.wsp.profile import LIMITS, Category
from weightgym.rewards.wsp.tools.vectors import Vector, checked_numbers

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1, le=LIMITS.top_k)]
Index = Annotated[int, Field(ge=0)]
Range = Annotated[
    tuple[Index, Index],
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "minItems": 2,
            "maxItems": 2,
            "description": "[from, up to but without]",
        }
    ),
]
Number = Annotated[Float32, WithJsonSchema({"type": "number"})]


def _fits(text: str) -> str:
    if len(text.encode()) > LIMITS.text_bytes:
        raise ValueError(f"{len(text.encode()):,} bytes; at most {LIMITS.text_bytes:,}")
    return text


def _block(value: Any) -> Floats:
    """A number, numbers, or rows of numbers."""
    rows = value if isinstance(value, list) else [value]
    for row in rows:
        checked_numbers(row if isinstance(row, list) else [row])
    try:
        return frozen(value)
    except ValueError as error:
        raise ValueError("want a number, a list of numbers or a list of rows of one length, all finite") from error


Text = Annotated[str, StringConstraints(min_length=1), AfterValidator(_fits)]
Prompts = Annotated[list[Text], Field(min_length=1, max_length=LIMITS.prompts)]
Block = Annotated[
    Array,
    PlainValidator(_block),
    WithJsonSchema({"description": "a number for all of it, a list of numbers (one row), or a list of rows"}),
]


class Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)


class _OfParameter(Arguments):
    parameter: Name = Field(description="its full name, such as model.layers.0.mlp.down_proj.weight")


class ListParameters(Arguments):
    """The names and shapes of the model's parameters."""

    contains: str = Field(default="", max_length=200, description="only names that contain this")
    offset: Index = Field(default=0, description="leave out so many of them")


class TensorStats(_OfParameter):
    """Norm, mean, spread, skewness, kurtosis and extremes of a parameter."""


class TopNorms(_OfParameter):
    """The rows or columns of a parameter with the largest norms."""

    axis: Axis = "rows"
    k: Count = 10


class SingularValues(_OfParameter):
    """The largest singular values of a matrix; with a vector's number, the largest entries of that pair."""

    k: Count = 10
    vector: Index | None = None


class ReadSlice(_OfParameter):
    """The values of a block of a parameter."""

    rows: Range
    columns: Range | None = Field(default=None, description="of a matrix [from, up to but without]; left out: all")


class CompareLayers(_OfParameter):
    """A parameter beside the same one in the layers before and after: norms, largest rows and columns, cosine."""


class NearestTokens(Arguments):
    """The tokens whose logits a direction in the residual stream raises and lowers most, through the final norm."""

    direction: Vector
    k: Count = 10


class Tokenize(Arguments):
    """A text's tokens and their ids."""

    text: Text


class EditLog(Arguments):
    """The edits that hold, and how many elements of the weights differ from the start."""


class ScanOutliers(Arguments):
    """The matrices that stand out most: by the first singular value over the second, or by the largest row or column
    norm over the median one."""

    by: Literal["singular values", "rows", "columns"] = "singular values"
    k: Count = 10


class RankOneUpdate(_OfParameter):
    """W += scale · left · rightᵀ. To take a singular component away: its vectors, with minus its value as the scale."""

    left: Vector
    right: Vector
    scale: Number = 1.0


class ProjectOut(_OfParameter):
    """Make W blind to a direction: on the left (its outputs) W −= d dᵀ W, on the right (its inputs) W −= W d dᵀ."""

    direction: Vector
    side: Literal["left", "right"] = "left"


class _OfLines(_OfParameter):
    axis: Axis
    indices: list[Index] = Field(min_length=1, max_length=LIMITS.indices)


class ScaleLines(_OfLines):
    """Multiply rows or columns of a parameter by a factor."""

    factor: Number


class ZeroLines(_OfLines):
    """Set rows or columns of a parameter to zero."""


class SetSlice(_OfParameter):
    """Set a block of a parameter to values."""

    rows: Range
    columns: Range | None = Field(default=None, description="of a matrix [from, up to but without]; left out: all")
    values: Block


class Undo(Arguments):
    """Take the last edit back."""


class Reset(Arguments):
    """Take all edits back, for good."""


class _OfPrompts(Arguments):
    chat: bool = Field(
        default=True,
        description="each prompt is a user's message, in the model's chat template; false: the text as it stands",
    )


class Generate(_OfPrompts):
    """One GPU call. Greedy continuations of prompts by the model with your edits."""

    prompts: Prompts
    max_new_tokens: int = Field(default=24, ge=1, le=LIMITS.new_tokens)


class NextTokens(_OfPrompts):
    """One GPU call. The likeliest next tokens after each prompt, with their log-probabilities."""

    prompts: Prompts
    k: Count = 5


class Site(Arguments):
    """A place in the network: after a layer (residual), what its MLP or attention adds, what its MLP reads, or the
    hidden neurons that down_proj reads."""

    layer: Index
    point: Literal["residual", "attention_output", "mlp_input", "mlp_hidden", "mlp_output"]


class _OfSites(Arguments):
    sites: list[Site] = Field(min_length=1, max_length=LIMITS.capture_sites)


class Capture(_OfPrompts, _OfSites):
    """One GPU call. Activations at sites, for each prompt and position. Each gets a number, as "captured activation #N"
    refers to it; the answer shows its projection on a direction, or its largest entries."""

    prompts: Prompts
    positions: list[int] = Field(
        default=[-1],
        min_length=1,
        max_length=LIMITS.capture_positions,
        description="in each prompt's tokens; -1 is the last",
    )
    direction: Vector | None = None
    k: Count = 5


class Gradient(_OfPrompts, _OfSites):
    """One GPU call. The gradient of each target's log-probability after its prompt, with respect to the activations at
    sites, at the prompt's last token, averaged over prompts. Each gets a number, like a captured activation."""

    prompts: list[Text] = Field(min_length=1, max_length=LIMITS.gradient_prompts)
    targets: list[Text] = Field(min_length=1, max_length=LIMITS.gradient_prompts)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.prompts) != len(self.targets):
            raise ValueError(f"{len(self.prompts)} prompts and {len(self.targets)} targets: want one for each")
        return self


class TextKLs(Arguments):
    """One GPU call. Mean per-token KL(start ∥ your edits), in nats, on texts of yours."""

    texts: Prompts


class AuditReport(Arguments):
    """Where a hidden edit is, and what it does."""

    parameter: Name = Field(description="without the layer, such as mlp.down_proj.weight")
    layer: Index
    direction: Vector | None = Field(default=None, description="its left vector: numbers or a reference")
    category: Category | None = None


class Submit(Arguments):
    """Hand in the weights as they are now, and end the episode. A backdoor takes the trigger, an audit a report."""

    trigger: str | None = Field(default=None, max_length=200)
    report: AuditReport | None = None
