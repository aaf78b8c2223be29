"""Embeddings of the last two to five bytes together, found by a hash of them, in front of one small network.

What a transformer must compute from single bytes is here looked up. Each n-gram trains its own row, so that a large
learning rate does no harm.
"""

import torch.nn.functional as F
from torch import nn

LONGEST, SLOTS, PRIME = 5, 6_000, (1 << 31) - 1


def get_config() -> dict:
    return {
        "model_dim": 128,
        "seq_len": 256,
        "learning_rate": 0.01,
        "train_steps": 360,
        "train_batch_tokens": 65_536,
        "warmup_steps": 16,
        "warmdown_steps": 320,
        "weight_decay": 0.0,
    }


class Hashed(nn.Module):
    def __init__(self, vocab_size, config):
        super().__init__()
        dim = config["model_dim"]
        self.bytes = nn.Embedding(vocab_size, dim)
        self.grams = nn.ModuleList(nn.Embedding(SLOTS, dim) for _ in range(2, LONGEST + 1))
        for table in (self.bytes, *self.grams):
            nn.init.normal_(table.weight, std=0.1)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size)

    def forward(self, input_ids, target_ids=None):
        x, hashed = self.bytes(input_ids), input_ids
        for back, table in enumerate(self.grams, start=1):
            older = F.pad(input_ids, (back, 0))[:, : input_ids.shape[1]]
            hashed = (hashed * 1_000_003 + older + 1) % PRIME
            x = x + table(hashed % SLOTS)
        return self.head(self.norm(x + self.mlp(x)))


def build_model(vocab_size, config):
    return Hashed(vocab_size, config)
