"""Counts of n-grams, and a network of causal convolutions that corrects what they say.

Counts learn from every byte at once, and the network sees further back and likens what is alike. All rows of a batch
are counted, a fifth of them trains the network.
"""

import torch
import torch.nn.functional as F
from torch import nn

ORDERS, SLOTS, PRIME, DISCOUNT = 5, 1 << 22, (1 << 31) - 1, 0.75
KERNEL, STRIDES = 4, (1, 4, 16)


def get_config() -> dict:
    return {
        "model_dim": 128,
        "seq_len": 256,
        "learning_rate": 0.005,
        "train_steps": 400,
        "train_batch_tokens": 163_840,
        "warmup_steps": 32,
        "warmdown_steps": 320,
        "weight_decay": 0.02,
    }


class Counts(nn.Module):
    """Hashed counts of n-grams. An n-gram can't have been seen more often than the shorter one at its end: the least of
    both counts is right where n-grams share a slot."""

    def __init__(self):
        super().__init__()
        self.register_buffer("counts", torch.zeros(ORDERS, SLOTS, dtype=torch.int32))
        self.register_buffer("met", torch.zeros(1 << 22, dtype=torch.bool), persistent=False)

    def places(self, ids):
        """For each order its counts, and where those of the bytes that may follow begin."""
        hashed = torch.zeros_like(ids)
        for back, counts in enumerate(self.counts):
            older = F.pad(ids, (back, 0))[:, : ids.shape[1]]
            hashed = (hashed + older + 1) * 1_000_003 % PRIME
            yield counts, hashed % (SLOTS - 256)

    def new(self, ids):
        """Which places training has not met before, by a hash of sixteen bytes: rows are drawn anew in each step, and
        overlap. The table is no part of the artifact, but once it is full nothing is new, which bounds the artifact."""
        hashed = ids
        for back in (1, 2, 4, 8):
            hashed = (hashed * 1_000_003 + F.pad(hashed, (back, 0))[:, : ids.shape[1]]) % PRIME
        return ~self.met[hashed % len(self.met)], hashed % len(self.met)

    def add(self, ids, following):
        new, passage = self.new(ids)
        self.met[passage] = True
        for counts, place in self.places(ids):
            counts.scatter_add_(0, (place + following).flatten(), new.int().flatten())

    def forward(self, ids):
        """Probabilities float32 [rows, length, 256]: each order takes a little off its counts and gives it to what the
        order below says."""
        chance = torch.full((256,), 1 / 256, device=ids.device)
        seen = None
        for counts, place in self.places(ids):
            found = counts.unfold(0, 256, 1)[place].float()
            seen = found if seen is None else torch.minimum(seen, found)
            kept = (seen - DISCOUNT).clamp_min(0)
            total, left = seen.sum(-1, keepdim=True), kept.sum(-1, keepdim=True)
            chance = torch.where(total > 0, (kept + (total - left) * chance) / total.clamp_min(1), chance)
        return chance


class Layer(nn.Module):
    def __init__(self, dim, stride):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.before = stride * (KERNEL - 1)
        self.conv, self.out = nn.Conv1d(dim, dim, KERNEL, dilation=stride), nn.Linear(dim, dim)

    def forward(self, x):
        y = F.pad(self.norm(x).transpose(1, 2), (self.before, 0))
        return x + self.out(F.gelu(self.conv(y).transpose(1, 2)))


class Mixture(nn.Module):
    def __init__(self, vocab_size, config):
        super().__init__()
        dim = config["model_dim"]
        self.counts = Counts()
        self.bytes = nn.Embedding(vocab_size, dim)
        self.layers = nn.Sequential(*(Layer(dim, stride) for stride in STRIDES))
        self.norm, self.head, self.trust = nn.LayerNorm(dim), nn.Linear(dim, vocab_size), nn.Linear(dim, 1)
        nn.init.zeros_(self.head.weight)

    def predict(self, ids):
        with torch.no_grad():
            chance = self.counts(ids)
        x = self.norm(self.layers(self.bytes(ids)))
        return self.head(x) + (1 + self.trust(x)) * chance.log()

    def forward(self, input_ids, target_ids=None):
        predicted = input_ids[: 1 + len(input_ids) // 5] if self.training else input_ids
        logits = self.predict(predicted)
        if self.training:
            with torch.no_grad():
                self.counts.add(input_ids[:, :-1], input_ids[:, 1:])
        return F.pad(logits, (0, 0, 0, 0, 0, len(input_ids) - len(predicted)))


def build_model(vocab_size, config):
    return Mixture(vocab_size, config)
