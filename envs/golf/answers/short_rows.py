"""The default model in another shape: with rows of 128 bytes, two layers and a width of 128 a byte costs a quarter, so
that many more steps fit into the budget. A small model wants a large learning rate."""


def get_config() -> dict:
    return {
        "model_dim": 128,
        "num_layers": 2,
        "seq_len": 128,
        "learning_rate": 0.01,
        "train_steps": 320,
        "warmup_steps": 32,
        "warmdown_steps": 240,
        "weight_decay": 0.02,
    }
