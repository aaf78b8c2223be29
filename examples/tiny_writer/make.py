"""Makes tiny-writer, the language model that the package ships: ``python examples/tiny_writer/make.py [FOLDER]``.

A Llama of about a million parameters with one token a byte learns, from random texts (``texts.py``), to answer any
prompt with a short valid ``edits`` block. It learns no game: which statements are worth writing is left to GRPO. A few
minutes on one CPU core; the same machine and versions give the same bytes again.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from string import Template

import torch
from safetensors.torch import save_file
from texts import answer, prompt
from tokenizer_files import ASSISTANT, END, PAD, POSITIONS, USER, VOCABULARY, write_tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerBase

from weightgym.envs.weight_program.tasks import SOURCE
from weightgym.rewards.contracts import ModelError
from weightgym.rewards.weight_program.edits import parse_edits

HERE = Path(__file__).parent
SEED = 20261130
STEPS, BATCH, RATE, WARMUP = 600, 32, 4e-3, 40
WIDE = 0.06  # share of batches in which prompts may hold long characters: a batch is as long as its longest text
THREADS = 1  # sums differ between numbers of threads; and two wait for each other where another process runs
SHARPEN = 1.3  # logits are multiplied by it after training: most of what is rare and wrong goes, 99 % stay distinct
MOST_NEW = 64
SAMPLES = 256
IGNORED = -100  # label of a token that is not learnt

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": POSITIONS,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-05,
    "initializer_range": 0.05,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": END,
    "pad_token_id": PAD,
    "dtype": "bfloat16",
}

#: Plain sampling: transformers' own default would keep the 50 likeliest tokens only, and falsify log-probabilities.
GENERATION = {
    "do_sample": True,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "eos_token_id": END,
    "pad_token_id": PAD,
}


@dataclass(frozen=True)
class Numbers:
    """What is said about a model: parameters, final loss (nats a token) and shares of its sampled answers, 0 to 1."""

    parameters: int
    loss: float
    valid: float
    ended: float
    distinct: float
    tokens: float  #: mean length of an answer with its end


def main(folder: Path) -> None:
    """Train and write everything into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    write_tokenizer(folder)
    _write_json(folder / "config.json", CONFIG)
    _write_json(folder / "generation_config.json", GENERATION)
    model = LlamaForCausalLM(AutoConfig.from_pretrained(folder)).float()
    started = time.perf_counter()
    loss = train(model)
    print(f"trained in {time.perf_counter() - started:.0f} s")
    model.model.norm.weight.data *= SHARPEN
    save(model, folder)
    numbers = measure(folder, loss)
    print(numbers)
    card = Template((HERE / "card.md").read_text("utf-8")).substitute(_shown(numbers))
    (folder / "README.md").write_text(card, "utf-8")


def train(model: LlamaForCausalLM) -> float:
    """Teach the form of an answer; returns the mean loss of the last 50 steps, in nats a token."""
    rng = random.Random(SEED)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    losses: list[float] = []
    model.train()
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * rate(step)
        ids, labels = batch(rng)
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
        if step % 50 == 49:
            print(f"step {step + 1}/{STEPS}  loss {sum(losses[-50:]) / 50:.4f}", flush=True)
    return sum(losses[-50:]) / len(losses[-50:])


def rate(step: int) -> float:
    """The share of the full learning rate: a linear start, then half a cosine down to 0."""
    done = (step - WARMUP) / (STEPS - WARMUP)
    return (step + 1) / WARMUP if step < WARMUP else 0.5 * (1 + math.cos(math.pi * done))


def batch(rng: random.Random) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels, int64 of shape (BATCH, longest text), padded on the right; only answers are learnt."""
    wide = rng.random() < WIDE
    rows = [example(rng, wide) for _ in range(BATCH)]
    longest = max(len(question) + len(reply) for question, reply in rows)
    ids = torch.full((BATCH, longest), PAD)
    labels = torch.full((BATCH, longest), IGNORED)
    for row, (question, reply) in enumerate(rows):
        end = len(question) + len(reply)
        ids[row, :end] = torch.tensor(question + reply)
        labels[row, len(question) : end] = torch.tensor(reply)
    return ids, labels


def example(rng: random.Random, wide: bool) -> tuple[list[int], list[int]]:
    """The tokens of a random prompt, as the chat template writes them, and of a random answer with its end."""
    question = [USER, *prompt(rng, wide=wide).encode(), ASSISTANT]
    return question, [*answer(rng).encode(), END]


def save(model: LlamaForCausalLM, folder: Path) -> None:
    """Write the weights in bfloat16; the tied head is stored once, as the embedding."""
    tensors = {name: tensor.detach().bfloat16().contiguous() for name, tensor in model.state_dict().items()}
    del tensors["lm_head.weight"]
    path = folder / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)  # it is made for its owner only


def measure(folder: Path, loss: float) -> Numbers:
    """Sample answers to the prompts of the built-in games from what was written, and judge them."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    answers, ended, lengths = sample(model, tokenizer, SAMPLES)
    return Numbers(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        loss=loss,
        valid=sum(map(is_valid, answers)) / SAMPLES,
        ended=sum(ended) / SAMPLES,
        distinct=len(set(answers)) / SAMPLES,
        tokens=sum(lengths) / SAMPLES,
    )


def sample(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, count: int
) -> tuple[list[str], list[bool], list[int]]:
    """Answers at temperature 1 to ``count`` task prompts; whether each ended by itself; its tokens."""
    torch.manual_seed(SEED)
    tasks = [SOURCE.task(id) for id in SOURCE.ids("train")]
    messages = [[{"role": "user", "content": task.prompt[0].content}] for task in tasks]
    chosen = [messages[index % len(messages)] for index in range(count)]
    prompts = tokenizer.apply_chat_template(
        chosen, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
    )
    output = model.generate(**prompts, max_new_tokens=MOST_NEW)[:, prompts["input_ids"].shape[1] :].tolist()
    ended = [END in ids for ids in output]
    replies = [ids[: ids.index(END) + 1] if END in ids else ids for ids in output]
    return tokenizer.batch_decode(replies, skip_special_tokens=True), ended, [len(ids) for ids in replies]


def is_valid(text: str) -> bool:
    """Whether the answer can be scored."""
    try:
        parse_edits(text)
    except ModelError:
        return False
    return True


def _shown(numbers: Numbers) -> dict[str, str]:
    return {
        "parameters": f"{numbers.parameters:,}",
        "loss": f"{numbers.loss:.3f}",
        "valid": f"{numbers.valid:.1%}",
        "ended": f"{numbers.ended:.1%}",
        "distinct": f"{numbers.distinct:.1%}",
        "tokens": f"{numbers.tokens:.0f}",
        "samples": str(SAMPLES),
        "examples": f"{STEPS * BATCH:,}",
        "sharpen": str(SHARPEN),
    }


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "rollouts" / "tiny_writer")
