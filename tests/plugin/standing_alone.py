"""Recordings that stand alone, really made; a folder to collect them in, and what a session says of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from veil.taping import (
    DETERMINISTIC,
    Cassette,
    Header,
    Recorder,
    Slot,
    Step,
    Workspace,
    encode,
    record_again,
    stage_for,
    take_slot,
)

ROOT = Path(__file__).parents[2]
BASH = Path("/bin/bash")
NAME = "fix.veil.txtar"
#: The plugin of this checkout, where it is not installed.
PLUGIN = () if any(entry.name == "veil" for entry in entry_points(group="pytest11")) else ("-p", "pytest_veil.plugin")


def pytest_run(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A session of its own, in a process of its own."""
    argv = [
        sys.executable,
        "-m",
        "pytest",
        *PLUGIN,
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        *words,
    ]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **(env or {})},
        capture_output=True,
        text=True,
        timeout=200,
    )


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Counts of the last line, without subtests."""
    found = re.findall(r"(\d+) (passed|failed|error|skipped|deselected)", done.stdout.splitlines()[-1])
    return {word: int(number) for number, word in found}


#: Whether each step is a subtest; one that fails counts as a failure besides that of the test.
SUBTESTS = pytest.version_tuple >= (9, 0)
ONE_STEP_FAILED = {"failed": 1 + SUBTESTS}


def told(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str, str]]:
    """How each subtest ended, its number and its word."""
    return re.findall(r"SUB(PASSED|FAILED)\[step (\d+), ([a-z-]+): ", done.stdout)


def asked(text: str, **more: Any) -> Step:
    """What is to be recorded."""
    return Step(argv=(str(BASH), "-c", text), text=text, stream_bytes=100_000, timeout=60.0, **more)


@pytest.fixture
def slot() -> Any:
    with take_slot(DETERMINISTIC.place, "slot") as taken:
        yield taken


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


FILES = {"a.txt": (b"one\ntwo <root>\n", 0o644), "bin/go": (b"#!/bin/sh\necho go\n", 0o755)}
EFFECTS = (("Effects", {"ignored": False}),)
STEPS = (
    asked("cat a.txt; bin/go; pwd", expect=(("exit", 0), ("stdout_contains", "two"))),
    asked("echo x > n; rm a.txt", wishes=EFFECTS, expect=(("changed", ["n"]),)),
    asked("cat n >&2; exit 3"),
    asked("echo $WHO; cat", env=(("WHO", "me"),), stdin=b"given\n", cwd="<root>/bin"),
)


def recorded(
    path: Path, slot: Slot, *steps: Step, workspace: Workspace | None = None, header: Header | None = None
) -> Cassette:
    """Really run, and written to ``path``."""
    header = header or Header("deterministic", DETERMINISTIC.version, workspace or Workspace("inline", files=FILES))
    stage = stage_for(header, path, slot.path, os.environ)
    new, played = record_again(Cassette(header, steps or STEPS), Recorder(stage))
    assert [one.error for one in played] == [None] * len(played)
    path.write_bytes(encode(new))
    return new


def lines(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.veil.txtar"))
