"""``weightgym score`` on many rows of one game: rows a second, and memory as it goes; then again, out of the cache.

    python benchmarks/score_file.py --rows 100000 --profile wpb-v1-e8

Memory is that of the command's own process (resident, without its workers) when a tenth of the rows and when all are
done. Both runs write the same file, but for seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

MIB = 1 << 20


def write_rows(path: Path, count: int, task: str) -> None:
    """Answers that differ from each other, some of them invalid."""
    draw = random.Random(0)
    with path.open("w") as file:
        for number in range(count):
            lines = [f"b3[{draw.randrange(6)}] = {draw.uniform(-1, 1):.6f}" for _ in range(20)]
            lines.append(f"b1[{number % 32}] = {number}e-6" if number % 10 else "b9 = oops")
            answer = f"Row {number}.\n```edits\n" + "\n".join(lines) + "\n```\n"
            file.write(json.dumps({"env": "weight-program", "task": task, "completion": answer}) + "\n")


def resident(pid: int) -> int:
    """Bytes of a process in memory; 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * 4096


def run(source: Path, out: Path, cache: Path, rows: int, profile: str, workers: int) -> tuple[float, int, int]:
    """Seconds, and the resident bytes at a tenth of the rows and at most."""
    code = "from weightgym.cli.main import main; main()"
    command = [sys.executable, "-c", code, "score", str(source), "-o", str(out), "--cache", str(cache)]
    command += ["--profile", profile, "--workers", str(workers)]
    started = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    told: list[str] = []
    assert process.stderr is not None
    reader = threading.Thread(target=lambda: told.extend(process.stderr or []))
    reader.start()
    row_bytes, early, most = source.stat().st_size / rows, 0, 0
    while process.poll() is None:
        now = resident(process.pid)
        most = max(most, now)
        done = out.stat().st_size / (row_bytes + 400) if out.exists() else 0
        if not early and done > rows / 10:
            early = now
        time.sleep(0.02)
    seconds = time.monotonic() - started
    reader.join()
    if process.returncode:
        raise SystemExit("".join(told))
    print("  " + told[-1].strip())
    return seconds, early or most, most


def main() -> None:
    """Run it twice."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--task", default="builtin/deep_drill")
    options.add_argument("--profile", default="wpb-v1-e8")
    options.add_argument("--workers", type=int, default=2)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "rows.jsonl"
        write_rows(source, chosen.rows, chosen.task)
        print(f"{chosen.rows} rows of {chosen.task} under {chosen.profile}, {source.stat().st_size / MIB:.0f} MiB")
        for what in ("scored", "from the cache"):
            out = folder / f"{what.split()[-1]}.jsonl"
            seconds, early, most = run(source, out, folder / "cache", chosen.rows, chosen.profile, chosen.workers)
            print(
                f"{what:>15}: {seconds:.1f} s, {chosen.rows / seconds:.0f} rows/s; "
                f"{early / MIB:.0f} MiB at a tenth, {most / MIB:.0f} MiB at most"
            )


if __name__ == "__main__":
    main()
