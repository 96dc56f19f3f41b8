"""What a checkpoint brings back of a tree, and what of it is neither kept nor touched."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ckpt_trees import ROOT, powerless, snapshot

from veil.model.errors import Refused
from veil.snapshots import Checkpoints


def test_everything_comes_back(kept: Checkpoints, ws: Path) -> None:
    (ws / "empty").mkdir()
    (ws / "deep" / "er").mkdir(parents=True)
    (ws / "deep" / "er" / "run").write_text("#!/bin/sh\n")
    (ws / "deep" / "er" / "run").chmod(0o4751)
    (ws / "large").write_bytes(os.urandom(3_000_000))
    (ws / os.fsdecode(b"bad\xff name\n")).write_bytes(b"\0\xff")
    (ws / "one").write_text("linked")
    (ws / "deep" / "two").hardlink_to(ws / "one")
    (ws / "dangling").symlink_to("nowhere")
    os.mkfifo(ws / "fifo", 0o640)
    os.utime(ws / "dangling", ns=(1, 1_500_000_000_123_456_789), follow_symlinks=False)
    os.utime(ws / "deep", ns=(1, 1_400_000_000_987_654_321))
    (ws / "deep").chmod(0o2775)
    before = snapshot(ws)
    made = kept.take(ws, "all")
    assert snapshot(ws) == before
    assert (made.files, made.label, list(made.left_out)) == (5, "all", ["fifo"])
    shutil.rmtree(ws)
    done = kept.restore(ws, "all")
    assert snapshot(ws) == before
    assert (done.checkpoint, done.before, done.left) == (made, "before-restore", {})
    assert kept.diff(ws, "all") == []


def test_times_of_a_file_with_two_names_come_back(kept: Checkpoints, ws: Path) -> None:
    """What the one name gets, the other has as well: that is no change by somebody else."""
    (ws / "x").write_text("same")
    (ws / "y").hardlink_to(ws / "x")
    os.utime(ws / "x", ns=(5, 5))
    kept.take(ws, "a")
    os.utime(ws / "y", ns=(7, 7))
    restored = kept.restore(ws, "a")
    assert (ws / "x").samefile(ws / "y")
    assert ((ws / "x").stat().st_mtime_ns, restored.counts["adjusted"]) == (5, 2)


@pytest.mark.linux
def test_attributes_come_back(kept: Checkpoints, ws: Path) -> None:
    file, folder = ws / "f", ws / "d"
    file.write_text("x")
    folder.mkdir()
    try:
        os.setxattr(file, "user.colour", b"red\0")
        os.setxattr(folder, "user.size", b"")
    except OSError as error:
        pytest.skip(f"needs a file system with extended attributes: {error.strerror}")
    file.chmod(0o444)
    before = snapshot(ws)
    kept.take(ws)
    os.chmod(file, 0o644)
    os.removexattr(file, "user.colour")
    os.setxattr(file, "user.other", b"1")
    os.setxattr(folder, "user.size", b"2")
    kept.restore(ws)
    assert snapshot(ws) == before
    file.unlink()
    kept.restore(ws)
    assert snapshot(ws) == before


def test_sockets_are_told_and_never_opened(kept: Checkpoints, ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ws)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen()
        server.settimeout(0.05)
        made = kept.take(ws, "a")
        assert made.left_out == {"s": "a socket: its name only"}
        assert kept.restore(ws, "a").left == {}
        assert stat.S_ISSOCK(os.lstat(ws / "s").st_mode)
        with pytest.raises(TimeoutError):
            server.accept()
    (ws / "s").unlink()
    assert list(kept.restore(ws, "a").left) == ["s"]


def test_links_among_files_are_as_they_were(kept: Checkpoints, ws: Path) -> None:
    for name in "abcd":
        (ws / name).write_text("same")
        os.utime(ws / name, (1, 1))
    (ws / "b").unlink()
    (ws / "b").hardlink_to(ws / "a")
    before = snapshot(ws)
    kept.take(ws)
    (ws / "b").unlink()
    (ws / "b").write_text("same")
    os.utime(ws / "b", (1, 1))
    (ws / "d").unlink()
    (ws / "d").hardlink_to(ws / "c")
    os.utime(ws, ns=(1, before[""][4]))
    kept.restore(ws)
    assert snapshot(ws) == before


def test_a_file_that_cannot_be_read_fails_the_checkpoint(ws: Path, tmp_path: Path) -> None:
    (ws / "d").mkdir()
    (ws / "d" / "closed").write_text("secret")
    (ws / "d" / "closed").chmod(0)
    told = powerless(
        """
from pathlib import Path
kept, ws = Checkpoints(Path(sys.argv[1])), Path(sys.argv[2])
def attempt():
    try:
        kept.take(ws, "a")
    except VeilError as error:
        print(error.code, error.facts["path"], kept.list(ws))
attempt()
(ws / "d/closed").chmod(0o600)
(ws / "d").chmod(0)
attempt()
""",
        tmp_path / "state",
        ws,
    )
    assert told == "unreadable d/closed []\nunreadable d []\n"


def test_restore_opens_what_is_closed_to_its_owner(ws: Path, tmp_path: Path) -> None:
    (ws / "d").mkdir()
    (ws / "d" / "f").write_text("old")
    (ws / "d" / "g").write_text("g")
    (ws / "d").chmod(0o555)
    before = snapshot(ws)
    powerless(
        """
