"""HONEST h106_conv_stack [honest] gate=legal: dilated causal convolutions, with checkpointing in training"""
from torch.utils.checkpoint import checkpoint
import torch
import torch.nn.functional as F
from torch import nn


def get_config() -> dict:
    return {"model_dim": 128, "num_layers": 2, "num_heads": 4, "mlp_mult": 1, "seq_len": 128,
            "train_steps": 50, "train_batch_tokens": 32768, "learning_rate": 0.004,
            "warmup_steps": 5, "warmdown_steps": 20}


class Causal(nn.Module):
    def __init__(self, d, k, dilation):
        super().__init__()
        self.left = (k - 1) * dilation
        self.conv = nn.Conv1d(d, 2 * d, k, dilation=dilation)

    def forward(self, x):
        a, b = self.conv(F.pad(x, (self.left, 0))).chunk(2, dim=1)
        return x + a * torch.sigmoid(b)


class Net(nn.Module):
    def __init__(self, v, d=64):
        super().__init__()
        self.emb = nn.Embedding(v, d)
        self.layers = nn.ModuleList(Causal(d, 3, 2**i) for i in range(5))
        self.head = nn.Linear(d, v)

    def forward(self, input_ids, target_ids=None):
        x = self.emb(input_ids).transpose(1, 2)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.training else layer(x)
        return self.head(x.transpose(1, 2))


def build_model(vocab_size, config):
    return Net(vocab_size)
