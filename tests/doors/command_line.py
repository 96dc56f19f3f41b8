"""Calling the command line as a user does: another process, its own pipes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
VEIL = (sys.executable, "-m", "veil")


def environment(**more: str) -> dict[str, str]:
    """This process's variables, with this checkout importable."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def veil(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """``veil WORDS``, to its end."""
    return subprocess.run(
        (*VEIL, *words), cwd=cwd, env=environment(**(env or {})), input=stdin, capture_output=True, timeout=120
    )


def veil_json(*words: str, cwd: Path, code: int = 0, env: Mapping[str, str] | None = None) -> Any:
    """The one JSON document that it prints; fails unless it exits with ``code``."""
    # before a "--", behind which everything belongs to the command
    at = words.index("--") if "--" in words else len(words)
    done = veil(*words[:at], "--json", *words[at:], cwd=cwd, env=env)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout
    return json.loads(lines[0])


@contextlib.contextmanager
def going_on(*words: str, cwd: Path, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """``veil WORDS`` while it runs; killed when a test fails before its end."""
    with subprocess.Popen(
        (*VEIL, *words), cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(path: Path) -> None:
    """Until there is such a file."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.02)
