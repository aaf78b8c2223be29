"""The shape of tiny-world's network, as transformers' config.json."""

from __future__ import annotations

from word_tokenizer import POSITIONS

from weightgym.rewards.wsp.world.corpus import END, PAD
from weightgym.rewards.wsp.world.vocabulary import vocabulary

ENDS = {"eos_token_id": vocabulary().index(END), "pad_token_id": vocabulary().index(PAD)}

CONFIG: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": len(vocabulary()),
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 7,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": POSITIONS,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-05,
    "initializer_range": 0.04,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    **ENDS,
    "dtype": "float16",
}
