"""Facts about paths at the end of a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from veil.layers.look import LookLayer
from veil.model.command import Command, Look, Request
from veil.model.outcome import Fact, Findings, Outcome
from veil.model.plan import Launch, Plan


def looked(cwd: Path, paths: tuple[str, ...], *, wish: bool = True) -> Findings:
    launch = Launch(("true",), str(cwd), {})
    plan = Plan(Request(Command(("true",), str(cwd))), looks=paths)
    entered = LookLayer().enter(Look(paths) if wish else object(), launch, plan)
    assert next(entered) is launch
    (cwd / "late").write_text("made by the run")
    with pytest.raises(StopIteration) as end:
        entered.send(Outcome("exited", 0))
    findings = end.value.value
    assert isinstance(findings, Findings)
    return findings


def test_kinds_sizes_and_modes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("four")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "dir").mkdir(mode=0o755)
    os.mkfifo(tmp_path / "pipe", 0o600)
    # exp-06: a dangling link is there
    (tmp_path / "dangling").symlink_to("none")
    facts = looked(tmp_path, ("file", "./dir", "pipe", "dangling", "gone", "file/below", "late")).files
    assert facts["file"] == Fact("file", 4, 0o640)
    assert facts["./dir"].kind == "dir"
    assert facts["pipe"] == Fact("fifo", 0, 0o600)
    assert facts["dangling"].kind == "symlink"
    assert facts["gone"] == Fact(None)
    assert facts["file/below"] == Fact(None)
    assert facts["late"].size == len("made by the run")


def test_relative_to_the_cwd_or_absolute_and_as_written(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "x").touch()
    facts = looked(tmp_path / "sub", ("../x", str(tmp_path / "x"), "nul\0byte")).files
    assert facts["../x"].kind == "file"
    assert facts[str(tmp_path / "x")].kind == "file"
    assert facts["nul\0byte"] == Fact(None)


def test_what_cannot_be_looked_at_is_no_fact(tmp_path: Path) -> None:
    findings = looked(tmp_path, ("n" * 5000, "late"))
    assert set(findings.files) == {"late"}
    assert list(findings.notes["look_gaps"]) == ["n" * 5000]


def test_the_plans_paths_are_looked_at_without_a_wish_of_ones_own(tmp_path: Path) -> None:
    assert looked(tmp_path, ("late",), wish=False).files["late"].kind == "file"
