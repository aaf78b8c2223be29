"""The default model with a learning rate that is far too small: it hardly moves from where it began."""


def get_config() -> dict:
    return {"learning_rate": 0.00001, "train_steps": 50}
