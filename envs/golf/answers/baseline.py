"""The default model, as it is."""


def get_config() -> dict:
    return {}
