"""Causal convolutions in place of attention: three residual layers that look ever further back, 64 bytes in all.

Near bytes matter most, and a convolution need not learn where they are. Padding on the left alone keeps it causal.
"""

import torch.nn.functional as F
from torch import nn

KERNEL, STRIDES = 4, (1, 4, 16)


def get_config() -> dict:
    return {
        "model_dim": 128,
        "seq_len": 256,
        "learning_rate": 0.006,
        "train_steps": 440,
        "warmup_steps": 32,
        "warmdown_steps": 360,
        "weight_decay": 0.02,
    }


class Layer(nn.Module):
    def __init__(self, dim, stride):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.before = stride * (KERNEL - 1)
        self.conv, self.out = nn.Conv1d(dim, dim, KERNEL, dilation=stride), nn.Linear(dim, dim)

    def forward(self, x):
        y = F.pad(self.norm(x).transpose(1, 2), (self.before, 0))
        return x + self.out(F.gelu(self.conv(y).transpose(1, 2)))


class Convolutions(nn.Module):
    def __init__(self, vocab_size, config):
        super().__init__()
        dim = config["model_dim"]
        self.bytes = nn.Embedding(vocab_size, dim)
        self.layers = nn.Sequential(*(Layer(dim, stride) for stride in STRIDES))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size)

    def forward(self, input_ids, target_ids=None):
        return self.head(self.norm(self.layers(self.bytes(input_ids))))


def build_model(vocab_size, config):
    return Convolutions(vocab_size, config)
