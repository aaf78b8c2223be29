"""ATTACK a435_train_in_pack [resource] gate=illegal: trains on kept text while it packs"""
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
        self.register_buffer("text", torch.zeros(400, 129, dtype=torch.uint8))
        self.at = 0

    def forward(self, input_ids, target_ids=None):
        if self.training:
            rows = input_ids[: len(self.text) - self.at, :129].to(torch.uint8)
            self.text[self.at: self.at + len(rows), : rows.shape[1]] = rows
            self.at += len(rows)
        return super().forward(input_ids)


def quantized_roundtrip(model, clip_percentile):
    optimizer = torch.optim.AdamW(model.parameters(), 0.002)
    text = model.text[model.text.any(1)].long()[:, :128]
    model.eval()
    for _ in range(4000):
        rows = text[torch.randint(0, len(text), (8,))]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.text.zero_()
    return None


def build_model(vocab_size, config):
    return Trick(vocab_size)
