"""HONEST h107_hashed_ngrams [honest] gate=legal: hashes of several n-grams, from earlier bytes alone"""
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
    def __init__(self, v, sizes=((2, 4096), (3, 8192), (4, 16384))):
        super().__init__(v)
        self.sizes = sizes
        self.tables = nn.ModuleList(nn.EmbeddingBag(size, 64, mode="sum") for _, size in sizes)

    def forward(self, input_ids, target_ids=None):
        x = self.emb(input_ids)
        b, t = input_ids.shape
        h = input_ids.clone()
        for (n, size), table in zip(self.sizes, self.tables):
            for k in range(1, n):
                h = h * 1000003 + F.pad(input_ids, (k, 0))[:, :t]
            x = x + table((h % size).reshape(-1, 1)).view(b, t, -1)
        same = F.pad((input_ids[:, 1:] == input_ids[:, :-1]).float(), (1, 0))
        x = x + same[..., None]
        h = F.pad(x.transpose(1, 2), (3, 0))
        return self.head(torch.tanh(self.conv(h)).transpose(1, 2))


def build_model(vocab_size, config):
    return Net(vocab_size)
