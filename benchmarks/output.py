"""Much output: how fast it is read and what memory it takes, each case in a process of its own.

python benchmarks/output.py [ROUNDS]
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import veil

BYTES = 200_000_000
COMMAND = f"head -c {BYTES} /dev/zero | tr '\\\\0' x"
MIB = 1 << 20


def peak() -> int:
    """Highest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1024 if sys.platform == "linux" else 1)


def measure(how: str) -> dict[str, float]:
    veil.run("true")  # what is imported once and lives on is not the output's
    before, start = peak(), time.perf_counter()
    if how == "veil":
        result = veil.run(COMMAND)
        assert result.stdout_total_bytes == BYTES
        assert result.stored == "disk"
    else:
        assert len(subprocess.run(["bash", "-c", COMMAND], capture_output=True, check=True).stdout) == BYTES
    return {"seconds": time.perf_counter() - start, "grown": peak() - before}


def fresh(how: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--measure", how], capture_output=True, check=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def held() -> float:
    """Seconds that a run takes to return after its shell has ended while a child holds the pipe."""
    start = time.perf_counter()
    result = veil.run("sleep 30 & echo hi")
    assert result.stdout == "hi\n"
    assert result.left_running == 1
    return time.perf_counter() - start


def line(what: str, got: float, target: float, unit: str, *, most: bool = True) -> None:
    met = "met" if (got <= target if most else got >= target) else "MISSED"
    print(f"{what:58} {got:6.2f} {unit:4} target {'at most' if most else 'at least'} {target:g}  {met}", flush=True)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="veil-bench-") as name:
        os.environ["VEIL_STATE_DIR"] = name
        taken: dict[str, list[dict[str, float]]] = {"subprocess": [], "veil": []}
        for _ in range(rounds):
            for how, got in taken.items():
                got.append(fresh(how))
        seconds = {how: statistics.median(told["seconds"] for told in got) for how, got in taken.items()}
        grown = {how: max(told["grown"] for told in got) for how, got in taken.items()}
        for how in taken:
            print(f"{how:10} {BYTES / 1e6 / seconds[how]:6.0f} MB/s, memory grew by {grown[how] / MIB:.0f} MiB")
        line(
            "throughput, of subprocess.run(capture_output)",
            seconds["subprocess"] / seconds["veil"],
            0.9,
            "x",
            most=False,
        )
        line("memory growth", grown["veil"] / MIB, 32, "MiB")
        line("a held pipe, until it returns", statistics.median(held() for _ in range(rounds)), 0.5, "s")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure(sys.argv[-1])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
