"""What a run on Landlock costs beside the same run unconfined: ratios of interleaved medians.

python benchmarks/landlock.py [ROUNDS]

The folders lie where they lie for a user, below the home folder: rules are kept between runs as long as nothing comes
or goes beside what is hidden, and in a busy /tmp something always does. Rules made anew for every run stand last.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from run import line, medians

import veil
from veil.host.confine import landlock

TARGET = 1.4
CASES: dict[str, dict[str, Any]] = {
    "sandbox=True": {},
    "network=False": {"network": False},
    "protect_secrets=True": {"protect_secrets": True},
    "network=False, protect_secrets=True": {"network": False, "protect_secrets": True},
}


def run(cwd: Path, **options: Any) -> None:
    result = veil.run("true", cwd=cwd, **options)
    assert result.ok
    assert result.files_changed == []


def confined(cwd: Path, sandbox: dict[str, Any]) -> None:
    run(cwd, sandbox={"backend": "landlock", **sandbox})


def fresh(cwd: Path) -> None:
    landlock._RULES._kept.clear()
    confined(cwd, {})


def main(rounds: int) -> None:
    if (reason := landlock.Landlock().unavailable()) is not None:
        sys.exit(f"Landlock does not work here: {reason}")
    cache = Path.home() / ".cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="veil-bench-", dir=cache) as name:
        base = Path(name).resolve()
        os.environ["VEIL_STATE_DIR"] = str(base / "state")
        os.chdir(base)
        work = base / "work"
        work.mkdir()
        run(work)
        time.sleep(3.5)  # folders that are new are looked at anew
        told = medians(
            {
                "plain": partial(run, work),
                **{what: partial(confined, work, options) for what, options in CASES.items()},
            },
            rounds,
        )
        print(f"veil.run unconfined: {told['plain']:.3f} ms")
        for what in CASES:
            line(f"on Landlock, {what}", told[what] / told["plain"], TARGET)
        told = medians({"plain": partial(run, work), "fresh": partial(fresh, work)}, rounds // 3)
        print(f"with rules made anew: {told['fresh'] / told['plain']:.2f} x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
