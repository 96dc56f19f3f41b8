"""Contents of a folder by id, while others change them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from veil.host.contents import MAX_WHOLE, Contents
from veil.model.outcome import Kind


def identify(kind: Kind | None, mode: int, data: bytes) -> str:
    return f"{kind}:{mode:03o}:{hashlib.sha256(data).hexdigest()}"


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    return Contents(str(tmp_path), identify)


def test_what_has_not_changed_has_the_id_that_it_had(contents: Contents, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")
    known = contents.picture()["f"]
    assert contents.content("f", known) == (b"one", known)


@pytest.mark.parametrize("same_time", [False, True])
def test_what_has_changed_has_the_id_of_what_is_read(contents: Contents, tmp_path: Path, same_time: bool) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    was, known = file.stat(), contents.picture()["f"]
    file.write_text("two")
    file.chmod(0o600)
    if same_time:
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert contents.content("f", known) == (b"two", identify("file", 0o600, b"two"))


def test_what_is_gone_large_or_something_else(contents: Contents, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    known = contents.picture()["f"]
    file.unlink()
    assert contents.content("f", known) == (None, identify(None, 0, b""))
    file.mkdir(mode=0o755)
    assert contents.content("f", known) == (None, identify("dir", 0o755, b""))
    file.rmdir()
    file.symlink_to("elsewhere")
    content, now = contents.content("f", known)
    assert content == b"elsewhere"
    assert now.startswith("symlink:")
    file.unlink()
    with file.open("wb") as large:
        large.truncate(MAX_WHOLE + 1)
    content, now = contents.content("f", known)
    assert content is None
    assert now == contents.picture()["f"] != known


@pytest.mark.parametrize("above", ["d", "d/e"])
def test_nothing_is_read_behind_a_folder_that_became_a_link(tmp_path: Path, above: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "f").write_text("ours")
    (outside / "e").mkdir(parents=True)
    for path in ("f", "e/f"):
        (outside / path).write_text("not ours")
    contents = Contents(str(root), identify)
    known = contents.picture()["d/e/f"]
    (root / above).rename(tmp_path / "away")
    (root / above).symlink_to(outside)
    assert contents.content("d/e/f", known) == (None, identify(None, 0, b""))
    assert contents.content("d/e/f", known)[1] == contents.id_of("d/e/f")
