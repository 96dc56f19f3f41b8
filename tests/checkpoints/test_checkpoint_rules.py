"""What a checkpoint holds, what it refuses, and how checkpoints live together."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ckpt_trees import HERE, ROOT, powerless, snapshot

from veil.model.errors import BadInput, NotFound, Refused
from veil.model.outcome import Change
from veil.snapshots import Checkpoints


@pytest.fixture
def kept(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "state")


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


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


def test_order_within_one_second_and_before_restore_not_counted(kept: Checkpoints, ws: Path) -> None:
    ids = []
    for number in range(5):
        (ws / "f").write_text(str(number))
        ids.append(kept.take(ws).id)
    (ws / "f").write_text("late")
    for _ in range(2):
        assert kept.restore(ws).checkpoint.id == ids[-1]
        assert (ws / "f").read_text() == "4"
    assert [each.id for each in kept.list(ws) if each.label is None] == ids[::-1]
    done = kept.restore(ws, ids[1])
    assert (ws / "f").read_text() == "1"
    assert done.before_id == kept.list(ws)[0].id
    kept.restore(ws, "before-restore")
    assert (ws / "f").read_text() == "4"


def test_another_folder_only_when_told(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("of ws")
    there = kept.take(ws, "a")
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("mine")
    for name in ("a", there.id):
        with pytest.raises(Refused) as caught:
            kept.restore(other, name)
        assert (caught.value.code, caught.value.facts["origins"]) == ("other_origin", [str(ws)])
    assert (other / "mine").read_text() == "mine"
    kept.restore(other, "a", force_origin=True)
    assert sorted(os.listdir(other)) == ["f"]
    kept.restore(other, "before-restore")
    assert (other / "mine").read_text() == "mine"
    with pytest.raises(NotFound, match="nowhere"):
        kept.restore(ws, "nowhere")
    with pytest.raises(NotFound):
        kept.restore(tmp_path / "other2")


def test_a_link_to_the_folder_is_the_folder(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(ws)
    (ws / "f").write_text("old")
    kept.take(tmp_path / "alias", "a")
    (ws / "f").write_text("new")
    kept.restore(ws, "a")
    assert (ws / "f").read_text() == "old"


def test_diff_in_the_words_of_a_run(kept: Checkpoints, ws: Path) -> None:
    for name in ("same", "mod", "gone", "mode", "type"):
        (ws / name).write_text(name)
    (ws / "dir").mkdir()
    (ws / "dir" / "in").write_text("x")
    kept.take(ws, "a")
    os.utime(ws / "same", (5, 5))
    (ws / "mod").write_text("MOD")
    (ws / "gone").unlink()
    (ws / "mode").chmod(0o777)
    (ws / "type").unlink()
    (ws / "type").symlink_to("mod")
    shutil.rmtree(ws / "dir")
    (ws / "new").mkdir()
    before, stored = snapshot(ws), snapshot(ws.parent / "state")
    assert kept.diff(ws, "a") == [
        Change("dir", "deleted", "dir"),
        Change("dir/in", "deleted", "file"),
        Change("gone", "deleted", "file"),
        Change("mod", "modified", "file"),
        Change("mode", "mode", "file"),
        Change("new", "created", "dir"),
        Change("type", "modified", "symlink"),
    ]
    assert (snapshot(ws), snapshot(ws.parent / "state")) == (before, stored)


def test_a_second_checkpoint_of_the_same_writes_no_content(kept: Checkpoints, ws: Path) -> None:
    for number in range(50):
        (ws / f"f{number}").write_bytes(os.urandom(100))
    time.sleep(0.1)
    kept.take(ws)
    packs = {path: path.stat().st_size for path in (ws.parent / "state").rglob("packs/*")}
    kept.take(ws)
    (ws / "copy").write_bytes((ws / "f1").read_bytes())
    assert kept.take(ws).files == 51
    grown = {path: path.stat().st_size for path in (ws.parent / "state").rglob("packs/*")}
    assert len(packs) == 1
    assert len(grown) == 2  # a listing and a manifest
    assert sum(grown.values()) - sum(packs.values()) < 20_000


def test_the_store_is_for_its_owner_alone(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    (ws / "large").write_bytes(b"x" * 1_000_000)
    old = os.umask(0)
    try:
        kept.take(ws)
    finally:
        os.umask(old)
    for path in (tmp_path / "state").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_damage_is_found_before_anything_is_touched(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("the old content")
    (ws / "large").write_bytes(b"y" * 1_000_000)
    kept.take(ws, "a")
    (ws / "f").write_text("new")
    (ws / "large").write_text("new")
    (ws / "late").write_text("late")
    before = snapshot(ws)
    for file in (next((tmp_path / "state").rglob("packs/*")), next((tmp_path / "state").rglob("objects/*"))):
        whole = file.read_bytes()
        file.write_bytes(whole.replace(b"the old", b"the odd").replace(b"yy", b"zy", 1))
        with pytest.raises(Refused) as caught:
            kept.restore(ws, "a")
        assert caught.value.code == "damaged"
        assert snapshot(ws) == before
        file.write_bytes(whole)
    kept.restore(ws, "a")
    assert (ws / "f").read_text() == "the old content"


def test_a_damaged_cache_costs_nothing_but_time(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    kept.take(ws)
    cache = next((tmp_path / "state").rglob("cache"))
    whole = cache.read_bytes()
    for content in (b"", whole[:40], whole[:-1] + b"\xff", b"veil checkpoint cache 1\n" + b"x" * 64):
        cache.write_bytes(content)
        kept.take(ws, "a")
        (ws / "f").write_text("y")
        kept.restore(ws, "a")
        assert (ws / "f").read_text() == "x"


def test_a_cache_from_before_a_clearing_is_not_believed(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("content")
    time.sleep(0.1)
    kept.take(ws, "a")
    cache = next((tmp_path / "state").rglob("cache"))
    whole = cache.read_bytes()
    kept.drop(ws, "a")
    cache.write_bytes(whole)
    kept.take(ws, "b")
    (ws / "f").unlink()
    kept.restore(ws, "b")
    assert (ws / "f").read_text() == "content"


def test_drop_and_gc_give_room_back_and_keep_what_must_be_kept(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    def stored() -> int:
        return sum(path.stat().st_size for path in (tmp_path / "state").rglob("*") if path.is_file())

    ids = []
    for number in range(6):
        (ws / "f").write_bytes(os.urandom(100_000))
        (ws / "large").write_bytes(os.urandom(400_000))
        ids.append(kept.take(ws, "named" if number == 2 else None).id)
    named = kept.list(ws)[3]
    assert (named.label, stored() > 3_000_000) == ("named", True)
    assert kept.gc(10_000_000)["removed"] == 0
    done = kept.gc(2_100_000)
    assert done["removed"] == 2  # the oldest without a label
    assert done["bytes_left"] == stored() < 2_300_000
    assert [each.id for each in kept.list(ws)] == [ids[5], ids[4], ids[3], ids[2]]
    assert kept.gc(0)["left"] == 2
    assert [each.id for each in kept.list(ws)] == [ids[5], ids[2]]
    for name in ("named", ids[5]):
        kept.restore(ws, name)
        assert kept.diff(ws, name) == []
    assert kept.drop(ws, "named") == 1
    with pytest.raises(NotFound):
        kept.drop(ws, "named")
    kept.drop(ws, "before-restore")
    assert stored() < 700_000
    kept.restore(ws, ids[5])
    with pytest.raises(BadInput, match="max_bytes"):
        kept.gc(-1)


def test_a_pack_written_anew_holds_what_it_held(kept: Checkpoints, ws: Path) -> None:
    for number in range(20):
        (ws / f"f{number}").write_bytes(os.urandom(10_000))
    kept.take(ws, "a")
    for number in range(18):
        (ws / f"f{number}").unlink()
    before = snapshot(ws)
    kept.take(ws, "b")
    kept.drop(ws, "a")
    shutil.rmtree(ws)
    kept.restore(ws, "b")
    assert snapshot(ws) == before


def test_a_file_that_does_not_hold_still_is_named(kept: Checkpoints, ws: Path) -> None:
    (ws / "log").write_bytes(b"x" * 200_000)
    stop = threading.Event()

    def scribble() -> None:
        with (ws / "log").open("r+b", buffering=0) as file:
            while not stop.is_set():
                file.seek(0)
                file.write(b"y" * 10)

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        for _ in range(5):
            try:
                made = kept.take(ws)
            except Refused as refusal:
                assert (refusal.code, refusal.facts["path"]) == ("changing", "log")  # noqa: PT017
                break
            assert made.files == 1  # a moment of rest was found
    finally:
        stop.set()
        writer.join()
    assert kept.take(ws, "quiet").files == 1


def test_bad_folders_are_bad_input(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    for directory in (tmp_path / "none", ws / "f", "", "a\0b", 7):
        with pytest.raises(BadInput, match=r"^dir: "):
            kept.take(directory)  # type: ignore[arg-type]
    assert kept.list(tmp_path / "none") == []


@pytest.mark.parametrize("kind", ["read-only", "full"])
def test_a_store_that_cannot_be_written_says_so(kind: str, ws: Path, tmp_path: Path) -> None:
    """``full``: the process may write no large file, which ends a write in the middle as a full disk does."""
    (ws / "f").write_bytes(b"x" * 200_000)
    Checkpoints(tmp_path / "state").take(ws, "a")
    (ws / "f").write_bytes(os.urandom(200_000))
    (ws / "large").write_bytes(os.urandom(900_000))
    before = snapshot(ws)
    told = powerless(
        """
