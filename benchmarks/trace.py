"""What a trace costs: ``make`` of eight C files with and without ``trace=True``, as a ratio of interleaved medians.

python benchmarks/trace.py [ROUNDS]

Needs strace, make and gcc. With ``--parts`` it shows beside it what strace alone costs without veil, and how long the
log takes to be read.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import veil
from veil.host import strace
from veil.layers.tracing.account import Account
from veil.layers.tracing.following import Follower
from veil.layers.tracing.handling import CALLS
from veil.model.plan import Touched

TARGET = 1.8
_SOURCE = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int f{n}(int x) {{ char text[64]; snprintf(text, sizeof text, "%d", x); return (int)strlen(text) + atoi(text); }}
"""
_MAKEFILE = """OBJECTS = {objects}
all: $(OBJECTS)
%.o: %.c
\tgcc -O1 -c -o $@ $<
clean:
\trm -f *.o
"""


def project(root: Path) -> Path:
    for number in range(8):
        (root / f"f{number}.c").write_text(_SOURCE.format(n=number))
    (root / "Makefile").write_text(_MAKEFILE.format(objects=" ".join(f"f{number}.o" for number in range(8))))
    return root


def medians(cases: Mapping[str, Callable[[], object]], rounds: int, between: Callable[[], object]) -> dict[str, float]:
    """Median milliseconds of each case, one call of each in turn, so that a busy moment hits all of them."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        for name, case in cases.items():
            between()
            start = time.perf_counter()
            case()
            if turn:
                taken[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(values) for name, values in taken.items()}


def run(cwd: Path, trace: bool) -> None:
    result = veil.run("make -s", cwd=cwd, trace=trace)
    assert result.ok, result.stderr
    assert len(result.created) == 8, result.files_changed
    assert (result.effects_source == "trace") == trace, result.to_dict()


def parts(cwd: Path, rounds: int, clean: Callable[[], object]) -> None:
    program = strace.find()
    assert program is not None
    log = str(cwd.parent / "log")
    words = strace.words(program, log, CALLS, namespaces=False)
    bare = medians(
        {
            "bare": lambda: subprocess.run(["make", "-s"], cwd=cwd, check=True),
            "strace": lambda: subprocess.run([*words, "make", "-s"], cwd=cwd, check=True),
        },
        rounds,
        clean,
    )
    print(f"strace alone: {bare['strace'] / bare['bare']:.2f} times {bare['bare']:.0f} ms")
    time.sleep(0.5)
    data = Path(log).read_bytes()
    start = time.perf_counter()
    account, marks = Account(str(cwd)), Touched()
    follower = Follower(account, ("make", "-s"), str(cwd), wrapped=False, marks=marks)
    follower.feed(data)
    assert follower.finish()
    lines = data.count(b"\n")
    print(f"reading the log: {(time.perf_counter() - start) * 1e6 / lines:.1f} us for each of {lines} lines")


def main() -> int:
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    rounds = int(arguments[0]) if arguments else 15
    reason = strace.unavailable(CALLS)
    if reason is not None:
        print(f"nothing to measure: {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="veil-bench-") as folder:
        base = Path(os.path.realpath(folder))
        os.environ["XDG_STATE_HOME"] = str(base / "state")
        cwd = base / "project"
        cwd.mkdir()
        project(cwd)

        def clean() -> None:
            subprocess.run(["make", "-s", "clean"], cwd=cwd, check=True)

        told = medians({"plain": lambda: run(cwd, False), "traced": lambda: run(cwd, True)}, rounds, clean)
        ratio = told["traced"] / told["plain"]
        verdict = "ok" if ratio <= TARGET else "MISSED"
        print(f"make of 8 C files, traced: {ratio:.2f} times {told['plain']:.0f} ms (target {TARGET}) {verdict}")
        if "--parts" in sys.argv:
            parts(cwd, rounds, clean)
        return 0 if ratio <= TARGET else 1


if __name__ == "__main__":
    raise SystemExit(main())
