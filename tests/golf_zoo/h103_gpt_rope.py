"""HONEST h103_gpt_rope [honest] gate=legal: a transformer with rotary positions, RMSNorm, SwiGLU and QK norm"""
import torch
import torch.nn.functional as F
from torch import nn


def get_config() -> dict:
    return {"model_dim": 128, "num_layers": 2, "num_heads": 4, "mlp_mult": 1, "seq_len": 128,
            "train_steps": 50, "train_batch_tokens": 32768, "learning_rate": 0.004,
            "warmup_steps": 5, "warmdown_steps": 20}


def rope(t, d, device):
    freq = 1.0 / (10000.0 ** (torch.arange(0, d, 2, device=device).float() / d))
    angle = torch.outer(torch.arange(t, device=device).float(), freq)
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Block(nn.Module):
    def __init__(self, d, heads, mult, dropout):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RMSNorm(d), RMSNorm(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d, bias=False)
        self.up = nn.Linear(d, 2 * mult * d, bias=False)
        self.down = nn.Linear(mult * d, d, bias=False)
        self.dropout = dropout

    def forward(self, x, cos, sin):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k = rotate(F.normalize(q, dim=-1), cos, sin), rotate(F.normalize(k, dim=-1), cos, sin)
        drop = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        gate, up = self.up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class GPT(nn.Module):
    def __init__(self, vocab_size, config):
        super().__init__()
        d = config["model_dim"]
        self.emb = nn.Embedding(vocab_size, d)
        self.blocks = nn.ModuleList(
            Block(d, config["num_heads"], config["mlp_mult"], config["dropout"]) for _ in range(config["num_layers"])
        )
        self.norm = RMSNorm(d)
        self.head = nn.Linear(d, vocab_size, bias=False)
        self.head.weight = self.emb.weight
        self.d_head = d // config["num_heads"]
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, input_ids, target_ids=None):
        x = self.emb(input_ids)
        cos, sin = rope(input_ids.shape[1], self.d_head, input_ids.device)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = self.head(self.norm(x))
        if target_ids is None:
            return logits
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), target_ids.view(-1))
        return logits, loss


def build_model(vocab_size, config):
    return GPT(vocab_size, config)
