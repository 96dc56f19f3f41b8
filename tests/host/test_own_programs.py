"""Tools that veil starts outside of every confinement are never those that a confined command may have left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from veil.host import git, strace
from veil.host.confine.bubblewrap import programs
from veil.host.programs import named

ROOT = Path(__file__).parents[2]


def planted(folder: Path, witness: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("bwrap", "strace", "git"):
        real = shutil.which(name) or "/bin/false"
        (folder / name).write_text(f"#!/bin/sh\necho \"{name} $*\" >> '{witness}'\nexec '{real}' \"$@\"\n")
        (folder / name).chmod(0o755)


@pytest.mark.parametrize("where", ["working folder", "repository", "linked", "linked work tree"])
def test_folders_of_a_project_do_not_count(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    planted(project / ".venv" / "bin", tmp_path / "witness")
    listed = project / ".venv" / "bin"
    if where == "working folder":
        monkeypatch.chdir(project)
    elif where == "linked work tree":
        (project / ".git").write_text("gitdir: elsewhere\n")
    else:
        (project / ".git").mkdir()
    if where == "linked":
        listed = tmp_path / "tools"
        listed.symlink_to(project / ".venv" / "bin")
    monkeypatch.setenv("PATH", f"{listed}:{os.environ['PATH']}")
    for name in ("bwrap", "strace", "git"):
        assert not any(Path(path).is_relative_to(listed) for path in named(name))
    assert not any("project" in path for path in programs())
    assert strace.find() != str(listed / "strace")
    assert git.executable() != str(listed / "git")


def test_other_folders_count_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        planted(tmp_path / name, tmp_path / "witness")
    (tmp_path / "one" / "strace").chmod(0o644)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("PATH", f".:one::{tmp_path}/one:{tmp_path}/none:{tmp_path}/two")
    assert list(named("git")) == [f"{tmp_path}/one/git", f"{tmp_path}/two/git"]
    assert list(named("strace")) == [f"{tmp_path}/two/strace"]
    assert list(named("nothing")) == []


@pytest.mark.needs("bubblewrap", "strace")
def test_nothing_that_a_confined_command_left_in_the_virtual_environment_is_run_for_it(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    project = tmp_path / "project"
    planted(tmp_path / "made", witness)
    (project / ".venv" / "bin").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
    plant = f"cp '{tmp_path}/made/'* .venv/bin/"
    path = f"{project}/.venv/bin:{os.environ['PATH']}"
    programs = (
        f"veil.run({plant!r}, sandbox={{'writable': [{str(tmp_path / 'made')!r}]}}, check=True)",
        "veil.run('echo x > a', sandbox=True, trace=True, check=True); veil.run('echo y > b', check=True)",
    )
    for number, text in enumerate(programs):
        cwd = project if number == 0 else tmp_path
        done = subprocess.run(
            [sys.executable, "-c", f"import veil, os; {text.replace('sandbox=', f'cwd={str(project)!r}, sandbox=')}"],
            cwd=cwd,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    assert (project / ".venv" / "bin" / "bwrap").exists()
    assert not witness.exists(), witness.read_text()


def test_a_link_into_a_project_is_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("links", "other/bin", "system"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("other/bin", "system"):
        (tmp_path / folder / "git").write_text("#!/bin/sh\n")
        (tmp_path / folder / "git").chmod(0o755)
    (tmp_path / "links" / "git").symlink_to(tmp_path / "other" / "bin" / "git")
    monkeypatch.setenv("PATH", f"{tmp_path}/links:{tmp_path}/other/bin:{tmp_path}/system")
    assert list(named("git")) == [f"{tmp_path}/{folder}/git" for folder in ("links", "other/bin", "system")]
    assert list(named("git", f"{tmp_path}/other")) == [f"{tmp_path}/system/git"]
    (tmp_path / "other" / ".git").mkdir()
    assert list(named("git")) == [f"{tmp_path}/system/git"]
