"""What recordings that stand alone cost to collect: ``pytest --veil --collect-only`` over many ``*.veil.txtar`` files
against the same session over the same files without ``--veil``. Time and memory per item; median of the rounds.

    python benchmarks/collect.py [items] [rounds]

Exits with 1 beyond 1.5 ms or 40 kB an item.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from veil.taping import Cassette, Header, Step, Workspace, encode

MOST_MS, MOST_KB = 1.5, 40.0
#: Files in a folder, as people would have them.
IN_A_FOLDER = 250

#: Times the collection of a session and asks for the memory that it has taken.
_WATCH = """
import json, os, resource, sys, time

def pytest_collection(session):
    watch["began"] = time.perf_counter()
    watch["before"] = resident()

def pytest_collection_finish(session):
    spent, taken = time.perf_counter() - watch["began"], resident() - watch["before"]
    with open(os.environ["WATCHED"], "w") as file:
        json.dump({"items": len(session.items), "seconds": spent, "kb": taken}, file)

def resident():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1000
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1000
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1000

watch = {}
"""


def fill(folder: Path, items: int) -> None:
    """Recordings of three steps, each in its own words."""
    for number in range(items):
        place = folder / f"group{number // IN_A_FOLDER}"
        place.mkdir(exist_ok=True)
        steps = tuple(
            Step(argv=("/bin/sh", "-c", text), text=text, stream_bytes=5_000_000, timeout=120.0)
            for text in (f"true {number}", "echo two > two", "exit 3")
        )
        header = Header("deterministic", 1, Workspace("inline", files={"a.txt": (b"one\n", 0o644)}))
        (place / f"case{number}.veil.txtar").write_bytes(encode(Cassette(header, steps)))


def collected(folder: Path, *words: str) -> dict[str, float]:
    """One session, in a process of its own."""
    watched = folder.parent / "watched.json"
    env = {**os.environ, "WATCHED": str(watched), "PYTHONPATH": os.pathsep.join([str(folder.parent), *sys.path])}
    plugins = [] if _installed() else ["-p", "pytest_veil.plugin"]
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "watch", "-p", "no:cacheprovider", *plugins]
    done = subprocess.run([*argv, *words, str(folder)], cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode not in (0, 5):
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    found: dict[str, float] = json.loads(watched.read_text())
    return found


def _installed() -> bool:
    from importlib.metadata import entry_points

    return any(entry.name == "veil" for entry in entry_points(group="pytest11"))


def main(items: int, rounds: int) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "suite")
        folder.mkdir()
        Path(name, "watch.py").write_text(_WATCH)
        Path(folder, "pytest.ini").write_text("[pytest]\n")
        fill(folder, items)
        ms, kb = [], []
        for _ in range(rounds):
            idle, full = collected(folder), collected(folder, "--veil")
            if (idle["items"], full["items"]) != (0, items):
                raise SystemExit(
                    f"collected {idle['items']:.0f} without --veil and {full['items']:.0f} of {items} with it"
                )
            ms.append((full["seconds"] - idle["seconds"]) * 1000 / items)
            kb.append((full["kb"] - idle["kb"]) / items)
    time, memory = statistics.median(ms), statistics.median(kb)
    print(f"{items} items: {time:.3f} ms each (at most {MOST_MS}), {memory:.1f} kB each (at most {MOST_KB:.0f})")
    return 0 if time <= MOST_MS and memory <= MOST_KB else 1


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(numbers + [10_000, 3][len(numbers) :])))
