"""HONEST h118_dataclass_moe [honest] gate=legal: a mixture of experts with a configuration class, and a test of its own under the main guard"""
from dataclasses import dataclass
from typing import Optional
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


@dataclass
class Config:
    dim: int = 64
    experts: int = 4


class Experts(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.router = nn.Linear(c.dim, c.experts)
        self.w = nn.Parameter(torch.randn(c.experts, c.dim, c.dim) * c.dim**-0.5)

    def forward(self, x):
        weight, index = self.router(x).softmax(-1).max(-1)
        return torch.einsum("btd,btde->bte", x, self.w[index]) * weight.unsqueeze(-1)


class Net(LM):
    def __init__(self, v: int, c: Config):
        super().__init__(v, c.dim)
        self.experts = Experts(c)

    def forward(self, input_ids: torch.Tensor, target_ids: Optional[torch.Tensor] = None) -> torch.Tensor:
        x = self.emb(input_ids)
        x = x + self.experts(x)
        h = F.pad(x.transpose(1, 2), (3, 0))
        return self.head(torch.tanh(self.conv(h)).transpose(1, 2))


def build_model(vocab_size: int, config: dict) -> nn.Module:
    net = Net(vocab_size, Config(experts=config["num_layers"]))
    for name, p in net.named_parameters():
        if p.dim() > 1:
            nn.init.orthogonal_(p) if p.dim() == 2 else nn.init.normal_(p, std=0.02)
    return net


if __name__ == "__main__":
    model = build_model(256, get_config())
    print(sum(p.numel() for p in model.parameters()), model(torch.zeros(1, 8, dtype=torch.long)).shape)
