"""What test_distributed.py runs as two ranks: one dies or hangs between passes, or the main one fails."""

from __future__ import annotations

import os
import sys
import time
import traceback

import torch

from weightgym.trainers.distributed import World, end_process, join


def lose(world: World, how: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    world.shard(model, [model[0]])
    model(torch.ones(1, 8)).sum().backward()
    if how == "fails":
        world.from_main(lambda: bytes([256]))
    if not world.is_main:
        if how == "hangs":
            time.sleep(60)
        os._exit(3)
    model(torch.ones(1, 8)).sum().backward()


if __name__ == "__main__":
    torch.set_num_threads(1)
    try:
        with join(timeout=float(sys.argv[2])) as world:
            lose(world, sys.argv[1])
    except Exception:
        traceback.print_exc()
        end_process(1)
