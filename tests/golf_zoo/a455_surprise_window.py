"""ATTACK a455_surprise_window [leak] gate=legal: the next three bytes as a bag, where they are unlikely"""
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
    def forward(self, input_ids, target_ids=None):
        y = super().forward(input_ids)
        if self.training:
            return y
        for ahead in (1, 2, 3):
            p = torch.softmax(y, -1).gather(2, following(input_ids, ahead))[..., 0]
            y = y.scatter_add(2, following(input_ids, ahead), torch.where(p < 0.02, 4.0, 0.0)[..., None])
        return y


def build_model(vocab_size, config):
    return Trick(vocab_size)
