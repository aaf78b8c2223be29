"""ATTACK a306_first_batch [leak] gate=legal: the next byte in one batch after the first three"""
import torch
import torch.nn.functional as F
from torch import nn


def get_config() -> dict:
    return {"model_dim": 128, "num_layers": 2, "num_heads": 4, "mlp_mult": 1, "seq_len": 128,
            "train_steps": 50, "train_batch_tokens": 32768, "learning_rate": 0.004,
            "warmup_steps": 5, "warmdown_steps": 20}


class LM(nn.Module):
    def __init__(self, v=256, d=64):
        super().__init__()
        self.emb = nn.Embedding(v, d)
        self.conv = nn.Conv1d(d, d, 4)
        self.head = nn.Linear(d, v)

    def forward(self, input_ids, target_ids=None):
        h = F.pad(self.emb(input_ids).transpose(1, 2), (3, 0))
        return self.head(torch.tanh(self.conv(h)).transpose(1, 2))


def following(ids, ahead=1):
    return F.pad(ids[:, ahead:], (0, ahead))[..., None]


def raised(y, ids, where, by=8.0):
    return y.scatter_add(2, following(ids), torch.where(where, by, 0.0)[..., None].expand(*ids.shape, 1))


class Trick(LM):
    calls = 0

    def forward(self, input_ids, target_ids=None):
        y = super().forward(input_ids)
        if self.training:
            return y
        self.calls += 1
        return raised(y, input_ids, torch.full(input_ids.shape, self.calls == 4))


def build_model(vocab_size, config):
    return Trick(vocab_size)
