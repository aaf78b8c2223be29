"""HONEST h108_counts_in_training [honest] gate=legal: bigram counts, collected while it trains"""
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


class Net(LM):
    def __init__(self, v):
        super().__init__(v)
        self.register_buffer("counts", torch.zeros(v, v))

    def forward(self, input_ids, target_ids=None):
        if self.training:
            with torch.no_grad():
                prev, nxt = input_ids[:, :-1].flatten(), input_ids[:, 1:].flatten()
                self.counts.index_put_((prev, nxt), torch.ones_like(prev, dtype=self.counts.dtype), accumulate=True)
        prior = torch.log((self.counts + 0.1) / (self.counts + 0.1).sum(-1, keepdim=True))
        return super().forward(input_ids) + prior[input_ids]


def build_model(vocab_size, config):
    return Net(vocab_size)
