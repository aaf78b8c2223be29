"""HONEST h122_copy_heads [honest] gate=review: an induction-like copy of what followed the same byte before"""
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
    def __init__(self, v, d=64):
        super().__init__(v, d)
        self.copy = nn.Parameter(torch.tensor(1.0))

    def forward(self, input_ids, target_ids=None):
        t = input_ids.shape[1]
        logits = super().forward(input_ids)
        match = (input_ids[:, :, None] == input_ids[:, None, :]).float()
        before = torch.tril(torch.ones(t, t, device=input_ids.device), diagonal=-1)
        weight = match * before
        follow = F.one_hot(input_ids[:, 1:], 256).float()
        votes = weight[:, :, :-1] @ follow
        return logits + self.copy * torch.log1p(votes)


def build_model(vocab_size, config):
    return Net(vocab_size)
