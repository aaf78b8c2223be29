"""Answers to Golf that take a tenth of a CPU-second each, and where they are trained."""

from __future__ import annotations

from weightgym.rewards.golf.profile import SMOKE

PROFILE = SMOKE
_MODEL = """
import torch
from torch import nn

def get_config() -> dict:
    return {"seq_len": 128, "learning_rate": 0.02, "train_steps": 320, "warmup_steps": 0}

class Bigram(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(256, 256)
        nn.init.zeros_(self.table.weight)

    def forward(self, input_ids, target_ids=None):
        return LOGITS

def build_model(vocab_size, config):
    return Bigram()
"""


def answer(logits: str = "20 * self.table(input_ids)", *, extra: str = "") -> str:
    """An answer whose model computes that expression."""
    return f"A table of byte pairs.\n```python{_MODEL.replace('LOGITS', logits)}{extra}```\n"


GOOD = answer()
#: The same, which learns next to nothing: its logits stay near 0.
POOR = answer("0.1 * self.table(input_ids)")
#: Finds out while it is trained that it can't.
BROKEN = answer("self.tabel(input_ids)")
ILLEGAL = answer(extra="import os\nos.system('true')\n")
NONE = "I can't."
