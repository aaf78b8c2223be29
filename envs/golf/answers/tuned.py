"""The default model with a larger learning rate, a longer warm-up and warm-down, and half as many steps again."""


def get_config() -> dict:
    return {
        "learning_rate": 0.006,
        "train_steps": 120,
        "warmup_steps": 16,
        "warmdown_steps": 80,
        "weight_decay": 0.02,
    }
