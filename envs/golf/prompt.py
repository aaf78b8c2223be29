"""The prompt of Golf: all that one must know to write ``solution.py``."""

from __future__ import annotations

from string import Template

from weightgym.rewards.golf.config import KEYS
from weightgym.rewards.golf.data.stream import sample
from weightgym.rewards.golf.profile import SCHEDULE_KEYS, Profile

SYSTEM_PROMPT = (
    "You design small language models. Your answer is one Python file, which is trained and scored as it is."
)
SAMPLE_BYTES = 1800

_PROMPT = Template("""\
# Golf: train the best small model of these bytes

Write `solution.py`, a file that says how a small byte-level language model is built, trained and packed. An evaluator
trains it on text in a language that exists nowhere else, packs it, and measures on other text in the same language how
many bits it needs for a byte (`val_bpb`). Fewer is better.

## The data

$train_bytes bytes to train on, $val_bytes to be scored on, UTF-8. Each language has words, grammar and formats of
its own: prose in paragraphs, text like code, tables. Words agree with each other, documents have topics and ways of
spelling, and what a document names once comes back in it. The two texts share the language and no passage. Pieces of
it:

````text
$sample````

## The file

```python
def get_config() -> dict:                                    # required
    return {"seq_len": 256, "learning_rate": 0.003}

def build_model(vocab_size: int, config: dict):              # optional
    ...                                                      # returns a torch.nn.Module

def quantized_roundtrip(model, clip_percentile: float):      # optional
    ...                                                      # returns (state_dict, artifact_bytes)
```

It may import `torch` and the computing modules of the standard library (`math`, `struct`, `zlib`, `dataclasses`, …).
Nothing else can be imported, NumPy neither. An extension that is absent, or that returns `None`, is the default one.

**get_config** is read without being run: one `return` of one dict literal with constants for values (`128 * 1024` and
numeric constants of the module are fine, calls and conditions are not). Keys that are left out have their defaults:

$keys

Also: model_dim / num_heads is an even whole number, train_batch_tokens is a multiple of seq_len, and warmup_steps +
warmdown_steps < train_steps. A key that is not in the table is an error. What goes into `config` of `build_model` is
the whole table with your values.

**build_model** gets `vocab_size` 256. `model(input_ids)` with int64 ids of shape (batch, length), length up to seq_len,
returns logits of shape (batch, length, 256), finite and within ±100,000: those at position t are the prediction of byte
t + 1. The signature is `forward(self, input_ids, target_ids=None)`; targets are never passed. Without `build_model` it
is a pre-norm transformer: byte and learned position embeddings, num_layers blocks of RMSNorm, causal attention, RMSNorm
and a GELU MLP of width mlp_mult × model_dim, a last RMSNorm, and the byte embedding again as the head. Its matrices
begin as normal numbers with standard deviation 0.02, its positions as zeros.

**Training** is the evaluator's: AdamW with betas 0.9 and 0.95, weight decay and gradient clipping from the config,
cross-entropy over random rows of seq_len bytes, the model in training mode. The learning rate rises linearly for
warmup_steps, stays, and falls over the last warmdown_steps along a cosine to a tenth. Buffers that the model fills
while it is trained are kept if they are in its state dict.

**quantized_roundtrip** gets the trained model and q_clip_percentile. It returns the state dict that is scored, which
must load into a fresh model with `strict=True`, and the size of its packed form in bytes, an int. The default clips
each tensor at that percentile, rounds it to int8 with one scale, and compresses with zlib.

Training, packing and scoring are processes of their own, each of which builds the model anew (from the same random
seed) and loads the state dict: what is not in it is lost between them. What they print is thrown away. They run on
$where.

## Sizes and budgets (profile $profile)

- Artifact: $cap bytes at most, packed model and `solution.py` together. The evaluator packs the returned tensors
  itself as well (equal tensors once; values on a grid of any bit width for what their bits cost) and charges the larger
  of its size and yours. A scheme that it can't see through, such as low-rank products or weights regenerated from a
  seed, is charged for the tensors that it returns.
- Training: $train_budget.
- After it, packing and scoring: $post_budget.
$schedule
- Scoring goes over rows of seq_len bytes that don't overlap: the first bytes of a row have next to no context.

## What is not allowed

- Anything that makes a prediction depend on the byte that it predicts or on later ones, or on other rows of the batch,
  or on rows that were scored before: no bidirectional attention, no batch statistics in evaluation, no state that
  outlives a call, no learning while scoring. The evaluator scores every row again in another process, among other rows
  and with other bytes behind secret places; predictions that differ make the run invalid, and so does a model that is
  random when it is scored.
- Training in your own code: optimisers, `.backward()`, `autograd.grad`, gradients by `torch.func`. Defining a
  `torch.autograd.Function` (a straight-through estimator, say) is fine.
- Files, network, environment variables, processes, threads, native code; looking into frames, modules or objects of the
  evaluator; replacing functions of PyTorch or Python; printing results; text or tables of the data in the file.
- Byte counts that are negative, no plain int, or untrue.

What is plainly against these rules in the text of the file is not run at all.

Causal ideas of every kind are welcome: convolutions, recurrence, shared blocks, rotary or no positions, hashed n-grams
of earlier bytes, an output bias, quantisation to fewer bits, codebooks, tensors that are stored once and used twice.

## Reward

−val_bpb (at worst −8.5, what knowing nothing costs and a little more) for a run that ends well. −9 for everything
else: no file, a config that is refused, an error, a timeout, an artifact over the cap, a failed audit.

## How to answer

Think first if you like, then give the whole file in one block that opens with ```python on a line of its own and closes
with ``` on a line of its own. The last such block of your answer is the file.
$attempts""")

