"""A suite of tests in a project of its own, run by a real pytest in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]


@dataclass
class Ran:
    """One run of pytest. Attributes: status: exit status. text: what it wrote. report: its JSON report, if any."""

    status: int
    text: str
    report: dict[str, Any]

    def item(self, name: str) -> dict[str, Any]:
        """What the report says of the test whose id ends so."""
        found = [item for item in self.report["items"] if item["nodeid"].endswith(name)]
        assert len(found) == 1, (name, [item["nodeid"] for item in self.report["items"]])
        return found[0]

    def words(self, name: str) -> list[str]:
        return [step["word"] for step in self.item(name)["steps"]]


class Project:
    """A folder with tests. ``world`` is a folder outside every workspace, that commands can look at as ``$WORLD``."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.world = root / "world"
        self.root.mkdir()
        self.world.mkdir()
        (self.root / "pytest.ini").write_text("[pytest]\nveil_pass_env = WORLD\n")

    def tests(self, source: str, name: str = "test_it.py") -> None:
        (self.root / name).write_text(source)

    def given(self, name: str, content: str) -> None:
        """Something in the world: the same command sees other things."""
        (self.world / name).write_text(content)

    def pytest(self, mode: str | None, *options: str) -> Ran:
        """Run it in a mode, ``None`` for the eval mode off."""
        report = self.root.parent / "report.json"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "veil"]
        if any(option.startswith("-n") for option in options):
            pytest.importorskip("xdist")
            command += ["-p", "xdist"]
        if mode is not None:
            command += [f"--veil-mode={mode}", f"--veil-report={report}"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))}
        environment = {**kept, "PYTHONPATH": str(ROOT), "WORLD": str(self.world), "COLUMNS": "200"}
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other plugins cost seconds and say nothing here
        done = subprocess.run(
            [*command, *options],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=240,
        )
        assert "INTERNALERROR" not in done.stdout, done.stdout
        return Ran(done.returncode, done.stdout, json.loads(report.read_text()) if report.exists() else {})

    def recorded(self, *options: str) -> Ran:
        """Record everything; it has to pass."""
        done = self.pytest("record", *options)
        assert done.status == 0, done.text
        return done

    def junit(self, path: Path) -> dict[str, dict[str, str]]:
        """Properties by name of the test."""
        cases = ElementTree.parse(path).getroot().iter("testcase")
        return {
            str(c.get("name")): {str(p.get("name")): str(p.get("value")) for p in c.iter("property")} for c in cases
        }
