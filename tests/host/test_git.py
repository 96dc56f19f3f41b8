"""Internal git: nothing that a hostile repository says is run, and nothing of it is changed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from git_places import place, repository, run

from veil.host import git

__all__ = ["place"]

pytestmark = pytest.mark.needs("git")


def ask_everything(root: Path) -> git.Status:
    """Every internal call there is, on a tree in which git has to look at contents."""
    for name in ("f", "g"):
        path = root / name
        path.write_bytes(path.read_bytes().swapcase())
    (root / "new").write_text("new")
    here = repository(root)
    told = git.status(here, here.index())
    git.head(here)
    git.ignored(here, ["new", "f"])
    git.blobs(here, ["f", "new"])
    git.moved_files(here, None, git.head(here).oid)
    assert {"f", "g", "new"} <= told.listed
    return told


HOSTILE = {
    "fsmonitor": ("config", "core.fsmonitor", "touch {mark}; false"),
    "hooks": ("config", "core.hooksPath", "{evil}"),
    "pager": ("config", "core.pager", "touch {mark}; cat"),
    "pager of status": ("config", "pager.status", "touch {mark}; cat"),
    "external diff": ("config", "diff.external", "{evil}/run"),
    "alias": ("config", "alias.status", "!touch {mark}"),
    "ssh": ("config", "core.sshCommand", "touch {mark}"),
    "editor": ("config", "core.editor", "touch {mark}"),
    "askpass": ("config", "core.askPass", "{evil}/run"),
    "filter clean": ("config", "filter.evil.clean", "touch {mark}; cat"),
    "filter process": ("config", "filter.evil.process", "{evil}/run"),
    "filter smudge": ("config", "filter.evil.smudge", "touch {mark}; cat"),
    "textconv": ("config", "diff.evil.textconv", "{evil}/run"),
    "external diff by attribute": ("config", "diff.evil.command", "{evil}/run"),
    "gpg": ("config", "gpg.program", "{evil}/run"),
    "credential helper": ("config", "credential.helper", "!touch {mark}"),
    "alternate refs": ("config", "core.alternateRefsCommand", "touch {mark}"),
}


def arm(root: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A marker, and a folder of programs (all git hooks and ``run``) that would leave it."""
    mark, evil = tmp_path / "mark", tmp_path / "evil"
    evil.mkdir()
    names = ("run", "fsmonitor-watchman", "post-index-change", "pre-commit", "reference-transaction", "post-checkout")
    for name in names:
        for folder in (evil, root / ".git" / "hooks"):
            program = folder / name
            program.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
            program.chmod(0o755)
    (root / ".gitattributes").write_text("* filter=evil diff=evil\n")
    return mark, evil


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("where", ["config", "include"])
def test_nothing_that_a_repository_says_is_run(name: str, where: str, place: Path, tmp_path: Path) -> None:
    """cls-22."""
    mark, evil = arm(place, tmp_path)
    _, key, value = HOSTILE[name]
    value = value.format(mark=mark, evil=evil)
    if where == "include":
        run(place, "config", "-f", str(tmp_path / "more"), key, value)
        run(place, "config", "include.path", str(tmp_path / "more"))
    else:
        run(place, "config", key, value)
    ask_everything(place)
    assert not mark.exists()


@pytest.mark.parametrize("key", ["clean", "process"])
def test_the_traps_are_sharp(key: str, place: Path, tmp_path: Path) -> None:
    """A plain ``git status`` does run these: otherwise the tests above would prove nothing."""
    mark, evil = arm(place, tmp_path)
    run(place, "config", f"filter.evil.{key}", f"{evil}/run")
    (place / "f").write_text("F\n")
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    subprocess.run(["git", "status"], cwd=place, env=env, check=False, capture_output=True)
    assert mark.exists()


def test_the_fsmonitor_trap_is_sharp(place: Path, tmp_path: Path) -> None:
    mark, _ = arm(place, tmp_path)
    run(place, "config", "core.fsmonitor", f"touch {mark}; false")
    subprocess.run(["git", "status"], cwd=place, check=False, capture_output=True)
    assert mark.exists()


def test_a_required_filter_does_not_stop_the_answer(place: Path, tmp_path: Path) -> None:
    mark, _ = arm(place, tmp_path)
    run(place, "config", "filter.evil.clean", f"touch {mark}; cat")
    run(place, "config", "filter.evil.required", "true")
    ask_everything(place)
    assert not mark.exists()


@pytest.mark.parametrize("driver", ["with space", "dot.ted", 'quo"te', "café"])
def test_filters_with_strange_names_are_off(driver: str, place: Path, tmp_path: Path) -> None:
    mark, _ = arm(place, tmp_path)
    run(place, "config", f"filter.{driver}.clean", f"touch {mark}; cat")
    (place / ".gitattributes").write_text(f"* filter={driver}\n")
    ask_everything(place)
    assert not mark.exists()


def test_a_filter_whose_name_cannot_be_switched_off_is_refused(place: Path, tmp_path: Path) -> None:
    mark, _ = arm(place, tmp_path)
    run(place, "config", "filter.a=b.clean", f"touch {mark}; cat")
    (place / ".gitattributes").write_text("* filter=a=b\n")
    with pytest.raises(git.GitFailed, match="cannot be switched off"):
        git.status(repository(place), repository(place).index())
    assert not mark.exists()


def test_a_submodules_own_configuration_is_not_run(place: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    run(inner, "init", "-q")
    (inner / "z").write_text("z\n")
    run(inner, "add", ".")
    run(inner, "commit", "-q", "-m", "z")
    run(place, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(inner), "sub")
    run(place, "commit", "-q", "-m", "sub")
    mark = tmp_path / "mark"
    run(place / "sub", "config", "filter.evil.clean", f"touch {mark}; cat")
    run(place / "sub", "config", "core.fsmonitor", f"touch {mark}; false")
    (place / "sub" / ".gitattributes").write_text("* filter=evil\n")
    (place / "sub" / "z").write_text("Z\n")
    assert "sub" in ask_everything(place).nested
    assert git.ignored(repository(place / "sub"), ["z"]) == set()
    assert not mark.exists()


def test_the_callers_environment_and_a_git_of_the_trees_own_do_not_count(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    fake = place / "git"
    fake.write_text(f"#!/bin/sh\ntouch {mark}\n")
    fake.chmod(0o755)
    monkeypatch.chdir(place)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {mark}")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {mark}; false")
    ask_everything(place)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    git.ignored(repository(place), ["f"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(git.GitFailed, match="not found"):
        git.ignored(repository(place), ["f"])
    assert not mark.exists()


def test_core_worktree_does_not_lead_elsewhere(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret").touch()
    run(place, "config", "core.worktree", str(other))
    assert "secret" not in ask_everything(place).listed


def test_the_index_is_never_written(place: Path) -> None:
    before = (place / ".git" / "index").read_bytes()
    ask_everything(place)
    assert (place / ".git" / "index").read_bytes() == before


def test_a_call_that_takes_too_long_is_a_failure(place: Path) -> None:
    with pytest.raises(git.GitFailed, match="longer than"):
        git.call(repository(place), ["status"], seconds=0.0)
