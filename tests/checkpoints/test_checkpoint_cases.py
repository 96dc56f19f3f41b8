"""Ways in which checkpoints of other tools lost people's data, each by its id."""

# over 300 lines because: it is one list of cases, each a test with what it needs

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from ckpt_trees import ROOT, powerless, snapshot

from veil.model.errors import BadInput, Refused
from veil.snapshots import Checkpoints

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org")


def git(where: Path, *arguments: str) -> bytes:
    return subprocess.run([*GIT, *arguments], cwd=where, check=True, capture_output=True).stdout


def repository(ws: Path) -> None:
    git(ws, "init", "-q")
    for name in "fgh":
        (ws / name).write_text(f"{name} first\n")
    git(ws, "add", ".")
    git(ws, "commit", "-q", "-m", "first")


@pytest.mark.needs("git")
def test_ckpt_01_ignored_and_untracked_files_survive(kept: Checkpoints, ws: Path) -> None:
    repository(ws)
    (ws / ".gitignore").write_text("data/\n")
    (ws / "data").mkdir()
    (ws / "data" / "big").write_bytes(os.urandom(2_000_000))
    (ws / "h").write_text("stashed\n")
    git(ws, "stash", "push", "-q", "h")
    before = snapshot(ws)
    kept.take(ws, "a")
    assert snapshot(ws) == before
    (ws / "f").write_text("changed\n")
    kept.restore(ws, "a")
    assert snapshot(ws) == before
    assert git(ws, "stash", "list").count(b"\n") == 1
    assert (ws / "f").read_text() == "f first\n"


