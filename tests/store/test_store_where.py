"""Which folder it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from veil.store.where import project_directory, project_root, state_directory, trespass


def test_the_order_of_places(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "xdg"), "VEIL_STATE_DIR": str(tmp_path / "mine")}
    found = state_directory(env)
    assert (found.path, found.source) == (tmp_path / "mine", "VEIL_STATE_DIR")
    env["VEIL_STATE_DIR"] = "~/x"
    assert state_directory(env).path == tmp_path / "x"
    env["VEIL_STATE_DIR"] = "x/../y"
    assert state_directory(env).path == Path.cwd() / "y"
    env["VEIL_STATE_DIR"] = ""
    assert state_directory(env).path == tmp_path / "xdg" / "veil"
    env["XDG_STATE_HOME"] = "relative"
    found = state_directory(env)
    assert (found.path, found.source, found.why) == (tmp_path / ".local" / "state" / "veil", "home", None)
    assert list(tmp_path.iterdir()) == []


def unusable(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").write_text("no folder")
    return {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}


def test_without_a_home_it_is_the_temporary_folder(tmp_path: Path) -> None:
    found = state_directory(unusable(tmp_path))
    assert (found.path, found.source) == (tmp_path / f"veil-{os.geteuid()}", "temp")
    assert "home is not a folder" in str(found.why)


@pytest.mark.parametrize("trap", ["symlink", "file"])
def test_a_trap_in_the_temporary_folder_is_not_stepped_into(tmp_path: Path, trap: str) -> None:
    place = tmp_path / f"veil-{os.geteuid()}"
    if trap == "symlink":
        place.symlink_to(tmp_path)
    else:
        place.touch()
    found = state_directory(unusable(tmp_path))
    assert (found.path, found.source) == (None, "none")
    assert "is not a folder" in str(found.why)


@pytest.mark.needs("root")
def test_a_folder_of_another_user_is_not_taken(tmp_path: Path) -> None:
    place = tmp_path / f"veil-{os.geteuid()}"
    place.mkdir()
    os.chown(place, 12345, 12345)
    found = state_directory(unusable(tmp_path))
    assert found.path is None
    assert "another user" in str(found.why)
    os.chmod(tmp_path, 0o1777)
    assert trespass(place / "projects") == f"{place} belongs to another user"
    os.chmod(tmp_path, 0o700)
    assert trespass(place / "projects") is None


def test_the_project_is_the_top_of_the_work_tree(tmp_path: Path) -> None:
    deep = tmp_path / "repo" / "a" / "b"
    deep.mkdir(parents=True)
    assert project_root(deep) == deep
    (tmp_path / "repo" / "a" / ".git").mkdir()  # empty: git does not count it either
    assert project_root(deep) == deep
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert project_root(deep) == tmp_path / "repo"
    (deep / ".git").write_text("gitdir: ../../.git/modules/b\n")
    assert project_root(deep) == deep
    (tmp_path / "link").symlink_to(tmp_path / "repo" / "a")
    assert project_root(tmp_path / "link") == tmp_path / "repo"


def test_one_project_has_one_directory_whatever_its_name(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"it's\n\xff../x".replace(b"/", b"-"))
    odd.mkdir()
    (tmp_path / "link").symlink_to(odd)
    found = project_directory(tmp_path / "state", odd)
    assert found == project_directory(tmp_path / "state", tmp_path / "link")
    assert found.parent == tmp_path / "state" / "projects"
    assert found.name.isalnum()
    assert found != project_directory(tmp_path / "state", tmp_path)
