"""What a command of a session costs beside one that stands alone, and what a larger state costs.

python benchmarks/shell.py [ROUNDS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from run import medians

import veil

#: How many times a run that stands alone a command of a session may take.
TARGET = 2.0


def main(rounds: int) -> int:
    plain = {"effects": False, "no_store": True}
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        with (
            veil.shell(cwd=cwd, effects=False, no_store=True) as small,
            veil.shell(cwd=cwd, effects=False, no_store=True) as large,
            veil.shell(cwd=cwd, effects=False, no_store=True) as traps,
            veil.shell(cwd=cwd, effects=False, no_store=True, shell="sh") as posix,
        ):
            small.run("cd . && export A=1; f() { echo f; }")
            large.run(
                'for n in {1..200}; do export V$n=value$n; eval "f$n() { echo $n; if true; then echo more; fi; }"; done'
            )
            taken = medians(
                {
                    "veil.run": lambda: veil.run("true", cwd=cwd, **plain),
                    "session": lambda: small.run("true"),
                    "session, 200 variables and functions": lambda: large.run("true"),
                    "session, a command with a trap": lambda: traps.run("trap : EXIT; true"),
                    "session of sh": lambda: posix.run("true"),
                    "veil.run of sh": lambda: veil.run("true", cwd=cwd, shell="sh", **plain),
                },
                rounds,
            )
    alone = taken["veil.run"]
    for name, milliseconds in taken.items():
        print(f"{name:<40} {milliseconds:7.2f} ms  {milliseconds / alone:5.2f}x")
    ratio = taken["session"] / alone
    print(f"target: a command of a session at most {TARGET}x: {'met' if ratio <= TARGET else 'MISSED'} ({ratio:.2f}x)")
    return int(ratio > TARGET)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
