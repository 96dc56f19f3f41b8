"""What checkpoints cost, as ratios in one interleaved run: against ``cp -a`` and ``git status`` on the same tree.

    python benchmarks/checkpoints.py [--files 20000] [--rounds 5]

The tree is 20,000 files of 10 kB in 1,000 folders, tracked by a git repository that lies beside it. Medians; the
milliseconds are this machine's. Everything is made in one temporary folder and taken away again.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from veil.snapshots import Checkpoints

PER_FOLDER, SIZE, CHANGED = 20, 10_000, 50
GIT = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0"]
BUDGETS = {"first": ("cp -a", 1.2), "again": ("git status", 3.0), "restore": ("git status", 5.0)}


def make_tree(root: Path, files: int, rng: random.Random) -> list[Path]:
    made = []
    for start in range(0, files, PER_FOLDER):
        number = start // PER_FOLDER
        folder = root / f"d{number // 50:03}" / f"e{number % 50:02}"
        folder.mkdir(parents=True)
        for position in range(PER_FOLDER):
            made.append(folder / f"file_{position:02}.py")
            made[-1].write_bytes(rng.randbytes(SIZE))
    return made


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def status(root: Path) -> None:
    done = subprocess.run([*GIT, "status", "--porcelain"], cwd=root, check=True, capture_output=True)
    assert done.stdout == b"", done.stdout[:200]


def first_ones(base: Path, root: Path, rounds: int, took: dict[str, list[float]]) -> None:
    """A first checkpoint and a copy of the work tree, in turns, each into the same file system."""
    for number in range(rounds):
        kept = Checkpoints(base / f"state{number}")
        pair: list[tuple[str, Callable[[], object]]] = [
            ("cp -a", lambda: subprocess.run(["cp", "-a", root, base / "copy"], check=True)),
            ("first", lambda kept=kept: kept.take(root)),  # type: ignore[misc]
        ]
        for name, work in pair if number % 2 else reversed(pair):
            took[name].append(timed(work))
        shutil.rmtree(base / "copy")
        shutil.rmtree(base / f"state{number}")


def later_ones(base: Path, root: Path, files: list[Path], rounds: int, took: dict[str, list[float]]) -> None:
    kept = Checkpoints(base / "state")
    kept.take(root, "start")
    rng = random.Random(2)
    for _ in range(rounds):
        took["again"].append(timed(lambda: kept.take(root)))
        took["git status"].append(timed(lambda: status(root)))
        for file in rng.sample(files, CHANGED):
            file.write_bytes(rng.randbytes(SIZE))
        took["restore"].append(timed(lambda: kept.restore(root, "start")))
        subprocess.run([*GIT, "update-index", "-q", "--refresh"], cwd=root, check=True)
        took["git status"].append(timed(lambda: status(root)))
        kept.take(root)  # the index of git was written: not what is measured next
        time.sleep(0.1)
    assert kept.diff(root) == []


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--files", type=int, default=20_000)
    arguments.add_argument("--rounds", type=int, default=5)
    chosen = arguments.parse_args()
    base = Path(tempfile.mkdtemp(prefix="veil-bench-"))
    took: dict[str, list[float]] = {name: [] for name in ("cp -a", "first", "git status", "again", "restore")}
    try:
        root = base / "tree"
        files = make_tree(root, chosen.files, random.Random(1))
        for words in (
            ["init", "-q", f"--separate-git-dir={base / 'repository'}"],
            ["add", "."],
            ["commit", "-q", "-m", "all"],
            ["status"],
        ):
            subprocess.run([*GIT, *words], cwd=root, check=True, capture_output=True)
        os.sync()
        first_ones(base, root, chosen.rounds, took)
        later_ones(base, root, files, 2 * chosen.rounds, took)
    finally:
        shutil.rmtree(base)
    for name, values in took.items():
        print(f"{name:<12}{statistics.median(values) * 1000:>10.0f} ms", end="")
        if name in BUDGETS:
            other, budget = BUDGETS[name]
            ratio = statistics.median(values) / statistics.median(took[other])
            print(f"  {ratio:.2f} x {other} (budget {budget:g})", end="")
        print()


if __name__ == "__main__":
    main()
