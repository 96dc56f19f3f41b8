"""``advice`` after a command that destroyed something: where a checkpoint would have helped, at no cost elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, environment, veil_json
from command_line import veil as run_veil

import veil


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "ws"
    (folder / "build").mkdir(parents=True)
    (folder / "build" / "f").write_text("x")
    monkeypatch.chdir(folder)
    return folder


def test_destructive_and_unconfined(ws: Path) -> None:
    result = veil.run("echo going; rm -rf build")
    assert result.advice is not None
    assert "build" in result.advice
    assert "checkpoint" in result.advice
    assert result.to_dict()["advice"] == result.advice
    # also of what was kept, and as an argv
    assert veil.detail(result.id).result.advice == result.advice
    (ws / "g").write_text("x")
    assert veil.run(["rm", "g"]).advice is not None


@pytest.mark.needs("git")
def test_commits_and_changes_that_are_lost(ws: Path) -> None:
    veil.run("git init -q; git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m one; git add .")
    result = veil.run("git reset -q --hard")
    assert result.deleted == ["build/f"]
    assert result.advice is not None
    assert "not committed" in result.advice


@pytest.mark.parametrize(
    "command",
    [
        "echo rm -rf build",
        "grep -r rm .",
        "find . -name '*.py'",
        "find . -type f -exec cat {} +",
        "echo x > made",
        "rm -f nothing-of-this-name",  # nothing was changed
        "git status",
    ],
)
def test_nobody_is_warned_for_nothing(ws: Path, command: str) -> None:
    assert veil.run(command).advice is None


def test_nor_for_what_no_checkpoint_brings_back(ws: Path) -> None:
    command = "docker rm veil-has-no-such-container"
    assert veil.plan(command).category == "destructive"
    assert veil.run(command, effects=False).advice is None


def test_what_is_more_urgent_comes_first(ws: Path) -> None:
    assert "time limit" in (veil.run("rm build/f; sleep 30", timeout=0.3).advice or "")


def test_a_shell_that_is_not_read_here(ws: Path, tmp_path: Path) -> None:
    shell = tmp_path / "odd"
    shell.write_text('#!/bin/sh\nexec /bin/sh "$@"\n')
    shell.chmod(0o755)
    result = veil.run("rm -r build", shell=shell)
    assert result.deleted
    assert result.advice is None


@pytest.mark.needs("bubblewrap")
def test_a_confined_command_is_not_warned_about(ws: Path) -> None:
    result = veil.run("rm -r build", sandbox=True)
    assert result.deleted
    assert "checkpoint" not in (result.advice or "")


def test_the_command_line_says_it(ws: Path) -> None:
    shown = run_veil("run", "rm -r build", cwd=ws).stdout.decode()
    assert shown.splitlines()[-1].startswith("advice: it destroys (would be lost: build)")
    (ws / "f").write_text("x")
    assert "checkpoint" in veil_json("run", "rm f", cwd=ws)["advice"]


def test_plain_runs_do_not_pay_for_it(ws: Path) -> None:
    """Neither the parser nor its tables are imported by a run, or by a result that nobody has to be warned of."""
    code = "import sys, veil\nresult = veil.run(sys.argv[1])\n"
    code += "seen = [name in sys.modules for name in ('tree_sitter', 'veil.classify')]\n"
    code += "result.to_dict()\nprint(seen, 'tree_sitter' in sys.modules)"
    told = {}
    for command in ("echo x > made; ls; git --version", "rm -r build"):
        done = subprocess.run(
            [sys.executable, "-c", code, command], cwd=ws, env=environment(), capture_output=True, text=True
        )
        told[command] = done.stdout.strip() or done.stderr
    assert list(told.values()) == ["[False, False] False", "[False, False] True"]


def test_without_a_parser_there_is_no_advice(ws: Path, tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "tree_sitter.py").write_text("raise ModuleNotFoundError('none', name='tree_sitter')")
    told = veil_json("run", "rm -r build", cwd=ws, env={"PYTHONPATH": f"{tmp_path / 'away'}:{ROOT}"})
    assert (told["exit"], "advice" in told) == (0, False)
