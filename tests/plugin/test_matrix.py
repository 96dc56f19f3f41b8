"""Whatever else is switched off or on in pytest: no INTERNALERROR, the right exit status, and nothing half done."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

MODES = ("off", "replay", "record", "verify")
SUITE = """
def test_passes(veil_run, expect):
    expect(veil_run("echo hi; echo done > made", expect={"exit": 0})).assert_ok().created("made").stdout.equals("hi\\n")
    assert (veil_run.root / "made").read_text() == "done\\n"

def test_fails(veil_run):
    assert veil_run("exit 3").ok
"""
#: Blocked by name before they are imported: they cost seconds and say nothing here.
OTHERS = sorted({point.name for point in entry_points(group="pytest11")} - {"veil", "xdist"})
PLAIN = (sys.executable, "-m", "pytest")
AFTER_VEIL = (sys.executable, "-c", "import sys, veil, pytest; sys.exit(pytest.main(sys.argv[1:]))")
SWITCHES = ("terminal", "cacheprovider", "capture", "tmpdir", "assertion", "junitxml")

#: Name: (command, options).
RUNNING = {
    **{f"no-{name}": (PLAIN, ("-p", f"no:{name}")) for name in SWITCHES},
    "no-switches": (PLAIN, tuple(word for name in SWITCHES for word in ("-p", f"no:{name}"))),
    "W-error": (PLAIN, ("-W", "error")),
    "after-veil": (AFTER_VEIL, ()),
    "p-veil": (PLAIN, ("-p", "veil")),
    "n2": (PLAIN, ("-n", "2")),
}
ASKING = {
    "collect-only": ("--collect-only", "test_it.py::test_fails"),
    "fixtures": ("--fixtures", "veil_run -- "),
    "markers": ("--markers", "@pytest.mark.veil(mode="),
    "help": ("--help", "--veil-mode=MODE"),
}
VERDICTS = {
    "replay": {"test_passes": "replayed", "test_fails": "replayed"},
    "record": {"test_passes": "recorded", "test_fails": "not-written"},
    "verify": {"test_passes": "exact", "test_fails": "exact"},
}


class Cell:
    """One run of pytest on a copy of the suite, under way."""

    def __init__(
        self, folder: Path, suite: Path, mode: str, command: tuple[str, ...], options: tuple[str, ...]
    ) -> None:
        shutil.copytree(suite, folder)
        self.folder, self.mode, self._report = folder, mode, folder.with_suffix(".json")
        blocked = [f"no:{name}" for name in OTHERS] + ([] if "-n" in options else ["no:xdist"])
        words = [*command, *(word for name in blocked for word in ("-p", name)), *options]
        if mode != "off":
            words += [f"--veil-mode={mode}", f"--veil-report={self._report}"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))}
        self._process = subprocess.Popen(
            words,
            cwd=folder,
            env={**kept, "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self) -> Cell:
        self.text, _ = self._process.communicate(timeout=240)
        self.status = self._process.returncode
        assert "INTERNALERROR" not in self.text, self.text
        assert "Traceback (most recent call last)" not in self.text, self.text
        return self

    @property
    def report(self) -> dict[str, object] | None:
        return json.loads(self._report.read_text()) if self._report.exists() else None

    def cassettes(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.folder / "cassettes").iterdir()}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite with recordings of both tests."""
    folder = tmp_path_factory.mktemp("matrix") / "suite"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(SUITE)
    recorded = Cell(folder.with_name("recorded"), folder, "record", PLAIN, ("--veil-keep-failed",)).end()
    assert recorded.status == 1, recorded.text
    assert len(recorded.cassettes()) == 2
    shutil.rmtree(recorded.folder / ".pytest_cache", ignore_errors=True)
    return recorded.folder


def cells(suite: Path, tmp_path: Path, command: tuple[str, ...], options: tuple[str, ...]) -> list[Cell]:
    """The four modes side by side."""
    begun = [Cell(tmp_path / mode, suite, mode, command, options) for mode in MODES]
    return [cell.end() for cell in begun]


@pytest.mark.parametrize("name", RUNNING)
def test_tests_run(suite: Path, tmp_path: Path, name: str) -> None:
    command, options = RUNNING[name]
    if "-n" in options:
        pytest.importorskip("xdist")
    recorded = {path.name: path.read_bytes() for path in (suite / "cassettes").iterdir()}
    for cell in cells(suite, tmp_path, command, options):
        assert cell.status == 1, (cell.mode, cell.text)
        if "no:terminal" in options:
            assert cell.text == "", cell.text
        else:
            assert "1 failed, 1 passed" in cell.text, (cell.mode, cell.text)
            assert ("veil: " in cell.text) == (cell.mode != "off")
        if cell.mode != "off":
            told = cell.report
            assert told is not None, cell.text
            assert (told["exit_status"], told["outcomes"]) == (1, {"passed": 1, "failed": 1}), cell.text
            assert {item["nodeid"].partition("::")[2]: item["verdict"] for item in told["items"]} == VERDICTS[cell.mode]
        # recording again gives no other bytes, and the failed test leaves its recording as it was
        assert cell.cassettes() == recorded, cell.mode


@pytest.mark.parametrize("name", ASKING)
def test_nothing_runs(suite: Path, tmp_path: Path, name: str) -> None:
    option, told = ASKING[name]
    for cell in cells(suite, tmp_path, PLAIN, (option, "-q")):
        assert cell.status == 0, (cell.mode, cell.text)
        assert told in cell.text, (cell.mode, cell.text)
        assert cell.report is None
        assert cell.cassettes() == {path.name: path.read_bytes() for path in (suite / "cassettes").iterdir()}


def test_without_the_plugin(suite: Path, tmp_path: Path) -> None:
    """``-p no:veil`` gets rid of everything."""
    for cell in cells(suite, tmp_path, PLAIN, ("-p", "no:veil")):
        if cell.mode == "off":
            assert cell.status == 1
            assert "fixture 'veil_run' not found" in cell.text
            assert "2 errors" in cell.text
        else:
            assert cell.status == 4
            assert "unrecognized arguments: --veil-mode" in cell.text
