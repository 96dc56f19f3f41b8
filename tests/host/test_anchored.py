"""Walking down a tree by descriptors, and the one delete."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from veil.host.anchored import Anchor, Row, row_of
from veil.host.blobs import LARGE, Pack, Vault, name_of
from veil.host.metadata import set_mode
from veil.model.errors import Refused


def planned(path: Path) -> Row:
    return row_of(path.name, os.lstat(path))


def test_no_link_leads_on(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a" / "b").mkdir(parents=True)
    (outside / "b").mkdir(parents=True)
    (outside / "b" / "f").write_text("precious")
    with Anchor(str(root)) as anchor:
        assert os.fstat(anchor.folder("a/b")).st_ino == (root / "a" / "b").stat().st_ino
        row = planned(outside / "b" / "f")
        (root / "link").symlink_to(outside)
        for path in ("link", "link/b"):
            with pytest.raises(NotADirectoryError):
                anchor.folder(path)
        assert anchor.lstat("link/b/f") is None
        with pytest.raises(OSError, match="Not a directory"):
            anchor.remove("link/b/f", row)
    assert (outside / "b" / "f").read_text() == "precious"
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        Anchor(str(root / "link"))


@pytest.mark.parametrize("how", ["content", "another inode", "a link", "gone"])
def test_only_what_was_planned_is_deleted(how: str, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old")
    row = planned(file)
    if how == "content":
        file.write_text("new")
    elif how == "another inode":
        (tmp_path / "g").write_text("new")
        os.utime(tmp_path / "g", ns=(1, row[4]))
        (tmp_path / "g").rename(file)
    else:
        file.unlink()
        if how == "a link":
            file.symlink_to("/etc/hostname")
    with Anchor(str(tmp_path)) as anchor:
        with pytest.raises(Refused, match="changed by somebody else") as caught:
            anchor.remove("f", row)
        assert caught.value.code == "moved"
        assert os.path.lexists(file) == (how != "gone")
        for path in ("", ".", "a/..", "a/"):
            with pytest.raises(Refused, match="no entry of a folder"):
                anchor.remove(path, row)


def test_a_folder_goes_only_when_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    rows = {path: planned(tmp_path / path) for path in ("d", "d/e")}
    with Anchor(str(tmp_path)) as anchor:
        anchor.folder("d/e")
        with pytest.raises(OSError, match="not empty"):
            anchor.remove("d", rows["d"])
        anchor.remove("d/e", rows["d/e"])
        anchor.remove("d", rows["d"])
        with pytest.raises(FileNotFoundError):
            anchor.folder("d")
    assert os.listdir(tmp_path) == []


def test_many_folders_do_not_use_up_the_descriptors(tmp_path: Path) -> None:
    paths = [f"d{number}/e" for number in range(300)]
    for path in paths:
        (tmp_path / path).mkdir(parents=True)
    with Anchor(str(tmp_path)) as anchor:
        before = len(os.listdir("/dev/fd"))
        for path in paths + paths:
            assert stat.S_ISDIR(os.fstat(anchor.folder(path)).st_mode)
        assert len(os.listdir("/dev/fd")) < before + 60
    assert len(os.listdir("/dev/fd")) <= before


def test_a_mode_is_never_set_through_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "f", tmp_path / "l"
    file.touch(0o600)
    link.symlink_to("f")
    set_mode(str(file), None, 0o640)
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        if hasattr(os, "O_PATH"):
            with pytest.raises(OSError, match="symbolic links"):
                set_mode("l", handle, 0o777)
        set_mode("f", handle, 0o604)
    finally:
        os.close(handle)
    assert stat.S_IMODE(file.stat().st_mode) == 0o604


def test_contents_come_back_from_packs_and_files(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.prepare()
    contents = [b"", b"a", os.urandom(70_000)] * 3
    pack = Pack(vault.packs)
    places = [pack.add(content) for content in contents]
    pack.finish()
    assert [vault.read(pack.name, at, len(content)) for at, content in zip(places, contents, strict=True)] == contents
    large = os.urandom(LARGE + 1)
    (tmp_path / "large").write_bytes(large)
    source = os.open(tmp_path / "large", os.O_RDONLY)
    try:
        assert vault.keep_large(source, len(large), lambda name: False) == (name_of(large), len(large))
        # one that is known, and one that grew meanwhile, leave no file
        assert vault.keep_large(source, len(large), lambda name: True)[1] == len(large)
        assert vault.keep_large(source, len(large) - 5, lambda name: False)[1] == len(large) - 4
    finally:
        os.close(source)
    vault.settle()
    assert os.listdir(vault.objects) == [name_of(large).hex()]
    folder = os.open(tmp_path, os.O_RDONLY)
    handle = vault.write_large(name_of(large), len(large), folder, "copy")
    os.close(handle)
    os.close(folder)
    assert (tmp_path / "copy").read_bytes() == large
    (vault.packs / ("0" * 24)).touch()
    (vault.packs / "of somebody else").touch()
    vault.sweep({pack.name}, set())
    assert sorted(os.listdir(vault.packs)) == sorted([pack.name, "of somebody else"])
    assert os.listdir(vault.objects) == []
    vault.close()
