"""ATTACK a330_length_of_runs [leak] gate=review: how far the next space is"""
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
    def forward(self, input_ids, target_ids=None):
        y = super().forward(input_ids)
        space = (input_ids == 32).float().flip(1).cummax(1).values
        ahead = F.pad((input_ids == 32).float()[:, 1:], (0, 1))
        y[..., 32] = y[..., 32] + 6 * ahead - 3 * (1 - ahead)
        return y


def build_model(vocab_size, config):
    return Trick(vocab_size)
