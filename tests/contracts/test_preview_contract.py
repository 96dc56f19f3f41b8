"""Every way of making a preview, through the whole of a run, by root and by a plain user."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import preview_scenarios
import pytest
from preview_scenarios import SCENARIOS, Desk

from veil.host import replica

USER = 1001
ROOT = Path(__file__).parents[2]


def _methods() -> list[object]:
    found: list[object] = [
        pytest.param("overlay", marks=[pytest.mark.linux, pytest.mark.needs("user namespaces")]),
        "copy",
        "bare copy",
    ]
    # a file system with shared blocks is nothing that a machine can be given by installing something
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "file").write_text("x" * 4096)
        if replica.shares(folder, folder):
            found.insert(1, "clone")
    return found


METHODS = _methods()
#: What a scenario needs beside what all do.
NEEDS = {"a_sandbox_holds_back_the_rest": [pytest.mark.linux, pytest.mark.needs("bubblewrap")]}
NAMES = [pytest.param(name, marks=NEEDS.get(name, ())) for name in SCENARIOS]


@pytest.mark.needs("bash", "git")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_preview_as_whoever_runs_the_tests(name: str, method: str, tmp_path: Path) -> None:
    SCENARIOS[name](Desk(tmp_path, method))


@functools.cache
def interpreter() -> str:
    """A Python that everybody may run."""
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        asked = "import sys; sys.exit(sys.version_info < (3, 10))"
        try:
            if subprocess.run([candidate, "-c", asked], user=USER, group=USER, extra_groups=[]).returncode == 0:
                return candidate
        except OSError:
            continue
    pytest.skip("needs a Python of 3.10 or newer that every user may run: install python3")


@pytest.fixture(scope="module")
def library() -> Iterator[Path]:
    """The package and what a run needs of others, where everybody can read them."""
    folder = Path(tempfile.mkdtemp(prefix="veil-previews-"))
    try:
        folder.chmod(0o755)
        shutil.copytree(ROOT / "veil", folder / "veil", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(preview_scenarios.__file__, folder)
        for name in ("pluggy", "psutil", "filelock"):
            found = importlib.util.find_spec(name)
            assert found is not None
            assert found.origin is not None
            shutil.copytree(Path(found.origin).parent, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.linux
@pytest.mark.needs("root", "user namespaces", "bash", "git")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_preview_as_a_plain_user(name: str, method: str, library: Path) -> None:
    base = Path(tempfile.mkdtemp(prefix="veil-previews-"))
    try:
        os.chown(base, USER, USER)
        for below in ("state", "home", "work"):
            (base / below).mkdir()
            os.chown(base / below, USER, USER)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(base / "home"),
            "VEIL_STATE_DIR": str(base / "state"),
            "PYTHONPATH": str(library),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        words = [interpreter(), str(library / "preview_scenarios.py"), name, method, str(base / "work")]
        who: dict[str, Any] = {"user": USER, "group": USER, "extra_groups": []}
        done = subprocess.run(words, **who, cwd=base, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.endswith(f"done {USER}\n")
    finally:
        shutil.rmtree(base)
