"""The model of shared_block in half the bytes: each matrix has a codebook of sixteen numbers, found by k-means.

Where weights lie close together the codebook is fine, and coarse where there are few.
"""

import lzma

import torch
import torch.nn.functional as F
from torch import nn

DEPTH, KERNEL = 3, 4


def get_config() -> dict:
    return {
        "model_dim": 128,
        "seq_len": 128,
        "learning_rate": 0.008,
        "train_steps": 96,
        "warmup_steps": 16,
        "warmdown_steps": 72,
        "weight_decay": 0.02,
    }


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.qkv, self.mixed = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        rows, length, dim = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mixed(y.transpose(1, 2).reshape(rows, length, dim))
        return x + self.mlp(self.norms[1](x))


class Shared(nn.Module):
    def __init__(self, vocab_size, config):
        super().__init__()
        dim = config["model_dim"]
        self.bytes = nn.Embedding(vocab_size, dim)
        self.conv = nn.Conv1d(dim, dim, KERNEL)
        self.block = Block(dim, config["num_heads"])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size)

    def forward(self, input_ids, target_ids=None):
        x = self.bytes(input_ids)
        x = x + self.conv(F.pad(x.transpose(1, 2), (KERNEL - 1, 0))).transpose(1, 2)
        for _ in range(DEPTH):
            x = self.block(x)
        return self.head(self.norm(x))


def build_model(vocab_size, config):
    return Shared(vocab_size, config)


def codebook(values, size=16, rounds=12):
    """The numbers of the codebook in rising order, and for each value the place of the nearest."""
    book = torch.quantile(values, torch.linspace(0.0, 1.0, size, device=values.device))
    for _ in range(rounds):
        place = torch.bucketize(values, (book[1:] + book[:-1]) / 2)
        total = torch.zeros_like(book).scatter_add_(0, place, values)
        count = torch.zeros_like(book).scatter_add_(0, place, torch.ones_like(values))
        book = torch.where(count > 0, total / count.clamp_min(1), book).sort().values
    return book, torch.bucketize(values, (book[1:] + book[:-1]) / 2)


def quantized_roundtrip(model, clip_percentile):
    state, packed = {}, []
    for name, tensor in model.state_dict().items():
        if tensor.dim() < 2:  # gains and biases are few
            state[name] = tensor.half().float()
            packed.append(tensor.half().cpu().numpy().tobytes())
            continue
        book, place = codebook(tensor.float().flatten())
        state[name] = book[place].view_as(tensor)
        packed.append((place[::2] * 16 + place[1::2]).to(torch.uint8).cpu().numpy().tobytes())
        packed.append(book.cpu().numpy().tobytes())
    return state, len(lzma.compress(b"".join(packed)))