from pathlib import Path
kept, ws = Checkpoints(Path(sys.argv[1])), Path(sys.argv[2])
kept.take(ws, "a")
(ws / "d").chmod(0o755)
(ws / "d/f").write_text("new")
(ws / "d/f").chmod(0)
(ws / "d/late").mkdir()
(ws / "d/late/x").write_text("x")
(ws / "d/late").chmod(0)
(ws / "d").chmod(0)
kept.restore(ws, "a")
""",
        tmp_path / "state",
        ws,
    )
    assert snapshot(ws) == before


def test_a_tree_deeper_than_there_are_descriptors(kept: Checkpoints, ws: Path) -> None:
    at = os.open(ws, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    handle = os.open("bottom", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=at)
    os.write(handle, b"old")
    made = kept.take(ws, "a")
    assert made.files == 1
    os.ftruncate(handle, 0)
    os.unlink("bottom", dir_fd=at)
    os.close(handle)
    assert len(kept.diff(ws, "a")) == 1
    assert kept.restore(ws, "a").counts["created"] == 1
    handle = os.open("bottom", os.O_RDONLY, dir_fd=at)
    assert os.read(handle, 9) == b"old"
    os.close(handle)
    os.close(at)
    kept.take(ws / "d", "empty later")
    subprocess.run(["rm", "-rf", ws / "d"], check=True)


@pytest.mark.needs("root")
def test_owners_come_back(kept: Checkpoints, ws: Path) -> None:
    (ws / "f").write_text("x")
    (ws / "f").chmod(0o4755)
    os.chown(ws / "f", 12345, 23456)
    (ws / "f").chmod(0o4755)
    (ws / "l").symlink_to("f")
    os.chown(ws / "l", 1, 2, follow_symlinks=False)
    before = snapshot(ws)
    kept.take(ws)
    (ws / "f").unlink()
    (ws / "l").unlink()
    kept.restore(ws)
    assert snapshot(ws) == before
    os.chown(ws / "f", 0, 0)
    kept.restore(ws)
    assert snapshot(ws) == before


def test_a_folder_swapped_for_a_link_all_the_time_harms_nobody(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    """Somebody swaps a folder for a link to a place outside while restores are under way."""
    outside = tmp_path / "outside"
    for folder in (outside, ws / "d", ws / "d" / "e", outside / "e"):
        folder.mkdir()
    for number in range(20):
        for folder in (ws / "d", ws / "d" / "e", outside, outside / "e"):
            (folder / f"f{number}").write_text("precious" if folder.is_relative_to(outside) else "old")
    kept.take(ws, "a")
    untouched = snapshot(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            try:
                os.rename(ws / "d", tmp_path / "aside")
                os.symlink(outside, ws / "d")
                time.sleep(0.0005)
                os.unlink(ws / "d")
                os.rename(tmp_path / "aside", ws / "d")
            except OSError:  # a restore was quicker
                if os.path.lexists(tmp_path / "aside"):
                    shutil.rmtree(tmp_path / "aside")
            time.sleep(0.0005)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for round_ in range(15):
            for number in range(20):
                try:
                    (ws / "d" / "e" / f"late{number}").write_text(str(round_)) if not (ws / "d").is_symlink() else None
                except OSError:
                    continue
            try:
                kept.restore(ws, "a")
            except Refused as refusal:
                assert refusal.code in ("changing", "not_restored", "unreadable")  # noqa: PT017
    finally:
        stop.set()
        swapper.join()
    for name in {*os.listdir(outside / "e")} - {f"f{number}" for number in range(20)}:
        (outside / "e" / name).unlink()  # written by this test itself through the link
    found = snapshot(outside)
    assert {path: facts[-2:] for path, facts in found.items() if path.startswith(("f", "e/f"))} == {
        path: facts[-2:] for path, facts in untouched.items() if path.startswith(("f", "e/f"))
    }
    kept.restore(ws, "a")
    assert kept.diff(ws, "a") == []
    assert (ws / "d" / "e" / "f3").read_text() == "old"


@pytest.mark.linux
@pytest.mark.needs("root")
def test_what_is_mounted_in_the_tree_is_neither_kept_nor_touched(tmp_path: Path) -> None:
    """Also when it has the device of the tree, as a bind mount has."""
    for name in ("ws/folder", "precious/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "ws" / "file").write_text("under")
    (tmp_path / "precious" / "deep" / "f").write_text("precious")
    (tmp_path / "one").write_text("precious")
    code = """
import os, subprocess, sys
from pathlib import Path
from veil.snapshots import Checkpoints
at = Path(sys.argv[1])
ws, kept = at / "ws", Checkpoints(at / "state")
kept.take(ws, "before")
subprocess.run(["mount", "--bind", at / "precious", ws / "folder"], check=True)
subprocess.run(["mount", "--bind", at / "one", ws / "file"], check=True)
made = kept.take(ws, "mounted")
print(made.files, sorted(made.left_out))
(ws / "new").write_text("x")
print(sorted(kept.restore(ws, "mounted").left), sorted(os.listdir(ws)))
(at / "precious" / "later").write_text("x")
print(kept.diff(ws, "mounted"))
print(sorted(kept.restore(ws, "before").left))
print(sorted(os.listdir(at / "precious")), (at / "one").read_text(), (at / "precious" / "deep" / "f").read_text())
"""
    argv = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(
        argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "0 ['file', 'folder']",
        "[] ['file', 'folder']",
        "[]",
        "['file', 'folder']",
        "['deep', 'later'] precious precious",
    ]
