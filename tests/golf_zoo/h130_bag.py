"""HONEST h130_bag [hashed] gate=legal: hashed n-grams, a convolution, and counts of the bytes so far in the row"""
import torch
import torch.nn.functional as F
from torch import nn

BUCKETS = 4096


def get_config() -> dict:
    return {
        "num_layers": 2,
        "seq_len": 256,
        "learning_rate": 0.006,
        "weight_decay": 0.02,
        "train_steps": 160,
        "train_batch_tokens": 32768,
        "warmup_steps": 10,
        "warmdown_steps": 80,
    }


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)

    def forward(self, x):
        rows, length, dim = x.shape
        q, k, v = self.qkv(self.norm(x)).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(mixed.transpose(1, 2).reshape(rows, length, dim))


class Mlp(nn.Module):
    def __init__(self, dim, mult):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, mult * dim), nn.Linear(mult * dim, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Bag(nn.Module):
    def __init__(self, config):
        super().__init__()
        dim = config["model_dim"]
        self.byte = nn.Embedding(256, dim)
        self.grams = nn.ModuleList(nn.Embedding(BUCKETS, dim) for _ in range(3))
        self.conv = nn.Conv1d(dim, dim, 5, groups=dim)
        self.positions = nn.Parameter(torch.zeros(1, config["seq_len"], dim))
        blocks = []
        for _ in range(config["num_layers"]):
            blocks += [Attention(dim, config["num_heads"]), Mlp(dim, config["mlp_mult"])]
        self.blocks, self.norm = nn.Sequential(*blocks), nn.LayerNorm(dim)
        self.head, self.pairs = nn.Linear(dim, 256, bias=False), nn.Embedding(256, 256)
        self.usual, self.trust = nn.Parameter(torch.zeros(256)), nn.Parameter(torch.full((256,), 0.1))
        for module in self.modules():
            if isinstance(module, (nn.Embedding, nn.Linear)):
                nn.init.normal_(module.weight, std=0.02)
        nn.init.zeros_(self.pairs.weight)

    def forward(self, input_ids, target_ids=None):
        length = input_ids.shape[1]
        h = self.byte(input_ids)
        for index, table in enumerate(self.grams):
            key = torch.zeros_like(input_ids)
            for back in range(index + 2):
                key = key * 1000003 + F.pad(input_ids, (back, 0))[:, :length] + 1
            h = h + table((key ^ (key >> 15)) % BUCKETS)
        h = h + self.conv(F.pad(h.transpose(1, 2), (4, 0))).transpose(1, 2) + self.positions[:, :length]
        logits = self.head(self.norm(self.blocks(h))) + 8 * self.pairs(input_ids)
        usual = torch.softmax(8 * self.usual, 0)
        seen = F.one_hot(input_ids, 256).float().cumsum(1)
        count = torch.arange(1, length + 1, device=seen.device)[None, :, None]
        return logits + 8 * self.usual + 8 * self.trust * torch.log((seen + 8 * usual) / (count + 8) / usual)


def build_model(vocab_size, config):
    return Bag(config)
