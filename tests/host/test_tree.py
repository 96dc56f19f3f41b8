"""The stat scan: what it sees, what it leaves out, where it stops."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from veil.host.changes import compare
from veil.host.pictures import Picture, Tree, lies_in
from veil.host.tree import Scan, TooMuch, TreeUnknown, digest, hash_racy, kind_of, scan, signature


def test_everything_below_and_nothing_of_git(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_text("x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").touch()
    (tmp_path / "a" / ".git").write_text("gitdir: elsewhere")
    (tmp_path / "link").symlink_to(tmp_path.parent)
    (tmp_path / "é\n").touch()
    found = scan(str(tmp_path))
    assert set(found.entries) == {"a", "a/b", "a/b/file", "link", "é\n"}
    assert found.nested == {"a"}
    assert found.gaps == {}
    assert found.entries["a/b/file"] == signature(str(tmp_path / "a" / "b" / "file"))


@pytest.mark.linux  # APFS refuses such names
def test_names_that_are_not_utf8_in_a_scan(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff")).mkdir()
    (tmp_path / os.fsdecode(b"\xff") / "x").touch()
    assert set(scan(str(tmp_path)).entries) == {"\udcff", "\udcff/x"}


def test_own_paths_are_skipped_with_all_below(tmp_path: Path) -> None:
    (tmp_path / "state" / "deep").mkdir(parents=True)
    (tmp_path / "state2").mkdir()
    assert set(scan(str(tmp_path), skip=frozenset({"state"})).entries) == {"state2"}


def test_only_under_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").touch()
    (tmp_path / "b").touch()
    found = scan(str(tmp_path), under="a")
    assert set(found.entries) == {"a/x"}
    assert scan(str(tmp_path), under="gone", into=found).entries == found.entries


def test_bounds(tmp_path: Path) -> None:
    for number in range(11):
        (tmp_path / str(number)).touch()
    assert len(scan(str(tmp_path), limit=11).entries) == 11
    with pytest.raises(TooMuch, match="more than 10 entries"):
        scan(str(tmp_path), limit=10)
    with pytest.raises(TooMuch, match="within"):
        scan(str(tmp_path), seconds=-1.0)


def test_a_folder_too_deep_for_a_path_is_a_gap(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    name = "n" * 200
    try:
        for _ in range(25):
            os.mkdir(name, dir_fd=here)
            below = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
    finally:
        os.close(here)
    found = scan(str(tmp_path))
    assert list(found.gaps.values()) == [os.strerror(errno.ENAMETOOLONG)]
    subprocess.run(["rm", "-rf", name], cwd=tmp_path, check=True)


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder with an unreadable one inside, seen by a user to whom that means something."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    (place / "closed").mkdir(mode=0o000)
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.seteuid(65534)
        yield place
    finally:
        if is_root:
            os.seteuid(0)
        (place / "closed").rmdir()
        place.rmdir()


def test_an_unreadable_folder_is_a_gap_and_an_unreadable_root_unknown(closed: Path) -> None:
    assert scan(str(closed)).gaps == {"closed": "Permission denied"}
    with pytest.raises(TreeUnknown, match="Permission denied"):
        scan(str(closed / "closed"))


def test_files_that_vanish_meanwhile_are_no_trouble(tmp_path: Path) -> None:
    script = "while :; do mkdir -p d/e; touch d/e/{1..50}; rm -rf d; done"
    child = subprocess.Popen(["bash", "-c", script], cwd=tmp_path)
    try:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert scan(str(tmp_path)).gaps == {}
    finally:
        child.kill()
        child.wait()


def test_what_a_gap_hides_is_told_neither_as_created_nor_as_deleted(tmp_path: Path) -> None:
    sig = (stat.S_IFREG | 0o644, 1, 1, 1, 1, 1)
    tree = Tree(str(tmp_path), str(tmp_path), None)
    before = Picture("scan", 0, Scan({"d/x": sig, "e": sig}))
    after = Picture("scan", 0, Scan(gaps={"d": "Permission denied"}))
    told = compare(tree, before, after)
    assert [change.path for change in told.changes] == ["e"]
    assert told.notes["effects_gaps"] == ["d: Permission denied"]


def test_a_change_that_left_no_trace_in_coarse_time_stamps(tmp_path: Path) -> None:
    """Fresh files are hashed, so that a second write in the same tick counts although the signature is the same."""
    (tmp_path / "fresh").write_text("one")
    (tmp_path / "same").write_text("one")
    found = scan(str(tmp_path))
    hash_racy(str(tmp_path), found, time.time_ns())
    assert set(found.digests) == {"fresh", "same"}
    (tmp_path / "fresh").write_text("two")
    later = Picture("scan", 0, Scan(dict(found.entries)))
    tree = Tree(str(tmp_path), str(tmp_path), None)
    told = compare(tree, Picture("scan", 0, found), later)
    assert [(change.path, change.change) for change in told.changes] == [("fresh", "modified")]
    old = Scan(dict(found.entries))
    hash_racy(str(tmp_path), old, time.time_ns() + 10_000_000_000)
    assert old.digests == {}


def test_a_link_made_to_a_file_does_not_change_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    before = Picture("scan", 0, scan(str(tmp_path)))
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    told = compare(Tree(str(tmp_path), str(tmp_path), None), before, Picture("scan", 0, scan(str(tmp_path))))
    assert [(change.path, change.change) for change in told.changes] == [("b", "created")]


def test_a_reused_inode_is_no_rename(tmp_path: Path) -> None:
    old = (stat.S_IFREG | 0o644, 5, 100, 100, 7, 1)
    new = (stat.S_IFREG | 0o644, 5, 200, 200, 7, 1)
    told = compare(
        Tree(str(tmp_path), str(tmp_path), None),
        Picture("scan", 0, Scan({"a": old})),
        Picture("scan", 0, Scan({"b": new})),
    )
    assert [(change.path, change.change) for change in told.changes] == [("a", "deleted"), ("b", "created")]


def test_two_names_of_one_file_are_two_renames(tmp_path: Path) -> None:
    sig = (stat.S_IFREG | 0o644, 5, 100, 100, 7, 2)
    told = compare(
        Tree(str(tmp_path), str(tmp_path), None),
        Picture("scan", 0, Scan({"a": sig, "b": sig})),
        Picture("scan", 0, Scan({"x": sig, "y": sig})),
    )
    assert [(change.old, change.path) for change in told.changes] == [("a", "x"), ("b", "y")]


def test_digest_never_waits_and_never_follows(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    assert digest(str(tmp_path / "pipe")) is None
    assert digest(str(tmp_path / "link")) is None
    assert digest(str(tmp_path / "gone")) is None
    left = len(os.listdir("/dev/fd"))
    assert digest(str(tmp_path)) is None
    assert len(os.listdir("/dev/fd")) <= left  # fewer: rubbish of earlier tests went meanwhile
    git = subprocess.check_output(["git", "hash-object", "--no-filters", "file"], cwd=tmp_path, text=True).strip()
    found = digest(str(tmp_path / "file"), b"blob 1\0")
    assert found is not None
    assert found.hex() == git


def test_words_for_kinds() -> None:
    assert kind_of(stat.S_IFBLK | 0o600) == "device"
    assert kind_of(stat.S_IFSOCK) == "socket"


def test_lying_in_a_folder() -> None:
    assert lies_in("a/b/c", {"a/b"})
    assert lies_in("a", {"a"})
    assert not lies_in("ab/c", {"a"})
    assert not lies_in("a", ())
