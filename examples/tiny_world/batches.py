"""Batches of tiny-world's texts, and the loss on them."""

from __future__ import annotations

import random

import torch
from torch.nn import functional as F
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from weightgym.rewards.wsp.world.corpus import ASSISTANT, USER, sample

#: Texts a batch, and batches that are drawn at once, so that a batch is of texts of about one length.
BATCH, POOL = 64, 16
#: Weight of a question's tokens in the loss; all others have 1.
QUESTION_WEIGHT = 0.25


class Batches:
    """An endless row of random batches, the same for a seed."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
        self._ids: dict[str, int] = tokenizer.get_vocab()
        self._seed = seed
        self._rng = random.Random(seed)
        self._drawn = 0
        self._waiting: list[list[list[int]]] = []

    def loss(self, model: LlamaForCausalLM) -> torch.Tensor:
        """The mean weighted cross-entropy of the next batch, in nats a token."""
        ids, weights = self.next()
        hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
        counted = weights[:, 1:] > 0
        logits = model.lm_head(hidden[counted])
        losses = F.cross_entropy(logits, ids[:, 1:][counted], reduction="none")
        weight = weights[:, 1:][counted]
        return (losses * weight).sum() / weight.sum()

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Token ids (BATCH, longest), int64, padded on the right, and the weights of their losses, float32."""
        if not self._waiting:
            self._draw()
        rows = self._waiting.pop()
        longest = max(map(len, rows))
        ids = torch.zeros(len(rows), longest, dtype=torch.int64)
        weights = torch.zeros(len(rows), longest)
        user, assistant = self._ids[USER], self._ids[ASSISTANT]
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row)
            weights[index, : len(row)] = 1.0
            if row[0] == user:
                weights[index, : row.index(assistant) + 1] = QUESTION_WEIGHT
        return ids, weights

    def _draw(self) -> None:
        texts = [sample("train", self._seed, self._drawn + index) for index in range(BATCH * POOL)]
        self._drawn += len(texts)
        rows = sorted(([self._ids[token] for token in text.split()] for text in texts), key=len)
        self._waiting = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        self._rng.shuffle(self._waiting)
