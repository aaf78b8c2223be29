"""HONEST h112_dedup_shared [honest] gate=legal: shared tensors are stored once"""
import bz2
import io
from collections import OrderedDict
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
        self.head.weight = self.emb.weight


def quantized_roundtrip(model, clip_percentile):
    seen, payload, state = {}, io.BytesIO(), OrderedDict()
    for name, tensor in model.state_dict(keep_vars=True).items():
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if key not in seen:
            seen[key] = tensor.detach().half()
            payload.write(seen[key].numpy().tobytes())
        state[name] = seen[key].to(tensor.dtype)
    artifact_bytes = len(bz2.compress(payload.getvalue()))
    return state, artifact_bytes


def build_model(vocab_size, config):
    return Net(vocab_size)
