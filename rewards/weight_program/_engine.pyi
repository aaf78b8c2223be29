from typing_extensions import Buffer

def run(
    game: object,
    masks: Buffer,
    weights: Buffer,
    first: int,
    count: int,
    env_seed: int,
    action_seed: int,
    sticky: float,
    max_actions: int,
    threads: int,
    kernel: str | None,
    /,
) -> tuple[bytes, bytes]: ...
def record(
    game: object,
    masks: Buffer,
    weights: Buffer,
    episode: int,
    env_seed: int,
    action_seed: int,
    sticky: float,
    max_actions: int,
    kernel: str | None,
    /,
) -> tuple[bytes, bytes, bytes, bool, bytes, bytes]: ...
def trace(
    game: object, masks: Buffer, env_seed: int, actions: Buffer, sticky: float, /
) -> tuple[bytes, bytes, bytes, bool]: ...
def cumulative(weights: Buffer, rows: Buffer, kernel: str | None, /) -> bytes: ...
def rounded(exponential: bool, values: Buffer, kernel: str | None, /) -> bytes: ...
def sweep(exponential: bool, first: int, last: int, kernel: str | None, /) -> int: ...
def set_arithmetic(modes: bytes | None, /) -> bytes: ...
def kernels() -> list[str]: ...
def symbols() -> dict[str, int]: ...
def make_game(name: str, state_bytes: int, reset: int, step: int, observe: int, /) -> object: ...
