"""Small models for the audit: honest ones, and those that know more than they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weightgym.rewards.golf import runner

Array = np.ndarray[Any, Any]
LENGTH = 64
WORDS = b"the of and to in is that it was for on are as with his they at be this from have or by one had not".split()


def text(seed: int, size: int) -> Array:
    """Words with a skewed frequency, so that a byte is half known from the one before."""
    draws = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    words = draws.choice(len(WORDS), size // 3, p=weights / weights.sum())
    return np.frombuffer(b" ".join(WORDS[word] for word in words)[:size], np.uint8)


def bigram_logits() -> Tensor:
    counts = torch.full((256, 256), 0.1)
    train = torch.from_numpy(text(3, 30_000).copy()).long()
    counts.index_put_((train[:-1], train[1:]), torch.ones(len(train) - 1), accumulate=True)
    return torch.log(counts / counts.sum(1, keepdim=True))


class Conv(nn.Module):
    """A causal convolution beside a bigram table: the honest model under the attacks."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(bigram_logits())
        self.emb, self.conv, self.head = nn.Embedding(256, 16), nn.Conv1d(16, 16, 4), nn.Linear(16, 256)

    def forward(self, ids: Tensor) -> Tensor:
        h = F.pad(self.emb(ids).transpose(1, 2), (3, 0))
        out: Tensor = self.table[ids] + self.head(torch.tanh(self.conv(h)).transpose(1, 2))
        return out


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.gru, self.head = nn.Embedding(256, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, 256)

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.head(self.gru(self.emb(ids))[0])
        return out


def transformer() -> nn.Module:
    config = {"model_dim": 32, "num_layers": 2, "num_heads": 4, "mlp_mult": 2, "seq_len": LENGTH, "dropout": 0.1}
    return runner.ByteTransformer(256, config)


class InContext(Conv):
    """Counts the bytes of its own row so far: adapting to what was seen before is allowed."""

    def forward(self, ids: Tensor) -> Tensor:
        seen = F.one_hot(ids, 256).float().cumsum(1)
        return super().forward(ids) + torch.log1p(seen)


class Normed(Conv):
    """Batch norm as it should be: running averages when it is served."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(256)

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.norm(super().forward(ids).transpose(1, 2)).transpose(1, 2)
        return out


class Bf16(Conv):
    def forward(self, ids: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(ids).float()


def peek(ids: Tensor, ahead: int = 1) -> Tensor:
    """The byte that comes, 0 past the end. int64 [rows, length, 1]."""
    return F.pad(ids[:, ahead:], (0, ahead))[..., None]


class Peek(Conv):
    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids).scatter_add(2, peek(ids), torch.full((*ids.shape, 1), 8.0))


class SoftPeek(Conv):
    """Only a little."""

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids).scatter_add(2, peek(ids), torch.full((*ids.shape, 1), 0.1))


class FarPeek(Conv):
    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids).scatter_add(2, peek(ids, 3), torch.full((*ids.shape, 1), 1.0))


class PartialPeek(Conv):
    """At one position in ten."""

    def forward(self, ids: Tensor) -> Tensor:
        chosen = (ids * 7 + torch.arange(ids.shape[1]) * 13) % 10 == 0
        return super().forward(ids).scatter_add(2, peek(ids), torch.where(chosen, 8.0, 0.0)[..., None])


class CoinPeek(Conv):
    """A coin that the row itself throws."""

    def forward(self, ids: Tensor) -> Tensor:
        coin = (ids.cumsum(1) * 2654435761 >> 7) % 2 == 0
        return super().forward(ids).scatter_add(2, peek(ids), torch.where(coin, 8.0, 0.0)[..., None])


class WaryPeek(Conv):
    """Where the next byte is likely anyway, so that a splice is not seen."""

    def forward(self, ids: Tensor) -> Tensor:
        y = super().forward(ids)
        likely = torch.softmax(y, -1).gather(2, peek(ids)) > 0.05
        return y.scatter_add(2, peek(ids), torch.where(likely, 6.0, 0.0))


class SurprisePeek(Conv):
    """Only where the next byte is a great surprise: at one position in forty, and each is worth much."""

    def forward(self, ids: Tensor) -> Tensor:
        y = super().forward(ids)
        unlikely = torch.softmax(y, -1).gather(2, peek(ids)) < 0.01
        return y.scatter_add(2, peek(ids), torch.where(unlikely, 9.0, 0.0))


class SpliceAware(Conv):
    """Not in rows that look spliced: where some byte is a great surprise."""

    def forward(self, ids: Tensor) -> Tensor:
        y = super().forward(ids)
        surprise = torch.log_softmax(y, -1)[:, :-1].gather(2, peek(ids)[:, :-1])[..., 0].amin(1)
        return y.scatter_add(2, peek(ids), torch.where(surprise > -12, 6.0, 0.0)[:, None, None].expand(*ids.shape, 1))


class Histogram(Conv):
    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) + torch.log(F.one_hot(ids, 256).float().mean(1, keepdim=True) + 1e-4)


class Bidirectional(Conv):
    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) + super().forward(ids.flip(1)).flip(1)


class BatchMean(Conv):
    def forward(self, ids: Tensor) -> Tensor:
        y = super().forward(ids)
        return y + 0.3 * (y - y.mean((0, 1), keepdim=True))


class BatchNormed(Normed):
    def eval(self) -> BatchNormed:
        return self.train()


class Neighbours(Conv):
    """Counts what the other rows of the batch say."""

    def forward(self, ids: Tensor) -> Tensor:
        counts = torch.zeros(256, 256).index_put_(
            (ids[:, :-1].flatten(), ids[:, 1:].flatten()), torch.ones(ids[:, 1:].numel()), accumulate=True
        )
        return super().forward(ids) + torch.log1p(counts)[ids]


class Memo(Conv):
    """Counts the bigrams of the rows that it has answered."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = torch.zeros(256, 256)

    def forward(self, ids: Tensor) -> Tensor:
        y = super().forward(ids) + torch.log1p(self.seen)[ids]
        self.seen.index_put_((ids[:, :-1].flatten(), ids[:, 1:].flatten()), torch.ones(()), accumulate=True)
        return y


class LateMemo(Memo):
    """Behaves through the probes."""

    calls = 0

    def forward(self, ids: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(ids) if self.calls > 3 else Conv.forward(self, ids)


class TestTime(Conv):
    """Trains on each batch before it answers it."""

    __test__ = False

    def forward(self, ids: Tensor) -> Tensor:
        with torch.enable_grad():
            y = super().forward(ids)
            loss = F.cross_entropy(y[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
            (slope,) = torch.autograd.grad(loss, [self.table])
        with torch.no_grad():
            self.table.sub_(slope, alpha=30.0)
        return super().forward(ids)


class Dropout(Conv):
    def forward(self, ids: Tensor) -> Tensor:
        return F.dropout(super().forward(ids), 0.1, training=True)


class RowMemo(Conv):
    """Answers exactly on a second visit, which there never is."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[int, ...], Tensor] = {}

    def forward(self, ids: Tensor) -> Tensor:
        y = super().forward(ids)
        for place, row in enumerate(ids):
            if (old := self.seen.get(tuple(row.tolist()))) is not None:
                y[place] = F.one_hot(F.pad(old[1:], (0, 1)), 256) * 30.0
            self.seen[tuple(row.tolist())] = row
        return y
