"""HONEST h110_int8_per_row [honest] gate=legal: int8 with a scale per row, zlib"""
import zlib
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
    state, payload = {}, bytearray()
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point():
            state[name] = tensor
            payload += tensor.numpy().tobytes()
            continue
        flat = tensor.detach().float().reshape(tensor.shape[0], -1)
        scale = flat.abs().quantile(clip_percentile, dim=1, keepdim=True).clamp_min(1e-8) / 127
        q = torch.clamp(torch.round(flat / scale), -127, 127).to(torch.int8)
        state[name] = (q.float() * scale).view_as(tensor)
        payload += q.cpu().numpy().tobytes() + scale.half().cpu().numpy().tobytes()
    return state, len(zlib.compress(bytes(payload), level=9))


def build_model(vocab_size, config):
    return LM(vocab_size)
