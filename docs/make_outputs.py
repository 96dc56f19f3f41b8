"""Runs the examples in README.md and docs/ and writes what they print into the pages: ``python docs/make_outputs.py``.

What is run: a ``python`` block after ``<!-- run -->`` (the ``text`` block behind it is its output), each line with a
``$`` of a ``console`` block after ``<!-- shell -->``, and the main command of the README without its installation. Each
block has a folder and a record store of its own. ``tests/test_docs.py`` does the same and compares.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("running", "effects", "results", "pytest", "plan", "checkpoints", "trace")
    ),
    *(ROOT / "docs" / f"{name}.md" for name in ("shell", "init", "agents", "governed")),
]

_PYTHON = re.compile(r"(<!-- run -->\n```python\n(?P<code>.*?)```\n\n```text\n)(?P<told>.*?)(?=```)", re.DOTALL)
_SHELL = re.compile(r"(<!-- shell -->\n```console\n)(?P<told>.*?)(?=```)", re.DOTALL)
_MAIN = re.compile(
    r"(<!-- the main command -->\n```console\n(?P<line>[^\n]*)\n```\n\n<!-- what it prints -->\n```text\n)"
    r"(?P<told>.*?)(?=```)",
    re.DOTALL,
)
_SETS_UP = "pip install -q -e . && "
#: What differs from run to run.
_VARIES = (
    (r"\d+(?:\.\d+)?(?= ?s\b)", "N"),
    (r"(?<=ms[\"']: )\d+", "N"),
    (r"(?<=pid[\"']: )\d+", "N"),
    (r"\d\d-\d\d \d\d:\d\d:\d\d", "DATE"),
    (r"\S*bash: line", "bash: line"),
)


def same(text: str) -> str:
    """``text`` without what differs from run to run."""
    for pattern, instead in _VARIES:
        text = re.sub(pattern, instead, text)
    return text


class Place:
    """A fresh folder with a store of its own, in which ``veil`` is this checkout's."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="veil-docs-")).resolve()
        self.work = self.folder / "work"
        programs = self.work / ".venv" / "bin"
        programs.mkdir(parents=True)
        for name, words in {"veil": " -m veil", "pytest": " -m pytest", "python": ""}.items():
            script = programs / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        foreign = ("VEIL_", "GIT_", "PYTEST_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        for name in ("FORCE_COLOR", "COV_CORE_SOURCE", "COVERAGE_PROCESS_START"):
            kept.pop(name, None)
        self.environment = {
            **kept,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "VEIL_STATE_DIR": str(self.folder / "state"),
            # of the plugins that are installed here, a fresh machine has ours alone
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "pytest_veil.plugin",
        }

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *exc: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def examples(self) -> None:
        """Copy them here."""
        shutil.copytree(ROOT / "examples", self.work / "examples", ignore=_MADE)

    def tell(self, *argv: str) -> str:
        """Run it in the folder; what it wrote to both streams."""
        done = subprocess.run(
            argv,
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return done.stdout


def python(code: str) -> str:
    with Place() as place:
        return place.tell(sys.executable, "-c", code)


def shell(block: str) -> str:
    """The block with its lines run anew and their output behind each."""
    with Place() as place:
        lines = [line for line in block.split("\n") if line.startswith("$ ")]
        if any("examples/" in line for line in lines):
            place.examples()
        return "".join(f"{line}\n{place.tell('bash', '-c', line[2:])}" for line in lines)


def main_command(line: str) -> str:
    """What the command prints once veil is installed."""
    _, found, rest = line.partition(_SETS_UP)
    if not found:
        raise ValueError(f"the main command does not install with {_SETS_UP!r}")
    with Place() as place:
        place.examples()
        return place.tell("bash", "-c", rest)


_MADE = shutil.ignore_patterns("out", "__pycache__", ".pytest_cache")


def remade(page: str) -> str:
    """The page with all outputs made anew."""
    page = _MAIN.sub(lambda found: found.group(1) + main_command(found["line"]), page)
    page = _PYTHON.sub(lambda found: found.group(1) + python(found["code"]), page)
    return _SHELL.sub(lambda found: found.group(1) + shell(found["told"]), page)


def main() -> None:
    for path in PAGES:
        old = path.read_text(encoding="utf-8")
        new = remade(old)
        if same(new) != same(old):
            path.write_text(new, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
