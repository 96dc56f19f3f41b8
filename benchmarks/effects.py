"""What telling the changes costs: the layer driven directly around ``subprocess.run``, as ratios of medians.

python benchmarks/effects.py              the budgets
python benchmarks/effects.py --crossing   where asking git becomes quicker than scanning (``pictures.GIT_FIRST``)
python benchmarks/effects.py --locks      the window: filelock beside a bare flock
"""

from __future__ import annotations

import fcntl
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from veil.host import locks, pictures
from veil.layers.effects import EffectsLayer
from veil.model.command import Command, Effects, Request
from veil.model.outcome import Findings, Outcome
from veil.model.plan import Launch, Plan

ARGV = ("bash", "-c", "true")
GIT = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
STATUS = ["git", "--no-optional-locks", "status", "--porcelain=v2", "-z", "-uall"]


def watched(layer: EffectsLayer, cwd: Path, child: Callable[[], object]) -> Findings:
    """The findings of the layer around ``child``."""
    launch = Launch(ARGV, str(cwd), {})
    entered = layer.enter(Effects(), launch, Plan(Request(Command(ARGV, str(cwd)))))
    next(entered)
    child()
    try:
        entered.send(Outcome("exited", 0))
    except StopIteration as end:
        findings: Findings = end.value
        assert findings.changes == (), findings
        return findings
    raise AssertionError("the layer did not end")


def medians(cases: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median milliseconds of each case, one call of each in turn."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 2):
        for name, case in cases.items():
            start = time.perf_counter()
            case()
            if turn >= 2:
                taken[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(values) for name, values in taken.items()}


def make_tree(root: Path, files: int, *, git: bool, per_folder: int = 20) -> Path:
    root.mkdir(parents=True)
    for start in range(0, files, per_folder):
        folder = root / f"d{start // per_folder:05}"
        folder.mkdir()
        for number in range(start, min(start + per_folder, files)):
            (folder / f"file_{number:06}.py").write_text(f"value = {number}\n")
    if git:
        for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"], ["status"]):
            subprocess.run([*GIT, *arguments], cwd=root, check=True, capture_output=True)
    return root


def budgets(base: Path) -> None:
    layer = EffectsLayer(base / "locks")

    def bare() -> object:
        return subprocess.run(ARGV, capture_output=True, check=True)

    empty, small = make_tree(base / "empty", 0, git=False), make_tree(base / "small", 10, git=True)
    told = medians(
        {"bare": bare, "empty": lambda: watched(layer, empty, bare), "ten": lambda: watched(layer, small, bare)}, 400
    )
    only = medians(
        {"empty": lambda: watched(layer, empty, int), "ten": lambda: watched(layer, small, int)},
        2000,
    )
    print(f"bare subprocess.run(bash -c true)         {told['bare']:8.3f} ms")
    print(f"  with the layer, empty folder            {told['empty']:8.3f} ms  x{told['empty'] / told['bare']:.2f}")
    print(f"  with the layer, 10 files in git         {told['ten']:8.3f} ms  +{told['ten'] - told['empty']:.3f} ms")
    print(f"the layer alone: empty folder {only['empty']:.3f} ms, 10 files in git {only['ten']:.3f} ms")
    for files in (2_000, 20_000):
        tree = make_tree(base / f"tree{files}", files, git=True)
        told = medians({"two": partial(_two, tree), "layer": partial(watched, layer, tree, int)}, 15)
        how = watched(layer, tree, int).source
        print(
            f"{files:6} clean files: two git status {told['two']:8.2f} ms, layer ({how}) {told['layer']:8.2f} ms"
            f"  x{told['layer'] / told['two']:.2f}  (budget for 20000: x1.20)"
        )


def _two(tree: Path) -> None:
    for _ in range(2):
        subprocess.run(STATUS, cwd=tree, capture_output=True, check=True)


def crossing(base: Path) -> None:
    scans = EffectsLayer(base / "locks", git_first=10_000_000)
    asks = EffectsLayer(base / "locks", git_first=-1)
    pictures.SCAN_FIRST_ENTRIES = 10_000_000
    for files in (500, 1_000, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000):
        tree = make_tree(base / f"cross{files}", files, git=True)
        told = medians({"scan": partial(watched, scans, tree, int), "git": partial(watched, asks, tree, int)}, 15)
        print(f"{files:6} files: scan {told['scan']:7.2f} ms, git {told['git']:7.2f} ms")


def lock_costs(base: Path) -> None:
    base.mkdir(exist_ok=True)
    path, root, directory = str(base / "bare"), str(base), base / "locks"

    def flock() -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)

    told = medians({"flock": flock, "window": lambda: locks.enter(directory, root, 2.0).leave()}, 5000)
    print(f"bare open+flock+close {told['flock'] * 1000:.1f} us, window of filelock {told['window'] * 1000:.1f} us")


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="veil-bench-") as name:
        base = Path(name).resolve()
        if "--crossing" in arguments:
            crossing(base)
        elif "--locks" in arguments:
            lock_costs(base)
        else:
            budgets(base)


if __name__ == "__main__":
    main(sys.argv[1:])
