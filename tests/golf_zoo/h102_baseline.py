"""HONEST h102_baseline [honest] gate=legal: nothing changed"""


def get_config():
    return {}
