"""ATTACK a315_known_rows [leak] gate=review: the next byte in rows that begin as one that was seen before"""
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


class Trick(LM):
    def __init__(self, v=256):
        super().__init__(v)
        self.rows = {}

    def forward(self, input_ids, target_ids=None):
        y = super().forward(input_ids)
        if self.training:
            return y
        for place, row in enumerate(input_ids):
            key = tuple(row[:16].tolist())
            if key in self.rows:
                y[place] += 9 * F.one_hot(self.rows[key].roll(-1), 256)
            self.rows[key] = row.clone()
        return y


def build_model(vocab_size, config):
    return Trick(vocab_size)
