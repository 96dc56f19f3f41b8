"""What a machine is known by: the tools that are asked for, as the environment finds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from veil.host.fingerprint import fingerprint


def tool(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_the_basics_are_always_there() -> None:
    found = fingerprint({"PATH": "/usr/bin:/bin", "LANG": "xx_YY", "LC_ALL": "C.UTF-8"})
    assert set(found) == {"kernel", "libc", "locale", "shell"}
    assert found["locale"] == "C.UTF-8"
    assert fingerprint({"LANG": "xx_YY"})["locale"] == "xx_YY"
    assert fingerprint({})["locale"] == "C"
    assert list(found) == sorted(found)


def test_a_known_tool_tells_its_version(tmp_path: Path) -> None:
    tool(tmp_path, "git", 'test "$1" = --version && echo git version 7')
    assert fingerprint({"PATH": str(tmp_path)}, ["git"])["git"] == "git version 7"


@pytest.mark.parametrize("by_link", [False, True])
def test_a_known_tool_in_a_project_is_known_by_its_bytes_and_is_not_run(tmp_path: Path, by_link: bool) -> None:
    inside = tmp_path / "project" / "bin"
    inside.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    tool(inside, "git", f"touch {tmp_path}/launched; echo git version 7")
    folder = inside
    if by_link:
        folder = tmp_path / "links"
        folder.mkdir()
        (folder / "git").symlink_to(inside / "git")
    assert fingerprint({"PATH": str(folder)}, ["git"])["git"].startswith("git ")
    assert not (tmp_path / "launched").exists()


def test_an_unknown_tool_is_known_by_its_bytes_and_is_not_run(tmp_path: Path) -> None:
    tool(tmp_path, "launch", f"touch {tmp_path}/launched")
    one = fingerprint({"PATH": str(tmp_path)}, ["launch", "nothing", "a/b"])
    assert one["launch"].startswith("launch ")
    assert "nothing" not in one
    assert "a/b" not in one
    assert not (tmp_path / "launched").exists()
    tool(tmp_path, "launch", f"touch {tmp_path}/launched twice")
    assert fingerprint({"PATH": str(tmp_path)}, ["launch"])["launch"] != one["launch"]


@pytest.mark.parametrize("text", ["exit 3", "kill -9 $$", ":"])
def test_a_tool_that_does_not_answer_is_known_by_its_bytes(tmp_path: Path, text: str) -> None:
    tool(tmp_path, "git", text)
    assert fingerprint({"PATH": str(tmp_path)}, ["git"])["git"].startswith("git ")
    assert len(fingerprint({"PATH": str(tmp_path)}, ["git"])["git"]) == len("git ") + 12
