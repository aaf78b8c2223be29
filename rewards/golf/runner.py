"""What runs inside the sandbox: the phases ``train``, ``pack`` and ``serve`` of one ``solution.py``.

This file is the only one of Golf's in there: it imports the standard library and torch, never weightgym. Everything it
says is untrusted, because the solution shares its process. Each phase is a function of a sandbox's ``Port``.
Its first frame holds ``request`` (JSON) and tensors; a state's are named ``state:NAME``. It answers with frames; what
goes wrong is a frame with ``failed``, a code. The numbers of the default model, its training and its artifact are those
of the public harness (github.com/WecoAI/mini-pg), down to the order in which random numbers are drawn.
"""

from __future__ import annotations

import json
import math
import os
import struct
import sys
import types
import warnings
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY = 256
SEED = 1337  #: of the model's initial values, in every phase
BATCH_SEED = 10_000  #: plus the rank: of the rows that a step trains on
DTYPES = {
    "float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "int64": torch.int64, "int32": torch.int32, "int16": torch.int16, "int8": torch.int8, "uint8": torch.uint8,
    "bool": torch.bool,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Failed(Exception):
    """The phase can't go on. ``code`` is one of a few fixed words; ``error`` and ``line`` say what the solution raised
    and where: the name of an exception's class, a line of the file (0: none)."""

    def __init__(self, code: str, error: str = "", line: int = 0) -> None:
        super().__init__(code)
        self.code, self.error, self.line = code, error, line


def prepare() -> None:
    """What every phase would do anew: an optimiser's first step takes a second."""
    torch.set_num_threads(1)
    weight = nn.Parameter(torch.ones(4, 4))
    optimizer = torch.optim.AdamW([weight])
    for _ in range(2):
        mixed = F.scaled_dot_product_attention(weight[None], weight[None], weight[None], is_causal=True)
        torch.autograd.backward(mixed.sum())
        optimizer.step()


# --- tensors in frames -----------------------------------------------------------------------------------------------


def to_frame(port: Any, tensor: Tensor) -> Any:
    """A tensor on any device, of a dtype in ``DTYPES``."""
    flat = plain(tensor).reshape(-1)
    data = flat.view(torch.uint8).numpy().data if flat.numel() else b""
    return port.Tensor(_NAMES[tensor.dtype], tuple(tensor.shape), data)


def from_frame(item: Any) -> Tensor:
    """A tensor of its own memory."""
    dtype = DTYPES[item.dtype]
    flat = torch.frombuffer(bytearray(item.data), dtype=dtype) if len(item.data) else torch.empty(0, dtype=dtype)
    return flat.reshape(item.shape)


def plain(value: Tensor) -> Tensor:
    """The tensor itself, on the CPU: no subclass of the solution's, no graph."""
    return value.detach().as_subclass(Tensor).cpu().contiguous()


def mapped(data: memoryview) -> Tensor:
    """An input as uint8 [n], where it lies. To write into it ends the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.frombuffer(data, dtype=torch.uint8)


class RMSNorm(nn.Module):
    """Root-mean-square norm with a gain."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)


class Attention(nn.Module):
    """Causal self-attention of several heads."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, dim = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        out: Tensor = self.proj(mixed.transpose(1, 2).reshape(rows, length, dim))
        return out


class Block(nn.Module):
    """Attention and an MLP, each behind a norm and beside a residual path."""

    def __init__(self, dim: int, heads: int, mult: int, dropout: float) -> None:
        super().__init__()
        self.attn_norm, self.mlp_norm = RMSNorm(dim), RMSNorm(dim)
        self.attn = Attention(dim, heads, dropout)
        up, down = nn.Linear(dim, mult * dim, bias=False), nn.Linear(mult * dim, dim, bias=False)
        self.mlp = nn.Sequential(up, nn.GELU(approximate="tanh"), down)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attn(self.attn_norm(x)))
        out: Tensor = x + self.drop(self.mlp(self.mlp_norm(x)))
        return out


class ByteTransformer(nn.Module):
    """The default: learned positions, pre-norm blocks, a head tied to the embedding, initial values of std 0.02."""

    def __init__(self, vocab_size: int, config: dict[str, Any]) -> None:
        super().__init__()
        dim, length = config["model_dim"], config["seq_len"]
        shape = dim, config["num_heads"], config["mlp_mult"], config["dropout"]
        self.token_emb = nn.Embedding(vocab_size, dim)
        self.pos_emb = nn.Parameter(torch.zeros(1, length, dim))
        self.blocks = nn.ModuleList(Block(*shape) for _ in range(config["num_layers"]))
        self.norm = RMSNorm(dim)
        self.head = nn.Linear(dim, vocab_size, bias=False)
        self.head.weight = self.token_emb.weight
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)  # of the tied matrix twice: the second draw stays

    def forward(self, input_ids: Tensor, target_ids: Tensor | None = None) -> Tensor:
        x = self.token_emb(input_ids) + self.pos_emb[:, : input_ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.head(self.norm(x))
        return out


def int8_roundtrip(model: nn.Module, clip_percentile: float) -> tuple[dict[str, Tensor], int]:
    """The state as int8 with one scale a tensor and gives back, and the zlib bytes of the codes. Tied tensors once."""
    state: dict[str, Tensor] = {}
    packed: dict[tuple[Any, ...], bytes] = {}
    for name, tensor in model.state_dict().items():
        place = tensor.data_ptr(), tensor.shape, tensor.stride()
        kept = tensor.detach().cpu().contiguous()
        if not kept.is_floating_point() or not kept.numel():
            state[name] = kept
            packed[place] = kept.reshape(-1).view(torch.uint8).numpy().tobytes()
            continue
        values = kept.float()
        clip = _clip(values.abs().flatten(), clip_percentile)
        scale = clip / 127.0
        codes = torch.round(values.clamp(-clip, clip) / scale).clamp(-127, 127).to(torch.int8)
        state[name] = (codes.float() * scale).to(kept.dtype)
        packed[place] = struct.pack("<f", scale) + codes.numpy().tobytes()
    return state, len(zlib.compress(b"".join(packed.values()), 9))


def _clip(sizes: Tensor, percentile: float) -> float:
    if percentile >= 1.0 or sizes.numel() <= 16:
        clip = sizes.max()
    elif sizes.numel() <= 1 << 24:
        clip = torch.quantile(sizes, percentile)
    else:  # more than torch.quantile takes
        clip = sizes.kthvalue(1 + round(percentile * (sizes.numel() - 1))).values
    return float(clip) if clip > 0 else 1.0


def _guarded(code: str, call: Callable[[], Any]) -> Any:
    """What the solution's code gives back. Whatever it raises, ``SystemExit`` included, is ``Failed(code)``."""
    try:
        return call()
    except (Failed, MemoryError):
        raise
    except BaseException as error:
        line, trace = 0, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "solution.py":
                line = trace.tb_lineno or 0
            trace = trace.tb_next
        raise Failed(code, type(error).__name__, line) from None


def load_solution(port: Any) -> types.ModuleType:
    """The module ``solution`` out of the input ``source``."""
    source = bytes(port.inputs["source"])
    module = types.ModuleType("solution")
    module.__file__ = "solution.py"
    sys.modules["solution"] = module
    _guarded("source_raised", lambda: exec(compile(source, "solution.py", "exec"), module.__dict__))
    return module


def build(solution: types.ModuleType, config: dict[str, Any], device: torch.device) -> nn.Module:
    """The solution's model, or the default one, with the initial values of ``SEED``."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(SEED)
    model = None
    if (function := getattr(solution, "build_model", None)) is not None:
        model = _guarded("build_failed", lambda: function(vocab_size=VOCABULARY, config=dict(config)))
    if model is None:
        model = ByteTransformer(VOCABULARY, config)
    if not isinstance(model, nn.Module):
        raise Failed("no_module")
    moved: nn.Module = _guarded("build_failed", lambda: model.to(device))
    return moved


def state_tensors(state: Any, code: str) -> dict[str, Tensor]:
    """The state as plain contiguous tensors that a frame can carry."""
    if not isinstance(state, dict):
        raise Failed(code)
    tensors: dict[str, Tensor] = {}
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise Failed(code)
        tensor = _guarded(code, partial(plain, value))
        if tensor.dtype not in _NAMES or tensor.layout != torch.strided:
            raise Failed(code)
        tensors[name] = tensor
    return tensors


def parameters(model: nn.Module) -> int:
    """How many parameters the model has; tied ones count once."""
    return sum({p.data_ptr(): p.numel() for p in model.parameters()}.values())


# --- phases ----------------------------------------------------------------------------------------------------------


def rate(step: int, steps: int, warmup: int, warmdown: int) -> float:
    """What the learning rate of step 0, 1, … is multiplied by."""
    if step < warmup:
        return (step + 1) / warmup
    start = max(warmup, steps - warmdown)
    if step < start:
        return 1.0
    return 0.1 + 0.45 * (1.0 + math.cos(math.pi * (step - start + 1) / (steps - start)))


def train(port: Any) -> None:
    """Train on the input ``data`` and send ``param_count`` and the state.

    ``request``: ``config`` (the solution's), ``schedule`` (``steps``, ``batch_tokens``, ``warmup``, ``warmdown``),
    ``device``, ``threads``, ``ranks``. With several ranks, each is a process and trains on its share of the rows.
    """
    _phase(port, _train_phase)


def _train_phase(port: Any, request: dict[str, Any], _: dict[str, Tensor]) -> None:
    rank = _join_ranks(request) if request["ranks"] > 1 else 0
    device = torch.device(request["device"], rank) if request["device"] == "cuda" else torch.device("cpu")
    model = build(load_solution(port), request["config"], device)
    data = mapped(port.inputs["data"])
    _guarded("train_raised", lambda: _train(model, data, request, rank, device))
    if rank:
        os._exit(0)
    _send_state(port, _guarded("bad_state", model.state_dict), "bad_state", param_count=parameters(model))


def _join_ranks(request: dict[str, Any]) -> int:
    """Fork the other ranks, before anything of CUDA is touched, and bring all together; this process's rank."""
    where, rank = f"file://{os.getcwd()}/ranks-{os.getpid()}", 0
    for other in range(1, request["ranks"]):
        if os.fork() == 0:
            rank = other
            break
    backend = "nccl" if request["device"] == "cuda" else "gloo"
    torch.distributed.init_process_group(backend, where, world_size=request["ranks"], rank=rank)
    return rank


def _train(model: nn.Module, data: Tensor, request: dict[str, Any], rank: int, device: torch.device) -> None:
    config, schedule, ranks = request["config"], request["schedule"], request["ranks"]
    length, steps = config["seq_len"], schedule["steps"]
    rows = max(1, schedule["batch_tokens"] // (ranks * length))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config["learning_rate"], betas=(0.9, 0.95), weight_decay=config["weight_decay"]
    )
    draws = torch.Generator().manual_seed(BATCH_SEED + rank)
    offsets = torch.arange(length + 1)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = config["learning_rate"] * rate(step, steps, schedule["warmup"], schedule["warmdown"])
        starts = torch.randint(0, len(data) - length - 1, (rows,), generator=draws)
        block = data[starts[:, None] + offsets].to(device).long()
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = model(block[:, :-1].contiguous())
            loss = F.cross_entropy(logits.flatten(0, 1), block[:, 1:].flatten())
        torch.autograd.backward(loss)
        if ranks > 1:
            _average_gradients(model, ranks)
        if config["grad_clip"] > 0:
            nn.utils.clip_grad_norm_(model.parameters(), config["grad_clip"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def _average_gradients(model: nn.Module, ranks: int) -> None:
    for parameter in model.parameters():
        if parameter.requires_grad:  # one that this rank's rows don't reach still takes part
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            torch.distributed.all_reduce(parameter.grad)
            parameter.grad /= ranks


def pack(port: Any) -> None:
    """Make the artifact of the trained state; send ``claimed`` and the artifact's state."""
    _phase(port, _pack_phase)


def _pack_phase(port: Any, request: dict[str, Any], state: dict[str, Tensor]) -> None:
    solution, model = _restored(port, request, state)
    function, clip = getattr(solution, "quantized_roundtrip", None), request["config"]["q_clip_percentile"]
    result = None
    if function is not None:
        result = _guarded("pack_raised", lambda: function(model, clip))
    if result is None:
        result = _guarded("pack_raised", lambda: int8_roundtrip(model, clip))
    if not isinstance(result, tuple) or len(result) != 2:
        raise Failed("bad_artifact")
    packed, claimed = result
    if type(claimed) is not int or not 0 <= claimed < 1 << 40:
        raise Failed("bad_claim")
    _send_state(port, packed, "bad_artifact", claimed=claimed)


def _restored(port: Any, request: dict[str, Any], state: dict[str, Tensor]) -> tuple[types.ModuleType, nn.Module]:
    solution = load_solution(port)
    model = build(solution, request["config"], torch.device(request["device"]))
    _guarded("load_failed", lambda: model.load_state_dict(state, strict=True))
    return solution, model


def serve(port: Any) -> None:
    """Load the artifact's state and send ``param_count``; then answer each frame of ``rows`` with ``logits``.

    ``rows`` are uint8 [n, length], ``logits`` float32 [n, length, 256]. Ends with the frames.
    """
    _phase(port, _serve_phase)


def _serve_phase(port: Any, request: dict[str, Any], state: dict[str, Tensor]) -> None:
    device = torch.device(request["device"])
    _, model = _restored(port, request, state)
    _guarded("serve_raised", model.eval)
    torch.manual_seed(request["seed"])  # of this view: what is random differs from the other's
    port.send({"param_count": parameters(model)})
    while True:
        try:
            rows = from_frame(port.receive()["rows"]).to(device).long()
        except EOFError:
            return

        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = _guarded("serve_raised", lambda rows=rows: plain(model(rows)).float())  # type: ignore[misc]
        port.send({"logits": to_frame(port, logits)})


def _send_state(port: Any, state: Any, code: str, **numbers: int) -> None:
    tensors = state_tensors(state, code)
    frame = {**numbers, **{f"state:{name}": to_frame(port, tensor) for name, tensor in tensors.items()}}
    try:
        port.send(frame)
    except (ValueError, struct.error):  # a name that UTF-8 doesn't have, or of 64 KiB
        raise Failed(code) from None


def _phase(port: Any, work: Callable[[Any, dict[str, Any], dict[str, Tensor]], None]) -> None:
    """Do the work that the first frame asks for. Nothing of an exception but its class and line is told."""
    items = port.receive()
    request = json.loads(items.pop("request"))
    torch.set_num_threads(request["threads"])
    try:
        work(port, request, {name.removeprefix("state:"): from_frame(item) for name, item in items.items()})
    except Failed as failure:
        port.send({"failed": failure.code, "error": failure.error[:100], "line": failure.line})
