"""HONEST h105_linear_recurrence [honest] gate=legal: a gated linear recurrence by cumulative sums"""
import torch
import torch.nn.functional as F
from torch import nn


def get_config() -> dict:
    return {"model_dim": 128, "num_layers": 2, "num_heads": 4, "mlp_mult": 1, "seq_len": 128,
            "train_steps": 50, "train_batch_tokens": 32768, "learning_rate": 0.004,
            "warmup_steps": 5, "warmdown_steps": 20}


class Mix(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gate, self.value = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x):
        a = F.logsigmoid(self.gate(x)).cumsum(1)
        h = torch.exp(a.clamp(min=-20)) * torch.cumsum(self.value(x) * torch.exp(-a.clamp(min=-20)), 1)
        return F.rms_norm(h, h.shape[-1:])


class Net(nn.Module):
    def __init__(self, v, d=64, depth=3):
        super().__init__()
        self.emb = nn.Embedding(v, d)
        for i in range(depth):
            setattr(self, f"mix{i}", Mix(d))
        self.depth = depth
        self.head = nn.Linear(d, v)

    def forward(self, input_ids, target_ids=None):
        x = self.emb(input_ids)
        for i in range(self.depth):
            x = x + getattr(self, f"mix{i}")(x)
        return self.head(x)


def build_model(vocab_size, config):
    return Net(vocab_size)
