"""What the plugin costs a session that does not use veil: modules and time, with it and with ``-p no:veil``.

    python benchmarks/idle.py [rounds]

Rounds alternate, so that a busy machine is busy for both. Exits with 1 beyond 12 modules, with any module ``veil.*``,
or beyond 15 ms (difference of the medians; the spread is printed beside it).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_MODULES, MOST_MS = 12, 15.0

_CONFTEST = """
import sys

def pytest_unconfigure(config):
    with open("modules.txt", "w") as file:
        file.write(" ".join(sys.modules))
"""


def session(folder: Path, *options: str) -> tuple[float, set[str]]:
    """One session: milliseconds, and the modules at its end."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    spent = (time.perf_counter() - began) * 1000
    return spent, set((folder / "modules.txt").read_text().split())


def main(rounds: int) -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "conftest.py").write_text(_CONFTEST)
        (folder / "test_it.py").write_text("def test_it():\n    pass\n")
        os.environ.pop("PYTEST_ADDOPTS", None)
        more = session(folder)[1] - session(folder, "-p", "no:veil")[1]
        pairs = [(session(folder)[0], session(folder, "-p", "no:veil")[0]) for _ in range(rounds)]
    with_, without = (statistics.median(column) for column in zip(*pairs, strict=True))
    quarter = statistics.quantiles([one - other for one, other in pairs], n=4)
    ours = sorted(name for name in more if name == "veil" or name.startswith("veil."))
    print(f"modules: {len(more)} more ({', '.join(sorted(more))}); of veil: {len(ours)}")
    print(f"session: {with_:.1f} ms with, {without:.1f} ms without: {with_ - without:+.1f} ms (limit {MOST_MS:g})")
    print(f"         difference within a round, quartiles: {', '.join(f'{part:+.1f}' for part in quarter)} ms")
    return int(not more or len(more) > MOST_MODULES or bool(ours) or with_ - without > MOST_MS)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
