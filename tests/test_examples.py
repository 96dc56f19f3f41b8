"""The examples are true: their recordings replay without a process, and what was recorded happens again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
TESTS = 6
NEEDS_TOOLS = pytest.mark.needs("bash", "git", "make")

#: Loaded before anything else of the run: whatever would start a process ends it here.
NO_PROCESS = """
import os, sys
STARTS = {f"os.{name}" for name in ("fork", "forkpty", "posix_spawn", "exec", "spawn", "system")}
STARTS |= {"subprocess.Popen", "pty.spawn"}
def watch(event, args):
    if event in STARTS:
        os.write(2, f"PROCESS: {event} {args[:2]}\\n".encode())
        os._exit(99)
sys.addaudithook(watch)
import _posixsubprocess
def never(*args):
    os.write(2, b"PROCESS: fork_exec\\n")
    os._exit(99)
_posixsubprocess.fork_exec = never
"""


class Example:
    """A copy of one folder of examples, and pytest in it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = folder / name
        shutil.copytree(EXAMPLES / name, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "pytest.ini").write_text("[pytest]\n")
        self.cassettes = self.folder / "cassettes"

    def pytest(self, mode: str, *options: str, status: int = 0, **environment: str) -> dict[str, Any]:
        """Run it and return its report."""
        report = self.folder.parent / "report.json"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-p", "veil", f"--veil-mode={mode}", f"--veil-report={report}"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))}
        paths = os.pathsep.join(filter(None, (environment.pop("PYTHONPATH", ""), str(ROOT))))
        own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": paths}
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider", *options, str(self.folder)],
            cwd=self.folder.parent,
            env={**kept, **own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
        )
        assert done.returncode == status, done.stdout
        return json.loads(report.read_text()) if report.exists() else {"text": done.stdout}

    def recordings(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.cassettes.iterdir()}


@pytest.fixture
def evals(tmp_path: Path) -> Example:
    return Example("evals", tmp_path)


@pytest.fixture
def no_process(tmp_path: Path) -> str:
    """A folder for ``PYTHONPATH`` and a plugin in it: with ``-p no_process`` no process can be started."""
    folder = tmp_path / "guard"
    folder.mkdir()
    (folder / "no_process.py").write_text(NO_PROCESS)
    return str(folder)


def replays_without_a_process(example: Example, no_process: str, tests: int) -> None:
    before = example.recordings()
    told = example.pytest("replay", "-p", "no_process", "--veil-unused=error", PYTHONPATH=no_process, PATH="/nowhere")
    assert told["outcomes"] == {"passed": tests}
    assert told["verdicts"] == {"replayed": tests}
    assert example.recordings() == before


def test_the_recorded_evals_replay_and_no_process_is_started(evals: Example, no_process: str) -> None:
    replays_without_a_process(evals, no_process, TESTS)


@pytest.mark.needs("bash")
def test_the_guard_sees_a_process(evals: Example, no_process: str) -> None:
    """Or the test above would prove nothing."""
    told = evals.pytest("live", "-s", "-p", "no_process", "-k", "bug", status=99, PYTHONPATH=no_process)
    assert "PROCESS: " in told["text"]


@NEEDS_TOOLS
def test_the_recorded_evals_happen_again_here(evals: Example) -> None:
    """With whatever versions of Python, git and make this machine has."""
    before = evals.recordings()
    told = evals.pytest("verify")
    assert told["outcomes"] == {"passed": TESTS}
    assert set(told["verdicts"]) <= {"exact", "normalised", "weak"}
    assert sum(told["steps"].values()) == 13
    assert evals.recordings() == before


#: What differs between two recordings of the evals: when the server was asked, and where this machine has its shell.
VARIES = ((rb"\[\d\d/\w{3}/\d{4} [\d:]{8}\]", b"[TIME]"), (rb'"stderr": "\w{32}"', b'"stderr": HASH'))


def settled(recordings: dict[str, bytes]) -> dict[str, bytes]:
    found = {}
    for name, data in recordings.items():
        if "server" in name:
            for pattern, instead in VARIES:
                data = re.sub(pattern, instead, data)
        found[name] = re.sub(rb'"/[^"]*/(bash|sh)"', rb'"\1"', data)
    return found


@NEEDS_TOOLS
def test_recording_anew_gives_what_was_recorded_with_any_number_of_workers(evals: Example) -> None:
    before = evals.recordings()
    for options in ((), ("-p", "xdist", "-n", "2")):
        if options:
            pytest.importorskip("xdist")
        shutil.rmtree(evals.cassettes)
        told = evals.pytest("record", *options)
        assert told["verdicts"] == {"recorded": TESTS}
        assert settled(evals.recordings()) == settled(before)


@NEEDS_TOOLS
def test_a_repair_that_was_undone_is_seen(evals: Example) -> None:
    """The project is another one: the replay says that files are not as recorded, verify what is different."""
    calc = evals.folder / "project" / "calc.py"
    calc.write_text(calc.read_text().replace("a - b", "a + b"))
    told = evals.pytest("verify", "-k", "bug", status=1)
    assert told["verdicts"] == {"output-drift": 1}
    told = evals.pytest("replay", "-k", "makes_the_tests_pass", status=1)
    assert told["outcomes"] == {"failed": 1}


@pytest.mark.needs("pypi", "bash")
def test_a_foreign_project_is_recorded_replayed_and_verified(tmp_path: Path, no_process: str) -> None:
    example = Example("pypi", tmp_path)
    told = example.pytest("record")
    assert told["verdicts"] == {"recorded": 1}
    replays_without_a_process(example, no_process, 1)
    told = example.pytest("verify")
    assert told["outcomes"] == {"passed": 1}
    assert set(told["steps"]) <= {"exact", "normalised", "weak"}