from pathlib import Path
import resource
kept, ws = Checkpoints(Path(sys.argv[1])), Path(sys.argv[2])
if sys.argv[3] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
else:
    for folder, _, files in os.walk(sys.argv[1], topdown=False):
        for name in files:
            os.chmod(os.path.join(folder, name), 0o400)
        os.chmod(folder, 0o500)
for call in (lambda: kept.take(ws, "b"), lambda: kept.restore(ws, "a")):
    try:
        call()
    except VeilError as error:
        print(error.code)
print([each.label for each in kept.list(ws)], [change.path for change in kept.diff(ws, "a")])
""",
        tmp_path / "state",
        ws,
        kind,
    )
    assert told == "store_failed\nstore_failed\n['a'] ['f', 'large']\n"
    assert snapshot(ws) == before


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
def test_a_full_disk_leaves_the_tree_and_the_older_checkpoints(tmp_path: Path) -> None:
    code = f"""
import os, sys
sys.path[:0] = [{str(HERE)!r}, {str(ROOT)!r}]
from pathlib import Path
from ckpt_trees import snapshot
from veil.snapshots import Checkpoints
from veil.model.errors import VeilError
base = Path(sys.argv[1])
kept, ws = Checkpoints(base / "store" / "state"), base / "tree" / "ws"
ws.mkdir()
(ws / "f").write_bytes(os.urandom(600_000))
(ws / "g").write_bytes(os.urandom(200_000))
old = snapshot(ws)
kept.take(ws, "a")
(ws / "f").write_bytes(os.urandom(500_000)); (ws / "g").write_bytes(b"")
new = snapshot(ws)
for place in ("store", "tree"):
    filler = base / place / "filler"
    try:
        with open(filler, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
    except OSError as error:
        print(error.strerror)
    for call in (lambda: kept.take(ws, "b"), lambda: kept.restore(ws, "a")):
        try:
            call()
            print("done")
        except VeilError as error:
            print(place, error.code)
    assert snapshot(ws) == new
    filler.unlink()
kept.restore(ws, "a")
assert snapshot(ws) == old
kept.restore(ws, "before-restore")
assert snapshot(ws) == new
"""
    script = (
        'mkdir "$2/store" "$2/tree" && mount -t tmpfs -o size=4m none "$2/store" && '
        'mount -t tmpfs -o size=2m none "$2/tree" && exec "$0" -c "$1" "$2"'
    )
    argv = ["unshare", "-Urm", "sh", "-c", script, sys.executable, code, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    full = "No space left on device"
    assert done.stdout.split("\n")[:-1] == [
        full,
        "store store_failed",
        "store store_failed",
        full,
        "done",
        "tree not_restored",
    ]


def test_many_at_once_keep_their_order_and_their_contents(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    code = (
        "import sys; from pathlib import Path; from veil.snapshots import Checkpoints\n"
        "for n in range(8): print(Checkpoints(Path(sys.argv[1])).take(sys.argv[2], sys.argv[3]).number)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    def other(name: str) -> str:
        argv = [sys.executable, "-c", code, str(tmp_path / "state"), str(ws), name]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=120).stdout

    with ThreadPoolExecutor(6) as pool:
        processes = [pool.submit(other, f"p{number}") for number in range(3)]
        threads = [pool.submit(kept.take, ws, f"t{number}") for number in range(12)]
        numbers = [int(word) for each in processes for word in each.result().split()]
        numbers += [each.result().number for each in threads]
    assert sorted(numbers) == list(range(1, 37))
    assert [each.number for each in kept.list(ws)] == list(range(36, 0, -1))


def test_two_restores_at_once_leave_one_whole_state(kept: Checkpoints, ws: Path) -> None:
    states = {}
    for name in "ab":
        for number in range(30):
            (ws / f"f{number}").write_text(name)
        kept.take(ws, name)
        states[name] = snapshot(ws)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(kept.restore, ws, name) for name in "abab"]:
            done.result()
    assert snapshot(ws) in states.values()


def test_somebody_at_work_for_too_long_is_said(ws: Path, tmp_path: Path) -> None:
    patient = Checkpoints(tmp_path / "state")
    patient.take(ws)
    lock = next((tmp_path / "state").rglob("lock"))
    code = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdin is not None
    try:
        holder.stdout.readline()
        with pytest.raises(Refused) as caught:
            Checkpoints(tmp_path / "state", wait_seconds=0.05).take(ws)
        assert caught.value.code == "busy"
        assert len(patient.list(ws)) == 1
    finally:
        holder.kill()
        holder.communicate()
    assert patient.take(ws).number == 2


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


@pytest.mark.parametrize("below", ["", "checkpoints", "elsewhere"])
def test_veils_own_state_is_never_checkpointed_nor_restored(kept: Checkpoints, ws: Path, below: str) -> None:
    kept.take(ws, "a")
    own = ws.parent / "state" / below
    own.mkdir(exist_ok=True)
    before = snapshot(ws.parent / "state")
    (ws / "way in").symlink_to(own)
    for directory in (own, ws / "way in"):
        for call in (kept.take, kept.restore):
            with pytest.raises(Refused) as caught:
                call(directory, "a")
            assert caught.value.code == "own_state"
    assert snapshot(ws.parent / "state") == before


def test_a_long_label_does_not_fill_the_message(kept: Checkpoints, ws: Path) -> None:
    for number in range(20):
        kept.take(ws, f"{number:03}" + "x" * 997)
    with pytest.raises(NotFound) as caught:
        kept.restore(ws, "y" * 1000)
    assert len(str(caught.value)) < 3_000
    assert "019xxx" in str(caught.value)


def test_a_state_folder_that_is_closed_to_us_is_refused_by_name(ws: Path, tmp_path: Path) -> None:
    state = tmp_path / "closed"
    (state / "checkpoints").mkdir(parents=True)
    state.chmod(0)
    code = """
os.environ["VEIL_STATE_DIR"] = sys.argv[1]
import veil
for call in (veil.checkpoints, veil.checkpoint, veil.diff, veil.restore, lambda dir: veil.drop("a", dir)):
    try:
        call(dir=sys.argv[2])
    except VeilError as error:
        print(error.code, sys.argv[1] in str(error))
"""
    try:
        assert powerless(code, state, ws) == "not_ours True\n" * 5
    finally:
        state.chmod(0o700)


def test_what_is_damaged_can_be_dropped(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    kept.take(ws, "bad")
    kept.take(ws, "bad too")
    for pack in tmp_path.glob("state/checkpoints/*/packs/*"):
        pack.write_bytes(bytes(byte ^ 1 for byte in pack.read_bytes()))
    with pytest.raises(Refused, match=r"damaged|cannot be read"):
        kept.restore(ws, "bad")
    assert kept.drop(ws, "bad") == 1
    assert [each.label for each in kept.list(ws)] == ["bad too"]
    assert kept.drop(ws, "bad too") == 1
    kept.take(ws, "good")
    shutil.rmtree(ws)
    kept.restore(ws, "good")
    assert (ws / "f").read_text() == "x"