_ATTEMPTS = Template("""
You have $attempts attempts, each a whole file in an answer of its own. After each the evaluator reports: whether it was
valid and what went wrong (of an exception at most its class and a line of your file), val_bpb, how the artifact's bytes
were counted, which part of the budgets was used, and the best so far. The reward is that of the best valid attempt, so
that a daring one costs nothing.
""")


def task_prompt(task: str, profile: Profile, attempts: int | None = None) -> str:
    """The user message of a task under a profile. The sample in it is the same whatever the secret is.

    ``attempts``: how many an episode has, where it is one of several turns.
    """
    return _PROMPT.substitute(
        train_bytes=f"{profile.train_bytes:,}",
        val_bytes=f"{profile.val_bytes:,}",
        sample=sample(task, SAMPLE_BYTES),
        keys=_key_table(),
        profile=profile.name,
        cap=f"{profile.artifact_cap:,}",
        train_budget=_budget(profile, profile.train_seconds),
        post_budget=_budget(profile, profile.post_seconds),
        where=_where(profile),
        schedule=_schedule(profile),
        attempts="" if attempts is None else _ATTEMPTS.substitute(attempts=attempts),
    )


def _key_table() -> str:
    rows = [f"| {name} | {key.kind.__name__} | {_range(key.low)} to {_range(key.high)} | {_range(key.default)} |"
            for name, key in KEYS.items()]  # fmt: skip
    return "\n".join(["| key | type | range | default |", "|---|---|---|---|", *rows])


def _range(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.5f}".rstrip("0").rstrip(".")


def _budget(profile: Profile, seconds: float) -> str:
    if profile.clock == "cpu":
        return f"{seconds:g} seconds of one CPU core"
    where = f"{profile.gpus} {profile.gpu_kind} GPUs" if profile.gpus else "all GPUs of the machine"
    slow = (
        f" (on a machine without one, {seconds * profile.cpu_factor:,.0f} CPU-seconds)"
        if profile.cpu_factor > 1
        else ""
    )
    return f"{seconds:g} seconds on {where}{slow}"


def _where(profile: Profile) -> str:
    if profile.gpus == 0:
        return f"one CPU thread each, without autocast, in {profile.memory_bytes >> 30} GiB of memory"
    return "GPUs, under bfloat16 autocast" + (" (on a machine without one, on a CPU)" if profile.gpus is None else "")


def _schedule(profile: Profile) -> str:
    top, bottom = profile.step_share
    if (top, bottom, profile.batch_divisor) == (1, 1, 1):
        return "- Steps and tokens are run as the config says."
    run = profile.schedule(**{key: int(KEYS[key].default) for key in SCHEDULE_KEYS})
    return (
        f"- To fit, {top}/{bottom} of your train_steps, warmup_steps and warmdown_steps are run (rounded), each with\n"
        f"  1/{profile.batch_divisor} of your train_batch_tokens (whole rows, one at least): by default "
        f"{run.train_steps} steps of {run.batch_tokens:,} bytes.\n  Everything else is as you say."
    )
