"""What one run costs beside the standard library's: ratios of interleaved medians, each with its target.

python benchmarks/run.py [ROUNDS]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import veil

GIT = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
STATUS = ["git", "--no-optional-locks", "status", "--porcelain=v2", "-z", "-uall"]


def medians(cases: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median milliseconds of each case, one call of each in turn, so that a busy moment hits all of them."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 3):
        for name, case in cases.items():
            start = time.perf_counter()
            case()
            if turn >= 3:
                taken[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(values) for name, values in taken.items()}


def make_repository(root: Path, files: int) -> Path:
    root.mkdir()
    for start in range(0, files, 20):
        folder = root / f"d{start // 20:05}"
        folder.mkdir()
        for number in range(start, min(start + 20, files)):
            (folder / f"file_{number:06}.py").write_text(f"value = {number}\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"], ["status"]):
        subprocess.run([*GIT, *arguments], cwd=root, check=True, capture_output=True)
    return root


def bare(cwd: Path) -> None:
    subprocess.run(["bash", "-c", "true"], capture_output=True, cwd=cwd, check=True)


def run(cwd: Path, effects: bool = True) -> None:
    # said by name, so that it looks for changes even where the pre-check would spare it that
    result = veil.run("true", cwd=cwd, effects=effects)
    assert result.ok
    assert result.stored == "disk"
    assert result.files_changed == []


def two_status(cwd: Path) -> None:
    for _ in range(2):
        subprocess.run(STATUS, cwd=cwd, capture_output=True, check=True)


def line(what: str, got: float, target: float, unit: str = "x") -> None:
    met = "met" if got <= target else "MISSED"
    print(f"{what:58} {got:6.2f} {unit:2}  target {target:.2f}  {met}", flush=True)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="veil-bench-") as name:
        base = Path(name).resolve()
        os.environ["VEIL_STATE_DIR"] = str(base / "state")
        os.chdir(base)
        empty, small = base / "empty", make_repository(base / "small", 10)
        empty.mkdir()
        told = medians(
            {
                "bare": partial(bare, empty),
                "whole": partial(run, empty),
                "off": partial(run, empty, effects=False),
                "small": partial(run, small),
            },
            rounds,
        )
        print(f"subprocess.run(bash -c true): {told['bare']:.3f} ms, veil.run: {told['whole']:.3f} ms")
        line("stored and with changed files, empty folder", told["whole"] / told["bare"], 1.5)
        line("stored, without changed files", told["off"] / told["bare"], 1.3)
        line("git tree of 10 files, more than the empty folder", told["small"] - told["whole"], 1.5, "ms")
        large = make_repository(base / "large", 20_000)
        told = medians({"two": partial(two_status, large), "run": partial(run, large)}, max(9, rounds // 20))
        line("git tree of 20,000 clean files, of two git status", told["run"] / told["two"], 1.2)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
