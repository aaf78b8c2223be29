"""ATTACK a450_more_steps [compute] gate=illegal: replaces the loop of the runner by one with more steps"""
import sys
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
    pass


runner = sys.modules.get("runner")
plain_train = runner._train


def longer(model, data, request, *rest):
    request = {**request, "schedule": {**request["schedule"], "steps": 8 * request["schedule"]["steps"]}}
    return plain_train(model, data, request, *rest)


runner._train = longer


def build_model(vocab_size, config):
    return Trick(vocab_size)
