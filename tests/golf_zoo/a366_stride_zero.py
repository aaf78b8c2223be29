"""ATTACK a366_stride_zero [artifact] gate=review: expanded and overlapping tensors"""
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


def quantized_roundtrip(model, clip_percentile):
    state = dict(model.state_dict())
    flat = torch.cat([value.flatten() for value in state.values()])
    state["conv.weight"] = flat.as_strided((64, 64, 4), (4, 16, 1))
    state["head.bias"] = flat[:1].expand(256)
    return state, 1


class Trick(LM):
    pass


def build_model(vocab_size, config):
    return Trick(vocab_size)
