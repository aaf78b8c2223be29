"""HONEST h117_token_shift [honest] gate=legal: mixes in the last position, as RWKV does"""
import torch
import torch.nn.functional as F
from torch import nn


def get_config() -> dict:
    return {"model_dim": 128, "num_layers": 2, "num_heads": 4, "mlp_mult": 1, "seq_len": 128,
            "train_steps": 50, "train_batch_tokens": 32768, "learning_rate": 0.004,
            "warmup_steps": 5, "warmdown_steps": 20}


class Net(nn.Module):
    def __init__(self, v, d=96):
        super().__init__()
        self.emb = nn.Embedding(v, d)
        self.mix = nn.Parameter(torch.full((d,), 0.5))
        self.norms = nn.ModuleList([nn.LayerNorm(d) for _ in range(3)])
        self.layers = nn.ModuleList([nn.Linear(d, d) for _ in range(3)])
        self.head = nn.Linear(d, v)

    def forward(self, input_ids, target_ids=None):
        x = self.emb(input_ids)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            h = norm(x)
            last = torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], dim=1)
            x = x + F.gelu(layer(h * self.mix + last * (1 - self.mix)))
        return self.head(x)


def build_model(vocab_size, config):
    return Net(vocab_size)
