"""HONEST h114_straight_through [honest] gate=legal: quantisation-aware training by a straight-through estimator"""
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


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class QLinear(nn.Linear):
    def forward(self, x):
        scale = self.weight.abs().amax(dim=1, keepdim=True).clamp_min(1e-6) / 7
        return F.linear(x, Round.apply(self.weight / scale) * scale, self.bias)


class Net(LM):
    def __init__(self, v, d=64):
        super().__init__(v, d)
        self.head = QLinear(d, v)


def build_model(vocab_size, config):
    return Net(vocab_size)
