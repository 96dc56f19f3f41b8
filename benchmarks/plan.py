"""How long does the pre-check of one command take?

Every command of the labelled corpus is planned several times; the median over commands of each one's best time is the
figure (goal: at most 1 ms), beside the 99th percentile and the slowest. Imports and the first parse are timed apart, in
processes of their own.

Usage: python benchmarks/plan.py [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "classify"))

from labelled import labelled

import veil

ROOT = Path(__file__).resolve().parent.parent
GOAL_MS = 1.0
FIRST = """
import time
began = time.perf_counter()
import veil
veil.plan
imported = time.perf_counter()
veil.plan("ls")
print(1000 * (imported - began), 1000 * (time.perf_counter() - imported))
"""


def milliseconds(command: str) -> float:
    began = time.perf_counter()
    veil.plan(command)
    return 1000 * (time.perf_counter() - began)


def first() -> tuple[float, float]:
    """Milliseconds of importing the door, and of the first answer, which imports the grammar."""
    done = subprocess.run([sys.executable, "-c", FIRST], cwd=ROOT, capture_output=True, text=True, check=True)
    imported, assessed = map(float, done.stdout.split())
    return imported, assessed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    commands = [command for name in ("hostile", "everyday") for _, command in labelled(name)]
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(arguments.rounds):
        for command in commands:
            best[command] = min(best[command], milliseconds(command))
    ordered = sorted(best.values())
    slowest = max(best, key=lambda command: best[command])
    imported, assessed = map(statistics.median, zip(*(first() for _ in range(arguments.rounds)), strict=True))
    figures = {
        "commands": len(best),
        "median_ms": round(statistics.median(ordered), 4),
        "p99_ms": round(ordered[int(0.99 * len(ordered))], 4),
        "slowest_ms": round(ordered[-1], 4),
        "slowest": slowest,
        "import_ms": round(imported, 2),
        "first_ms": round(assessed, 2),
    }
    print(json.dumps(figures, ensure_ascii=False, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if figures["median_ms"] <= GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main())
