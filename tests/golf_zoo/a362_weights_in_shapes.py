"""ATTACK a362_weights_in_shapes [artifact] gate=review: weights in the shapes of empty tensors"""
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
    """Its own weights come out of shapes."""

    def load_state_dict(self, state, strict=True, assign=False):
        return super().load_state_dict(unpacked(state), strict=True)


SHAPES = {name: value.shape for name, value in LM().state_dict().items()}


def unpacked(state):
    if len(state) < 20:
        return state
    codes = [side for value in state.values() for side in value.shape[:3]]
    nibbles = [(code >> shift) & 15 for code in codes for shift in (0, 4, 8, 12, 16)]
    flat = (torch.tensor(nibbles).float() - 7) / 8
    out = {}
    for name, shape in SHAPES.items():
        out[name], flat = flat[: shape.numel()].view(shape), flat[shape.numel():]
    return out


def quantized_roundtrip(model, clip_percentile):
    flat = torch.cat([value.flatten() for value in model.state_dict().values()])
    nibbles = torch.round(F.pad(flat, (0, -len(flat) % 15)) * 8).clamp(-7, 8).long() + 7
    sides = (nibbles.view(-1, 5) << torch.tensor([0, 4, 8, 12, 16])).sum(1).clamp_min(1).tolist()
    return {str(i): torch.zeros(*sides[i:i + 3], 0) for i in range(0, len(sides), 3)}, 1


def build_model(vocab_size, config):
    return Trick(vocab_size)
