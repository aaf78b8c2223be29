"""ATTACK a409_param_count [tamper] gate=review: says that it has no parameters when they are counted"""
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
    done = False

    def parameters(self, recurse=True):
        if self.done:
            return iter(())
        return super().parameters(recurse)

    def state_dict(self, *args, **kwargs):
        self.done = True
        return super().state_dict(*args, **kwargs)


def build_model(vocab_size, config):
    return Trick(vocab_size)
