"""``veil.plan`` and ``veil plan``: the pre-check as everybody reaches it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, veil_json
from command_line import veil as run_veil

import veil
from veil.host.pictures import GIT_FIRST


def test_a_text_is_taken_apart() -> None:
    text = "git add -A && git push --force > log"
    found = veil.plan(text)
    assert isinstance(found, veil.Assessment)
    assert (found.category, found.reversible) == ("destructive", False)
    assert found.warning
    assert [effect._asdict() for effect in found.effects] == [{"path": "log", "what": "write"}]
    assert [text[slice(*segment.span)] for segment in found.segments] == [segment.text for segment in found.segments]
    assert {segment.category for segment in found.segments} == {"mutating", "destructive"}
    assert all(segment.reason for segment in found.segments)
    assert json.loads(json.dumps(found.to_dict()))["category"] == "destructive"
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.category = "read-only"  # type: ignore[misc]


def test_an_argv_is_read_without_a_shell() -> None:
    assert veil.plan(["echo", "x; rm -rf y > z"]).category == "read-only"
    assert veil.plan("echo x; rm -rf y > z").category == "destructive"
    assert [effect.path for effect in veil.plan(["rm", Path("a b"), b"c"]).effects] == ["a b", "c"]  # type: ignore[list-item]
    assert veil.plan(["sh", "-c", "rm x"]).category == "destructive"


@pytest.mark.parametrize("command", ["", " \n", [], [""], None, 7, b"ls", ["ls", 3], ["a\0b"]])
def test_what_is_no_command_is_bad_input(command: object) -> None:
    with pytest.raises(veil.BadInput, match=r"^command"):
        veil.plan(command)  # type: ignore[arg-type]


def test_nothing_is_run_or_looked_at(tmp_path: Path) -> None:
    (tmp_path / "ls").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "ls").chmod(0o755)
    code = "import veil; print(veil.plan('ls; rm -rf *; touch made').category)"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("destructive\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["ls"]


def test_the_name_is_a_function_whatever_was_imported() -> None:
    code = "import veil, veil.precheck, veil.rewinding, veil.classify, veil.snapshots, veil.pipeline\n"
    code += "print(*(type(getattr(veil, name)).__name__ for name in veil.__all__ if name[0].islower()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert set(done.stdout.split()) == {"function"}, done.stderr


def test_without_the_parser_it_says_what_to_install(tmp_path: Path) -> None:
    """The packages are hidden from the interpreter, as on a machine that has none."""
    (tmp_path / "tree_sitter.py").write_text("raise ModuleNotFoundError('no tree_sitter', name='tree_sitter')")
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = run_veil("plan", "ls", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (125, b"")
    assert b"tree-sitter-bash" in done.stderr
    assert done.stderr.count(b"\n") == 1
    refused = subprocess.run(
        [sys.executable, "-m", "veil", "plan", "--json", "ls"],
        cwd=tmp_path,
        env={**os.environ, **env},
        capture_output=True,
    )
    assert refused.returncode == 125
    assert json.loads(refused.stdout)["error"] == "parser_missing"


@pytest.mark.needs("git")
def test_a_run_does_not_need_the_parser(tmp_path: Path) -> None:
    """Not even where the pre-check is asked whether looking for changes can be saved: where git tracks many files."""
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "tree_sitter.py").write_text("raise ModuleNotFoundError('no tree_sitter', name='tree_sitter')")
    (tmp_path / "large").mkdir()
    for number in range(GIT_FIRST + 1):
        (tmp_path / "large" / f"f{number}").write_bytes(b"")
    for words in (("init", "-q"), ("add", ".")):
        subprocess.run(["git", *words], cwd=tmp_path / "large", check=True)
    with_it = veil_json("run", "ls f1", cwd=tmp_path / "large")
    assert (with_it["stdout"], with_it["effects"]) == ("f1", "read-only")
    env = {"PYTHONPATH": f"{tmp_path / 'away'}{os.pathsep}{ROOT}"}
    without = veil_json("run", "ls f1", cwd=tmp_path / "large", env=env)
    assert (without["stdout"], "effects" in without) == ("f1", False)


def test_the_json_document_is_that_of_the_function(tmp_path: Path) -> None:
    text = "curl -s example.org | tee page; echo 'rm -rf /'"
    assert veil_json("plan", text, cwd=tmp_path) == veil.plan(text).to_dict()
    assert veil_json("plan", "--", "rm", "-rf", "a b", cwd=tmp_path) == veil.plan(["rm", "-rf", "a b"]).to_dict()
    assert veil_json("plan", "ls", cwd=tmp_path) == {"category": "read-only", "reversible": True}
    assert veil_json("plan", " ", cwd=tmp_path, code=125)["error"] == "bad_input"


def test_people_get_it_told(tmp_path: Path) -> None:
    shown = run_veil("plan", "git add -A && rm -rf build\t'x\x1b[31m'", cwd=tmp_path).stdout.decode()
    first, *rest = shown.splitlines()
    assert first == "destructive, not to be undone"
    assert any(line.split()[:3] == ["mutating", "git", "add"] for line in rest)
    assert any("would be lost" in line and "build" in line for line in rest)
    assert any(line.startswith("delete ") and line.endswith("build") for line in rest)
    assert "\x1b" not in shown
    assert run_veil("plan", "ls", cwd=tmp_path).stdout.decode() == "read-only\n"
