"""What backends that work on tokens do around a request: its length is checked before, its tokens are read after."""

from __future__ import annotations

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.hf_tokenizer import HFChatTokenizer
from weightgym.rollouts.trajectory import FinishReason


def check_length(request: Request, sampling: Sampling, longest: int, policy: str) -> None:
    """Check that prompt and ``max_tokens`` fit an engine of vLLM, which would cut the answer silently.

    Raises:
        BackendError: they don't; the message has the request and the numbers.
    """
    have = len(request.token_ids)
    if have + sampling.max_tokens > longest:
        raise BackendError(
            f"{policy}: {request.id}: its prompt has {have} tokens; with max_tokens {sampling.max_tokens} that is more "
            f"than the {longest} that the engine takes: shorten one, or raise backend.max_model_len"
        )


def read_sample(
    request: Request, tokenizer: HFChatTokenizer, ids: tuple[int, ...], logprobs: tuple[float, ...], version: int
) -> Sample:
    """The sample that these tokens are.

    Raises:
        BackendError: there are none, or there is not one log-probability a token.
    """
    if not ids or len(ids) != len(logprobs):
        raise BackendError(f"{request.id}: the engine gave {len(ids)} tokens and {len(logprobs)} log-probabilities")
    ended = ids[-1] in tokenizer.end_ids
    finish: FinishReason = "stop" if ended else "length"
    return Sample(request.id, tokenizer.text(ids[:-1] if ended else ids), finish, ids, logprobs, version)
