"""The CI script against a small project of its own, with a stand-in for the tools that it calls."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "run"
#: What the script would install when missing: a test must never make it do so.
NOTHING_TO_INSTALL = pytest.mark.needs(
    "bash", "bubblewrap", "gcc", "git", "make", "node", "rsync", "strace", "user namespaces"
)
README = "# x\n\n<!-- the test command: read by CI -->\n```console\n{line}\n```\n\n```console\nother\n```\n"
#: Stands for .venv/bin/python: fails for the step that FAIL names.
PYTHON = '#!/bin/sh\necho "python $*"\ncase "$*" in *"$FAIL"*) exit 3;; esac\n'
MAKES_PYTHON = "mkdir -p .venv/bin && cp fake .venv/bin/python && .venv/bin/python the suite"


def readme_command() -> str:
    """The command as a reader of README.md finds it, found here without the script."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- the test command[^\n]*-->\n```\w*\n(.*?)\n```", text, re.DOTALL)
    assert len(blocks) == 1
    return str(blocks[0])


def project(folder: Path, line: str) -> Path:
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / ".ci" / "run")
    (folder / "README.md").write_text(README.format(line=line), encoding="utf-8")
    fake = folder / "fake"
    fake.write_text(PYTHON, encoding="utf-8")
    fake.chmod(0o755)
    (folder / ".gitignore").write_text("ignored\n", encoding="utf-8")
    (folder / "ignored").write_text("must not be copied", encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str, fail: str = "nothing fails") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "TMPDIR": str(folder.parent), "FAIL": fail}
    command = ["bash", str(folder / ".ci" / "run"), *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def test_ci_runs_the_very_command_of_the_readme() -> None:
    done = subprocess.run(["bash", str(SCRIPT), "--test-command"], capture_output=True, text=True, timeout=60)
    assert done.stdout == readme_command() + "\n"
    assert os.access(SCRIPT, os.X_OK)


def test_the_command_is_one_line_that_sets_itself_up() -> None:
    command = readme_command()
    assert "\n" not in command
    assert command.startswith("python3 -m venv .venv && ")
    assert " -m pytest" in command.split(" && ")[-1]
    assert "://" not in command + SCRIPT.read_text(encoding="utf-8"), "registries are those that pip and apt have"


@NOTHING_TO_INSTALL
def test_everything_passed_and_nothing_stays(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", f'{MAKES_PYTHON} && test "$VEIL_CI" = 1 && test ! -e ignored && touch made')
    before = sorted(tmp_path.rglob("*"))
    done = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "python the suite" in done.stdout
    for step in ("-m ruff check .", "-m ruff format --check .", "-m mypy", "tests/test_import_law.py"):
        assert f"python {step}" in done.stdout or step in done.stdout
    assert sorted(tmp_path.rglob("*")) == before


@NOTHING_TO_INSTALL
@pytest.mark.parametrize("step", ["the suite", "-m ruff check", "-m ruff format", "-m mypy", "test_import_law", "pip"])
def test_any_step_that_fails_fails_the_run_and_the_others_still_run(tmp_path: Path, step: str) -> None:
    done = run(project(tmp_path / "project", MAKES_PYTHON), fail=step)
    assert done.returncode == 1, done.stdout + done.stderr
    # pip installs twice: the linters, and the frameworks of agents
    assert done.stdout.count(": FAILED (3)") == (2 if step == "pip" else 1)
    assert "python -m mypy" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["project"]


@NOTHING_TO_INSTALL
@pytest.mark.linux  # processes left behind are found in /proc
def test_a_process_left_behind_is_named_ended_and_fails_the_run(tmp_path: Path) -> None:
    line = f"{MAKES_PYTHON} && {{ setsid sleep 987 >/dev/null 2>&1 & echo left $!; }}"
    done = run(project(tmp_path / "project", line))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "sleep 987" in done.stdout.split("processes left behind:")[1]
    pid = int(re.findall(r"^left (\d+)$", done.stdout, re.MULTILINE)[0])
    for _ in range(100):
        try:
            ended = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            ended = True
        if ended:
            break
        time.sleep(0.1)
    assert ended


@NOTHING_TO_INSTALL
def test_only_what_is_missing_is_installed(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", MAKES_PYTHON)
    programs = tmp_path / "programs"
    programs.mkdir()
    # all that the script and the line call, but no strace; python3 may be a shim that finds itself through PATH
    used = "awk bash bwrap cat chmod cp dirname env git gcc grep make mkdir mktemp node readlink rm rsync sed sh sleep"
    paths = {name: shutil.which(name) for name in [*used.split(), "tr", "unshare"]}
    for name, found in {**paths, "python3": sys.executable}.items():
        assert found, name
        (programs / name).symlink_to(found)
    for name, body in [("apt-get", f'echo "$@" >> {tmp_path}/asked'), ("sudo", 'shift; exec "$@"')]:
        (programs / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    environ = {**os.environ, "PATH": str(programs), "TMPDIR": str(tmp_path), "FAIL": "nothing fails"}
    command = ["bash", str(folder / ".ci" / "run")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert asked == ["update -qq", "install -y -qq --no-install-recommends strace"]


@pytest.mark.needs("bash")
@pytest.mark.parametrize("line", ["", "one\ntwo"])
def test_a_readme_without_exactly_one_line_is_refused(tmp_path: Path, line: str) -> None:
    done = run(project(tmp_path / "project", line), "--test-command")
    assert done.returncode == 2
    assert "exactly one line" in done.stderr
