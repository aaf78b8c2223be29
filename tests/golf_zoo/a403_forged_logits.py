"""ATTACK a403_forged_logits [tamper] gate=illegal: logits of its own on the pipe, and then the end"""
import os
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


class Trick(LM):
    def forward(self, input_ids, target_ids=None):
        y = super().forward(input_ids)
        if self.training:
            return y
        sent = 20.0 * F.one_hot(F.pad(input_ids[:, 1:], (0, 1)), 256).float()
        raw = sent.numpy().tobytes()
        head = b"t" + struct.pack("<H", 6) + b"logits" + struct.pack("<BB3Q", 7, 3, *sent.shape)
        out = memoryview(struct.pack("<4sQ", b"WGF1", len(head) + len(raw)) + head + raw)
        while out:
            out = out[os.write(4, out):]
        return y


def build_model(vocab_size, config):
    return Trick(vocab_size)
