"""How long veil takes to start, as whole processes: ``python benchmarks/startup.py [rounds]``.

Each round starts every program once, in an order that changes, so that a slow moment of the machine hits all of them.
Told are medians, and ratios to a Python that imports what any such tool needs.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
REFERENCE = "python -c 'import subprocess, sqlite3, json'"
PROGRAMS = {
    REFERENCE: ("-c", "import subprocess, sqlite3, json"),
    "python -c 'import veil'": ("-c", "import veil"),
    # what the installed script does
    "veil --version": ("-c", "import sys; from veil.cli import main; sys.exit(main(['--version']))"),
    "veil run true": ("-m", "veil", "run", "true"),
    "veil run --no-contain true": ("-m", "veil", "run", "--no-contain", "true"),
}
#: The most that a start may cost, as a multiple of the reference.
TARGETS = {"python -c 'import veil'": 2.5, "veil --version": 4.0}


def measure(rounds: int) -> dict[str, float]:
    """Median seconds of each program."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "VEIL_STATE_DIR": f"{folder}/state"}
        taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
        for turn in range(rounds + 1):
            for name in random.sample(list(PROGRAMS), len(PROGRAMS)):
                began = time.perf_counter()
                subprocess.run(
                    (sys.executable, *PROGRAMS[name]), cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True
                )
                if turn:  # the first fills the caches
                    taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> int:
    """Print the table; 1 when a target is missed."""
    medians = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
    missed = 0
    for name, seconds in medians.items():
        ratio, target = seconds / medians[REFERENCE], TARGETS.get(name)
        verdict = "" if target is None else f"  at most {target:g}x: {'ok' if ratio <= target else 'MISSED'}"
        missed += target is not None and ratio > target
        print(f"{seconds * 1000:8.1f} ms  {ratio:5.2f}x  {name}{verdict}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