@pytest.mark.parametrize("way", ["no identity", "no repository", "no git"])
def test_ckpt_03_needs_no_git_and_no_identity(way: str, kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    if way == "no identity":
        (ws / ".git").mkdir()
        (ws / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (ws / "tracked").write_text("old")
    (ws / "untracked").write_text("mine")
    empty = tmp_path / "empty"
    empty.mkdir()
    before = snapshot(ws)
    env = {"HOME": str(empty), "PATH": str(empty) if way == "no git" else os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    code = (
        "import sys; from pathlib import Path; from veil.snapshots import Checkpoints\n"
        "kept = Checkpoints(Path(sys.argv[1])); ws = Path(sys.argv[2])\n"
        "print(kept.take(ws, 'a').files); (ws / 'tracked').write_text('new'); (ws / 'late').write_text('x')\n"
        "kept.restore(ws, 'a')\n"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "state"), str(ws)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == (3 if way == "no identity" else 2)
    assert snapshot(ws) == before


@pytest.mark.needs("git")
def test_ckpt_04_the_index_and_the_repository_stay_as_they_are(kept: Checkpoints, ws: Path) -> None:
    repository(ws)
    (ws / "f").write_text("staged\n")
    git(ws, "add", "f")
    (ws / "g").write_text("not staged\n")
    staged = git(ws, "diff", "--cached")
    before = snapshot(ws)
    kept.take(ws, "a")
    assert snapshot(ws) == before  # neither objects nor refs nor a stash came into .git
    kept.restore(ws, "a")
    assert snapshot(ws) == before
    assert git(ws, "diff", "--cached") == staged
    git(ws, "reset", "-q", "--hard")
    git(ws, "commit", "-q", "--allow-empty", "-m", "second")
    kept.restore(ws, "a")
    assert snapshot(ws) == before
    assert git(ws, "diff", "--cached") == staged


def test_ckpt_06_a_link_in_the_place_of_a_folder_is_not_followed(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("precious")
    (outside / "g").write_text("precious too")
    (ws / "d").mkdir()
    (ws / "d" / "f").write_text("old")
    (ws / "file").write_text("file")
    (ws / "folder").mkdir()
    (ws / "folder" / "x").write_text("x")
    (ws / "link").symlink_to("file")
    before, untouched = snapshot(ws), snapshot(outside)
    kept.take(ws, "a")
    shutil.rmtree(ws / "d")
    (ws / "d").symlink_to("../outside")
    (ws / "file").unlink()
    (ws / "file").mkdir()
    (ws / "file" / "inner").write_text("inner")
    shutil.rmtree(ws / "folder")
    (ws / "folder").write_text("a file now")
    (ws / "link").unlink()
    (ws / "link").mkdir()
    (ws / "late").symlink_to(outside)
    kept.restore(ws, "a")
    assert snapshot(ws) == before
    assert snapshot(outside) == untouched


def test_ckpt_06_a_hard_link_to_a_file_outside_is_broken_not_written(
    kept: Checkpoints, ws: Path, tmp_path: Path
) -> None:
    (ws / "f").write_text("old")
    (ws / "same").write_text("same")
    before = snapshot(ws)
    kept.take(ws, "a")
    for name, content in (("f", "precious"), ("same", "same")):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o640)
        (ws / name).unlink()
        (ws / name).hardlink_to(tmp_path / name)
    kept.restore(ws, "a")
    assert snapshot(ws) == before
    assert (tmp_path / "f").read_text() == "precious"
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("f", "same")] == [0o640, 0o640]
    assert (tmp_path / "same").stat().st_mtime_ns != (ws / "same").stat().st_mtime_ns


@pytest.mark.parametrize("in_place", [True, False])
def test_ckpt_07_same_size_and_time_are_no_proof(in_place: bool, kept: Checkpoints, ws: Path) -> None:
    file = ws / "f"
    file.write_text("aaa")
    os.utime(file, (1_600_000_000, 1_600_000_000))
    before = snapshot(ws)
    kept.take(ws, "a")
    if not in_place:
        file.unlink()
    file.write_text("bbb")
    os.utime(file, (1_600_000_000, 1_600_000_000))
    assert [(change.path, change.change) for change in kept.diff(ws, "a")] == [("f", "modified")]
    kept.restore(ws, "a")
    assert file.read_text() == "aaa"
    assert snapshot(ws) == before


def test_ckpt_07_a_write_in_the_same_tick_is_seen(kept: Checkpoints, ws: Path) -> None:
    file = ws / "f"
    for number in range(40):
        file.write_text(f"{number:03}a")
        os.utime(file, (1_600_000_000, 1_600_000_000))
        kept.take(ws)
        with file.open("r+") as again:  # the same inode
            again.write(f"{number:03}b")
        os.utime(file, (1_600_000_000, 1_600_000_000))
        kept.restore(ws)
        assert file.read_text() == f"{number:03}a"


def test_ckpt_09_folders_with_one_name_never_meet(kept: Checkpoints, tmp_path: Path) -> None:
    x, y = tmp_path / "x" / "data", tmp_path / "y" / "data"
    for folder in (x, y):
        folder.mkdir(parents=True)
        (folder / "who").write_text(str(folder))
        kept.take(folder, "a")
    for folder in (x, y):
        (folder / "who").unlink()
        kept.restore(folder, "a")
        assert (folder / "who").read_text() == str(folder)


@pytest.mark.parametrize(
    "label", ["a/b", "../a", "..", ".", "/etc", "~", "A", "a", "ä", "a\u0308", "\n", "x" * 1000, "\0"]
)
def test_ckpt_09_labels_are_no_paths(label: str, kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    around = {path.name for path in tmp_path.iterdir()} | {"state"}
    (ws / "f").write_text("other")
    for other in ("a", "A", "ä", "a\u0308"):
        if other != label:
            kept.take(ws, other)
    (ws / "f").write_text("this")
    kept.take(ws, label)
    (ws / "f").write_text("later")
    kept.restore(ws, label)
    assert (ws / "f").read_text() == "this"
    assert label in {each.label for each in kept.list(ws)}
    assert {path.name for path in tmp_path.iterdir()} == around


@pytest.mark.parametrize("label", ["", "x" * 1001, "before-restore", "ckpt1-0123abcd", 7, b"a"])
def test_ckpt_09_what_cannot_be_a_label_is_refused_by_name(label: object, kept: Checkpoints, ws: Path) -> None:
    with pytest.raises(BadInput, match="label"):
        kept.take(ws, label)  # type: ignore[arg-type]
    assert kept.list(ws) == []


def test_ckpt_09_a_label_used_again_is_versioned(kept: Checkpoints, ws: Path) -> None:
    ids = []
    for text in ("one", "two"):
        (ws / "f").write_text(text)
        ids.append(kept.take(ws, "a").id)
    (ws / "f").write_text("three")
    kept.restore(ws, "a")
    assert (ws / "f").read_text() == "two"
    kept.restore(ws, ids[0])
    assert (ws / "f").read_text() == "one"


def test_ckpt_10_a_store_inside_is_no_part_of_it(ws: Path) -> None:
    (ws / "f").write_text("old")
    kept = Checkpoints(ws / ".store" / "deep")
    kept.take(ws, "a")
    size = sum(path.stat().st_size for path in (ws / ".store").rglob("packs/*"))
    (ws / "pad").write_text("x")
    assert kept.take(ws).files == 2
    grown = sum(path.stat().st_size for path in (ws / ".store").rglob("packs/*"))
    assert grown < size + 2000
    (ws / "f").write_text("new")
    kept.restore(ws, "a")
    assert (ws / "f").read_text() == "old"
    assert len(kept.list(ws)) == 3
    assert not (ws / "pad").exists()


def test_ckpt_10_a_store_that_came_later_stays(ws: Path) -> None:
    """The checkpoint knows nothing of the folder in which the store of today is."""
    (ws / "f").write_text("old")
    first = Checkpoints(ws / "one")
    first.take(ws, "a")
    (ws / "new" / "below").mkdir(parents=True)
    shutil.move(ws / "one", ws / "new" / "below" / "one")
    (ws / "new" / "beside").write_text("x")
    moved = Checkpoints(ws / "new" / "below" / "one")
    done = moved.restore(ws, "a")
    assert (ws / "f").read_text() == "old"
    assert not (ws / "new" / "beside").exists()
    assert set(done.left) == {"new", "new/below"}
    assert len(moved.list(ws)) == 2


@pytest.mark.needs("root")
def test_ckpt_10_what_another_user_holds_is_named_and_can_be_undone(
    kept: Checkpoints, ws: Path, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        (ws / name).mkdir()
        (ws / name / "f").write_text("old")
    kept.take(ws, "a")
    for name in ("a", "b", "c"):
        (ws / name / "f").write_text("new")
    os.chown(ws / "b", 65534, 65534)
    displaced = snapshot(ws)
    told = powerless(
        """
from pathlib import Path
kept, ws = Checkpoints(Path(sys.argv[1])), Path(sys.argv[2])
try:
    kept.restore(ws, "a")
except VeilError as error:
    print(error.code, *error.facts["paths"])
""",
        tmp_path / "state",
        ws,
    )
    assert told == "not_restored b/f\n"
    assert [(ws / name / "f").read_text() for name in "abc"] == ["old", "new", "old"]
    kept.restore(ws, "before-restore")
    assert snapshot(ws) == displaced


def set_immutable(path: Path, on: bool) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        flags = struct.unpack("i", fcntl.ioctl(handle, 0x80086601, b"\0" * 4))[0]
        fcntl.ioctl(handle, 0x40086602, struct.pack("i", flags | 0x10 if on else flags & ~0x10))
    finally:
        os.close(handle)


@pytest.mark.linux
@pytest.mark.needs("root")
def test_ckpt_10_an_immutable_file_fails_the_restore_by_name(kept: Checkpoints, ws: Path) -> None:
    for name in ("a", "b", "c"):
        (ws / name).write_text("old")
    kept.take(ws, "a")
    for name in ("a", "b", "c"):
        (ws / name).write_text("new")
    displaced = snapshot(ws)
    try:
        set_immutable(ws / "b", True)
    except OSError as error:
        pytest.skip(f"needs a file system with immutable files: {error.strerror}")
    try:
        with pytest.raises(Refused) as caught:
            kept.restore(ws, "a")
    finally:
        set_immutable(ws / "b", False)
    assert caught.value.code == "not_restored"
    assert list(caught.value.facts["paths"]) == ["b"]
    assert [(ws / name).read_text() for name in "abc"] == ["old", "new", "old"]
    kept.restore(ws, "before-restore")
    assert snapshot(ws) == displaced
    kept.restore(ws, "a")
    assert [(ws / name).read_text() for name in "abc"] == ["old"] * 3
