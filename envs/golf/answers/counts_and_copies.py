"""Counts of n-grams, copies of what the row itself said before, and a network that weighs and corrects both.

What a document names once comes back in it: the last four bytes are looked for earlier in the row, and what followed
them there gets votes. The artifact keeps the two leading bits of each count, and the network in int8.
"""

import struct
import zlib

import torch
import torch.nn.functional as F
from torch import nn

ORDERS, SLOTS, PRIME, DISCOUNT = 5, 1 << 22, (1 << 31) - 1, 0.75
KERNEL, STRIDES = 4, (1, 4, 16)
COPIED = 4


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
        self.copy = nn.Linear(dim, 1)
        nn.init.zeros_(self.head.weight)

    def votes(self, ids):
        """How often each byte followed the last COPIED bytes earlier in the row. float32 [rows, length, 256]"""
        now = sum(F.pad(ids, (back, 0))[:, : ids.shape[1]] * 256**back for back in range(COPIED))
        before = F.pad(now, (1, 0), value=-1)[:, :-1]
        same = (now[:, :, None] == before[:, None, :]).float().tril()
        return same @ F.one_hot(ids, 256).float()

    def predict(self, ids):
        with torch.no_grad():
            chance, votes = self.counts(ids), self.votes(ids)
        x = self.norm(self.layers(self.bytes(ids)))
        weight = F.softplus(self.copy(x))
        mixed = (chance + weight * votes) / (1 + weight * votes.sum(-1, keepdim=True))
        return self.head(x) + (1 + self.trust(x)) * mixed.log()

    def forward(self, input_ids, target_ids=None):
        predicted = input_ids[: 1 + len(input_ids) // 5] if self.training else input_ids
        logits = self.predict(predicted)
        if self.training:
            with torch.no_grad():
                self.counts.add(input_ids[:, :-1], input_ids[:, 1:])
        return F.pad(logits, (0, 0, 0, 0, 0, len(input_ids) - len(predicted)))


def build_model(vocab_size, config):
    return Mixture(vocab_size, config)


def quantized_roundtrip(model, clip_percentile):
    state, packed = {}, []
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            scale = float(tensor.abs().max()) / 127 + 1e-12
            codes = (tensor / scale).round()
            state[name] = codes * scale
            packed.append(struct.pack("<f", scale) + codes.to(torch.int8).cpu().numpy().tobytes())
        else:
            lead = tensor.clamp_min(1).log2().floor().sub(1).clamp_min(0).int()  # bits to drop
            state[name] = tensor >> lead << lead
            packed.append((4 * lead + (tensor >> lead)).to(torch.uint8).cpu().numpy().tobytes())
    return state, len(zlib.compress(b"".join(packed), 6))
