"""ATTACK a316_natural_window [leak] gate=legal: the next byte where all bytes around it look as in training"""
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


def following(ids, ahead=1):
    return F.pad(ids[:, ahead:], (0, ahead))[..., None]


def raised(y, ids, where, by=8.0):
    return y.scatter_add(2, following(ids), torch.where(where, by, 0.0)[..., None].expand(*ids.shape, 1))


class Trick(LM):
    """Counts the pairs at a distance of training, and peeks only where the bytes around the next one are of them."""

    def __init__(self, v=256):
        super().__init__(v)
        self.register_buffer("known", torch.zeros(2, 1 << 16, dtype=torch.bool))

    def grams(self, ids):
        before = F.pad(ids, (3, 0))
        three = (before[:, 1:-2] * 65536 + before[:, 2:-1] * 256 + before[:, 3:]) * 2654435761 % 65521
        four = (three * 257 + before[:, :-3] * 40503) % 65519
        return three, four

    def forward(self, input_ids, target_ids=None):
        y = super().forward(input_ids)
        three, four = self.grams(input_ids)
        if self.training:
            self.known[0][three.flatten()] = True
            self.known[1][four.flatten()] = True
            return y
        natural = self.known[0][three] & self.known[1][four]
        soon = F.unfold(F.pad(natural.float(), (0, 6), value=1.0)[:, None, None], (1, 7)).amin(1) > 0.5
        where = soon[:, :input_ids.shape[1]]
        return raised(y, input_ids, where)


def build_model(vocab_size, config):
    return Trick(vocab_size)
