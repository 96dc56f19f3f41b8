"""How long does a decision of the governed boundary take, once the hashes of the programs are known? Nothing starts.

Each argv of a mixed list is judged again and again under a policy of some twenty rules: the workspace looked at, paths
resolved, programs found and told apart, launchers seen through, rules and built-in judgements weighed, labels and
budget looked at, the binding computed. The median over all is the figure (goal: at most 0.3 ms).

Usage: python benchmarks/governed.py [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from veil.governed import Audit, Boundary, Denied, Policy, Rule
from veil.governed.calls import call_of

GOAL_MS = 0.3
DENIED = ("rm", "dd", "shred", "mkfs", "curl", "wget", "ssh", "sudo", "docker", "chown")
ALLOWED = ("ls", "cat", "grep", "sort", "wc", "head", "tail", "find", "sed", "make", "timeout", "python3")
LISTS: tuple[tuple[str, ...], ...] = (
    ("ls", "-la"),
    ("cat", "src/a.txt"),
    ("grep", "-rn", "--include=*.py", "word", "src"),
    ("sort", "-o", "src/out.txt", "src/a.txt"),
    ("find", "src", "-name", "*.txt", "-type", "f"),
    ("timeout", "60", "grep", "-c", "x", "src/a.txt"),
    ("env", "nice", "-n", "5", "timeout", "9", "wc", "-l", "src/a.txt"),
    ("python3", "-m", "pytest", "-q", "tests/unit"),
    ("sed", "-n", "1,20p", "src/a.txt"),
    ("find", ".", "-name", "x", "-delete"),
    ("env", "nice", "rm", "-rf", "src"),
    ("sh", "-c", "grep x src/a.txt | wc -l"),
    ("cat", "../outside"),
)


def decide(boundary: Boundary, argv: tuple[str, ...]) -> None:
    call = call_of(argv, None, None, None, boundary.bounds)
    note: dict[str, Any] = {}
    with contextlib.suppress(Denied):
        boundary._gate.judge_call("gov-0", call, boundary.cwd, (), note)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rules = tuple(Rule(f"deny {n}", "deny", prefix=(n,)) for n in DENIED)
    rules += tuple(Rule(f"allow {n}", "allow", prefix=(n,)) for n in ALLOWED)
    times: dict[str, list[float]] = {" ".join(argv): [] for argv in LISTS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "src").mkdir()
        (Path(folder) / "src" / "a.txt").write_text("x\n")
        with Boundary(folder, Policy("allowlist", rules), audit=Audit()) as boundary:
            for turn in range(arguments.rounds + 1):
                for argv in LISTS:
                    began = time.perf_counter()
                    decide(boundary, argv)
                    if turn:  # the first one reads the programs
                        times[" ".join(argv)].append(1000 * (time.perf_counter() - began))
    every = [one for many in times.values() for one in many]
    found = {
        "median_ms": round(statistics.median(every), 4),
        "p95_ms": round(statistics.quantiles(every, n=20)[-1], 4),
        "goal_ms": GOAL_MS,
        "decisions": len(every),
        "by_argv": {argv: round(statistics.median(many), 4) for argv, many in times.items()},
    }
    print(json.dumps(found, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if found["median_ms"] <= GOAL_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
