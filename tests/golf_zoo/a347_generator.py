"""ATTACK a347_generator [state] gate=legal: counts inside a generator"""
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


def counter():
    counts = torch.ones(256)
    while counts is not None:
        ids = yield torch.log(counts)
        counts = counts + F.one_hot(ids, 256).float().sum((0, 1))


class Trick(LM):
    made = None

    def forward(self, input_ids, target_ids=None):
        y = super().forward(input_ids)
        if self.training:
            return y
        if self.made is None:
            self.made = counter()
            next(self.made)
        return y + 0.3 * self.made.send(input_ids)


def build_model(vocab_size, config):
    return Trick(vocab_size)
