"""HONEST h111_codebook [honest] gate=legal: a codebook of 16 values per tensor by k-means, packed in nibbles"""
import lzma
import struct
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


def kmeans(x, k=16, rounds=10):
    centers = torch.quantile(x[:100000], torch.linspace(0, 1, k))
    for _ in range(rounds):
        index = torch.bucketize(x, (centers[1:] + centers[:-1]) / 2)
        total = torch.zeros(k).scatter_add_(0, index, x)
        count = torch.zeros(k).scatter_add_(0, index, torch.ones_like(x))
        centers = torch.where(count > 0, total / count.clamp_min(1), centers).sort().values
    return centers, torch.bucketize(x, (centers[1:] + centers[:-1]) / 2)


def quantized_roundtrip(model, clip_percentile):
    state, parts = {}, []
    for name, tensor in sorted(model.state_dict().items()):
        centers, index = kmeans(tensor.detach().float().flatten())
        state[name] = centers[index].view_as(tensor)
        if index.numel() % 2:
            index = F.pad(index, (0, 1))
        packed = (index[::2] * 16 + index[1::2]).to(torch.uint8)
        parts.append(struct.pack("<16f", *centers.tolist()) + bytes(packed.tolist()))
    return state, len(lzma.compress(b"".join(parts), preset=9))


def build_model(vocab_size, config):
    return LM(vocab_size)
