"""ATTACK a380_text_in_the_state [data] gate=review: packs the training text with the weights, and looks rows up in it"""
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
    def __init__(self, v=256):
        super().__init__(v)
        self.register_buffer("text", torch.zeros(100_000, dtype=torch.uint8))
        self.register_buffer("size", torch.zeros((), dtype=torch.long))

    def forward(self, input_ids, target_ids=None):
        if self.training:
            flat = input_ids.flatten().to(torch.uint8)[: len(self.text) - int(self.size)]
            self.text[int(self.size): int(self.size) + len(flat)] = flat
            self.size += len(flat)
        return super().forward(input_ids)


def quantized_roundtrip(model, clip_percentile):
    return dict(model.state_dict()), 1000


def build_model(vocab_size, config):
    return Trick(vocab_size)
