"""ATTACK a361_weights_in_many_names [artifact] gate=review: weights in the names of thousands of empty tensors"""
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


class Trick(LM):
    """Its own weights come out of names."""

    def load_state_dict(self, state, strict=True, assign=False):
        return super().load_state_dict(unpacked(state), strict=True)


SHAPES = {name: value.shape for name, value in LM().state_dict().items()}


def unpacked(state):
    if len(state) < 20:
        return state
    raw = bytes.fromhex("".join(name.split(":")[1] for name in state))
    flat = torch.frombuffer(bytearray(raw), dtype=torch.float16).float()
    out = {}
    for name, shape in SHAPES.items():
        out[name], flat = flat[: shape.numel()].view(shape), flat[shape.numel():]
    return out


def quantized_roundtrip(model, clip_percentile):
    flat = torch.cat([value.flatten() for value in model.state_dict().values()]).half()
    text = flat.view(torch.uint8).numpy().tobytes().hex()
    return {f"{i}:" + text[i:i + 2000]: torch.zeros(0) for i in range(0, len(text), 2000)}, 1


def build_model(vocab_size, config):
    return Trick(vocab_size)
