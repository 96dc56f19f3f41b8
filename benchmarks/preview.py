"""What a preview costs, as ratios in one interleaved run: against ``cp -a`` of the same tree, and against a plain run.

    python benchmarks/preview.py [--files 20000] [--rounds 7]

The tree is 20,000 files of 10 kB in 1,000 folders. The previewed command changes two files and makes one. Medians; the
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
from functools import partial
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
PER_FOLDER, SIZE, BUDGET = 20, 10_000, 1 / 50
COMMAND = "echo more >> d000/e00/file_00.py; rm d000/e00/file_01.py; echo new > new"


def make_tree(root: Path, files: int, rng: random.Random) -> None:
    for start in range(0, files, PER_FOLDER):
        number = start // PER_FOLDER
        folder = root / f"d{number // 50:03}" / f"e{number % 50:02}"
        folder.mkdir(parents=True)
        for position in range(PER_FOLDER):
            (folder / f"file_{position:02}.py").write_bytes(rng.randbytes(SIZE))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--files", type=int, default=20_000)
    arguments.add_argument("--rounds", type=int, default=7)
    chosen = arguments.parse_args()
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="veil-bench-")))
    os.environ["VEIL_STATE_DIR"] = str(base / "state")
    import veil

    took: dict[str, list[float]] = {"cp -a": [], "preview": [], "apply": [], "run, effects off": []}

    def timed(name: str, work: Callable[[], T]) -> T:
        started = time.perf_counter()
        done = work()
        took[name].append(time.perf_counter() - started)
        return done

    try:
        root = base / "tree"
        make_tree(root, chosen.files, random.Random(1))
        os.sync()
        veil.run(COMMAND, cwd=root, preview=True)  # what is imported and found out once
        for _ in range(chosen.rounds):
            timed("cp -a", lambda: subprocess.run(["cp", "-a", root, base / "copy"], check=True))
            result = timed("preview", lambda: veil.run(COMMAND, cwd=root, preview=True))
            assert [change.path for change in result.files_changed] == [
                "d000/e00/file_00.py",
                "d000/e00/file_01.py",
                "new",
            ], result
            timed("apply", partial(veil.apply, result.id))
            (root / "new").unlink()
            (root / "d000/e00/file_01.py").write_bytes(b"x" * SIZE)
            timed("run, effects off", lambda: veil.run("true", cwd=root, effects=False))
            shutil.rmtree(base / "copy")
        method = result.preview_method
    finally:
        shutil.rmtree(base)
    medians = {name: statistics.median(values) for name, values in took.items()}
    for name, value in medians.items():
        print(f"{name:<18}{value * 1000:>10.1f} ms", end="")
        if name == "preview":
            print(f"  1/{medians['cp -a'] / value:.0f} of cp -a (budget 1/{1 / BUDGET:.0f}), by {method}", end="")
        print()


if __name__ == "__main__":
    main()
