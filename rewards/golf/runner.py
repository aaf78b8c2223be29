"""What runs inside the sandbox: the phases ``train``, ``pack`` and ``serve`` of one ``solution.py``.

This file is the only one of ours in there: it imports the standard library and torch, never weightgym. Everything it
says is untrusted, because the solution shares its process. It talks in frames (``wire.py`` describes them) over two
binary file objects. The numbers of the default model, its training and its artifact are those of the public harness
(github.com/WecoAI/mini-pg), down to the order in which random numbers are drawn.
"""

from __future__ import annotations

import json
import math
import struct
import sys
import types
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MAGIC = b"WGF1"
VOCABULARY = 256
SEED = 1337  #: of the model's initial values, in every phase
BATCH_SEED = 10_000  #: plus the rank: of the rows that a step trains on
HEADER_LIMIT, BODY_LIMIT = 1 << 20, 1 << 31
DTYPES = {
    "float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "int64": torch.int64, "int32": torch.int32, "int16": torch.int16, "int8": torch.int8, "uint8": torch.uint8,
    "bool": torch.bool,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Failed(Exception):
    """The phase can't go on. ``code`` is one of a few fixed words; ``detail`` is for the author of the solution."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail


# --- frames ----------------------------------------------------------------------------------------------------------


def read_frame(reader: BinaryIO) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    """Kind, fields and tensors of the next frame. ``EOFError`` at the end, ``ValueError`` for one out of bounds."""
    magic, size = struct.unpack("<4sI", _exactly(reader, 8))
    if magic != MAGIC or size > HEADER_LIMIT:
        raise ValueError("not a frame")
    header = json.loads(bytes(_exactly(reader, size)))
    tensors: dict[str, Tensor] = {}
    left = BODY_LIMIT
    for name, dtype, shape in header["tensors"]:
        length = math.prod(shape) * DTYPES[dtype].itemsize
        left -= length
        if left < 0 or any(side < 0 for side in shape):
            raise ValueError("a frame out of bounds")
        body = _exactly(reader, length)
        flat = torch.frombuffer(body, dtype=DTYPES[dtype]) if length else torch.empty(0, dtype=DTYPES[dtype])
        tensors[name] = flat.reshape(shape)
    return header["kind"], header["fields"], tensors


def write_frame(writer: BinaryIO, kind: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Send one frame. Tensors are on any device, of a dtype in ``DTYPES``."""
    specs = [[name, _NAMES[tensor.dtype], list(tensor.shape)] for name, tensor in tensors.items()]
    header = json.dumps({"kind": kind, "fields": fields, "tensors": specs}, separators=(",", ":")).encode()
    writer.write(struct.pack("<4sI", MAGIC, len(header)) + header)
    for tensor in tensors.values():
        if tensor.numel():
            flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            writer.write(flat.numpy().data)
    writer.flush()


def _exactly(reader: BinaryIO, size: int) -> bytearray:
    block = bytearray(size)
    view, filled = memoryview(block), 0
    while filled < size:
        count = reader.readinto(view[filled:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        filled += count
    return block


# --- the default model -----------------------------------------------------------------------------------------------


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


# --- the default artifact --------------------------------------------------------------------------------------------


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


# --- the solution ----------------------------------------------------------------------------------------------------


def _guarded(code: str, call: Callable[[], Any]) -> Any:
    """What the solution's code gives back. Whatever it raises, ``SystemExit`` included, is ``Failed(code)``."""
    try:
        return call()
    except Failed:
        raise
    except BaseException as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise Failed(code, "".join(c if c.isprintable() else "?" for c in text)[:300]) from None


def load_solution(source: bytes) -> types.ModuleType:
    """The module ``solution`` out of its text."""
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
        raise Failed("build_failed", "build_model gave back something that is neither a torch.nn.Module nor None")
    moved: nn.Module = _guarded("build_failed", lambda: model.to(device))
    return moved


def _plain(value: Tensor) -> Tensor:
    return value.detach().cpu().as_subclass(Tensor).contiguous()


def state_tensors(state: Any, code: str) -> dict[str, Tensor]:
    """The state as plain contiguous tensors that a frame can carry."""
    if not isinstance(state, dict):
        raise Failed(code, "the state is not a dict")
    tensors: dict[str, Tensor] = {}
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise Failed(code, "the state holds something that is not a tensor under a text key")
        tensor = _guarded(code, partial(_plain, value))
        if tensor.dtype not in _NAMES or tensor.layout != torch.strided:
            raise Failed(code, f"the state holds a tensor of {tensor.dtype}: use one of {', '.join(DTYPES)}")
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


def train(request: dict[str, Any], tensors: dict[str, Tensor], data: Tensor | None = None) -> Any:
    """Train on ``data`` (uint8, or the frame's ``data``) and give back the frame ``state``.

    ``request``: ``config`` (the solution's), ``schedule`` (``steps``, ``batch_tokens``, ``warmup``, ``warmdown``),
    ``device``. Under an initialised process group every rank trains on its share of the rows.
    """
    config, schedule, device = request["config"], request["schedule"], torch.device(request["device"])
    data = tensors["data"] if data is None else data
    solution = load_solution(tensors["source"].numpy().tobytes())
    model = build(solution, config, device)
    _guarded("train_raised", lambda: _train(model, data, config, schedule, device))
    state = _guarded("bad_state", model.state_dict)
    return "state", {"param_count": parameters(model)}, state_tensors(state, "bad_state")


def _train(
    model: nn.Module, data: Tensor, config: dict[str, Any], schedule: dict[str, int], device: torch.device
) -> None:
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    rank, ranks = (torch.distributed.get_rank(), torch.distributed.get_world_size()) if distributed else (0, 1)
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


def pack(request: dict[str, Any], tensors: dict[str, Tensor]) -> Any:
    """Make the artifact of the trained state (tensors ``state:NAME``); gives back the frame ``artifact``."""
    config = request["config"]
    solution, model = _restored(request, tensors)
    function, clip = getattr(solution, "quantized_roundtrip", None), config["q_clip_percentile"]
    result = None
    if function is not None:
        result = _guarded("pack_raised", lambda: function(model, clip))
    if result is None:
        result = _guarded("pack_raised", lambda: int8_roundtrip(model, clip))
    if not isinstance(result, tuple) or len(result) != 2:
        raise Failed("bad_artifact", "quantized_roundtrip gives back (state_dict, artifact_bytes)")
    state, claimed = result
    if type(claimed) is not int or not 0 <= claimed < 1 << 40:
        raise Failed("bad_claim", "artifact_bytes is not a plain int of at least 0")
    return "artifact", {"claimed": claimed}, state_tensors(state, "bad_artifact")


def _restored(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[types.ModuleType, nn.Module]:
    solution = load_solution(tensors["source"].numpy().tobytes())
    model = build(solution, request["config"], torch.device(request["device"]))
    state = {name[6:]: tensor for name, tensor in tensors.items() if name.startswith("state:")}
    _guarded("load_failed", lambda: model.load_state_dict(state, strict=True))
    return solution, model


def serve(request: dict[str, Any], tensors: dict[str, Tensor], reader: BinaryIO, writer: BinaryIO) -> None:
    """Load the artifact's state (``state:NAME``), say ``ready``, then answer frames ``rows`` with ``logits``.

    ``rows`` holds uint8 ``rows`` [n, length]; ``logits`` holds float32 ``logits`` [n, length, 256]. Ends on ``end``.
    """
    device = torch.device(request["device"])
    _, model = _restored(request, tensors)
    _guarded("serve_raised", model.eval)
    torch.manual_seed(request["seed"])  # of this view: what is random differs from the other's
    write_frame(writer, "ready", {"param_count": parameters(model)}, {})
    while True:
        kind, _, batch = read_frame(reader)
        if kind == "end":
            return
        rows = batch["rows"].to(device).long()

        def answer(rows: Tensor = rows) -> Tensor:
            with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                return model(rows).detach().as_subclass(Tensor).float().cpu()  # type: ignore[no-any-return]

        write_frame(writer, "logits", {}, {"logits": _guarded("serve_raised", answer)})


def run(reader: BinaryIO, writer: BinaryIO, data: Tensor | None = None) -> None:
    """Do the one phase that the first frame asks for, with ``threads`` threads. What goes wrong is a frame ``failed``.

    ``data``: the training bytes, where they are not in the frame. An exception's text goes into ``detail``, but not
    from ``serve``: it could carry validation bytes.
    """
    try:
        kind, request, tensors = read_frame(reader)
        torch.set_num_threads(request["threads"])
        if kind == "serve":
            serve(request, tensors, reader, writer)
        else:
            answer = train(request, tensors, data) if kind == "train" else pack(request, tensors)
            write_frame(writer, *answer)
    except EOFError:
        return
    except Failed as failure:
        detail = {"detail": failure.detail} if kind != "serve" else {}
        write_frame(writer, "failed", {"code": failure.code, **detail}, {})
