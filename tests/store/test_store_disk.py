"""The store on disk: what it leaves there, what it does when the disk refuses, how it keeps its limits."""

# over 300 lines because: it is one subject: every way in which a disk can refuse, with one child process to try it in

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from veil.model.errors import NotFound, StoreFailed
from veil.model.outcome import Observation, Outcome, Stream
from veil.model.record import Record
from veil.store.disk import DiskStore
from veil.store.memory import MemoryStore

ROOT = Path(__file__).parents[2]
CHILD = """
import os, resource, sys, time
from pathlib import Path
from veil.model.outcome import Observation, Outcome, Stream
from veil.model.record import Record
from veil.store.disk import DiskStore
def record(out=b"", **fields):
    seen = Observation(Outcome("exited", 0, 0.0, Stream(out, b"", len(out), out.count(b"\\n"))))
    return Record("", time.time(), "echo hi", ("echo", "hi"), "/", seen, **fields)
"""


def record(out: bytes = b"", **fields: object) -> Record:
    observation = Observation(Outcome("exited", 0, 0.25, Stream(out, b"", len(out), out.count(b"\n"))))
    return replace(Record("", time.time(), "echo hi", ("echo", "hi"), "/", observation), **fields)  # type: ignore[arg-type]


def child(code: str, *arguments: object, prefix: tuple[str, ...] = ()) -> str:
    """What a process of its own prints after the preamble ``CHILD``."""
    argv = [*prefix, sys.executable, "-c", CHILD + code, *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def rows(folder: Path, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(folder / "store.db")
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_making_and_reading_a_store_touch_nothing(tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "a" / "b")
    assert store.ids() == []
    with pytest.raises(NotFound):
        store.get("cmd1")
    assert store.gc()["records_left"] == 0
    assert store.control.all() == []
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_importing_the_store_does_not_load_sqlite() -> None:
    code = "import sys, veil.store.disk; print([m for m in ('sqlite3', 'fcntl', 'hashlib') if m in sys.modules])"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert "sqlite3" not in done.stdout, done
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("umask", ["0o000", "0o022", "0o777"])
def test_files_are_for_the_owner_only_whatever_the_umask(tmp_path: Path, umask: str) -> None:
    """store-03: folder 0700, files 0600, also those that SQLite makes beside the database."""
    code = """
os.umask(int(sys.argv[2], 8))
store = DiskStore(Path(sys.argv[1]))
store.add(record(b"x" * 100_000)); store.add(record())
for found in sorted(Path(sys.argv[1]).iterdir()):
    print(found.name, oct(found.stat().st_mode & 0o777))
"""
    folder = tmp_path / "outer" / "inner"
    lines = child(code, folder, umask).splitlines()
    assert lines == ["init.lock 0o600", "store.db 0o600", "store.db-shm 0o600", "store.db-wal 0o600"]
    for step in (folder, folder.parent):
        assert stat.S_IMODE(step.stat().st_mode) == 0o700


def test_a_store_that_was_too_open_is_narrowed(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    store.add(record())
    store.close()
    os.chmod(tmp_path / "store.db", 0o644)
    store.add(record())
    assert stat.S_IMODE((tmp_path / "store.db").stat().st_mode) == 0o600


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    store.add(record())
    store.close()
    connection = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    before = (tmp_path / "store.db").read_bytes()
    store = DiskStore(tmp_path)
    with pytest.raises(StoreFailed, match="format 7") as caught:
        store.get("cmd1")
    assert caught.value.facts["found"] == 7
    kept = store.add(record())
    assert (kept.id[:3], kept.stored) == ("mem", "memory-only")
    assert kept.why_memory is not None
    assert "format 7" in kept.why_memory
    assert store.get() == kept
    store.close()
    assert (tmp_path / "store.db").read_bytes() == before


@pytest.mark.parametrize("what", ["text", "foreign database", "folder", "symlink", "damaged"])
def test_what_is_no_store_is_left_alone(tmp_path: Path, what: str) -> None:
    path = tmp_path / "store.db"
    if what == "text":
        path.write_bytes(b"my diary, and a long one " * 500)
    elif what == "foreign database":
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE mine (x)")
        connection.close()
    elif what == "folder":
        path.mkdir()
    elif what == "symlink":
        (tmp_path / "elsewhere").write_bytes(b"precious")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        store = DiskStore(tmp_path)
        store.add(record())
        store.close()
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xaa" * (len(content) - 4096)
        path.write_bytes(content)
    target = tmp_path / "elsewhere" if what == "symlink" else path
    before = None if what == "folder" else target.read_bytes()
    store = DiskStore(tmp_path)
    with pytest.raises(StoreFailed):
        store.get("cmd1")
    kept = store.add(record(b"out"))
    assert kept.stored == "memory-only"
    assert kept.why_memory
    assert store.get(kept.id) == kept
    assert store.ids() == [kept.id]
    store.close()
    assert what == "folder" or target.read_bytes() == before


def test_an_empty_file_left_by_a_crash_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "store.db").touch()
    assert DiskStore(tmp_path).add(record()).id == "cmd1"


def test_what_a_killed_maker_left_is_cleared_away(tmp_path: Path) -> None:
    for name in ("store.db.new", "store.db.new-wal", "store.db.new-journal", "store.db-wal"):
        (tmp_path / name).write_bytes(b"half" * 2000)
    store = DiskStore(tmp_path)
    assert store.add(record()).id == "cmd1"
    assert store.get("cmd1").command == "echo hi"
    assert not (tmp_path / "store.db.new").exists()


def test_a_store_locked_for_too_long_is_passed_over_and_taken_up_again(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, busy_seconds=0.1)
    first = store.add(record())
    holder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    passed = store.add(record())
    assert passed.stored == "memory-only"
    assert "locked" in str(passed.why_memory)
    assert store.get() == passed
    assert store.ids() == [passed.id, first.id]
    holder.execute("ROLLBACK")
    holder.close()
    deadline = time.monotonic() + 20
    while (again := store.add(record())).stored != "disk":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert store.get() == again
    assert again.id == "cmd2"


def test_the_end_of_a_run_goes_to_memory_under_its_own_id_when_the_disk_refuses(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, busy_seconds=0.1)
    begun = store.reserve(record(status="running"))
    holder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    ended = store.update(replace(begun, status="exited"))
    holder.close()
    assert (ended.id, ended.stored, ended.status) == ("cmd1", "memory-only", "exited")
    assert store.get("cmd1") == ended
    assert store.ids() == ["cmd1"]


def test_a_full_disk_never_fails_a_run(tmp_path: Path) -> None:
    code = """
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
store = DiskStore(Path(sys.argv[1]))
kept = [store.add(record(b"x" * 60_000)) for _ in range(12)]
assert all(store.get(one.id) == one for one in kept)
print(*(one.id for one in kept)); print(kept[-1].why_memory)
"""
    names, why = child(code, tmp_path).split("\n")
    kinds = [name[:3] for name in names.split()]
    assert kinds[0] == "cmd"
    assert kinds[-1] == "mem"
    assert "store.db" in why
    store = DiskStore(tmp_path)
    assert store.ids(100) == [name for name in reversed(names.split()) if name.startswith("cmd")]
    assert store.add(record(b"x" * 60_000)).stored == "disk"
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
@pytest.mark.parametrize("options", ["size=256k", "size=4k", "ro"])
def test_a_small_or_read_only_file_system(tmp_path: Path, options: str) -> None:
    code = """
store = DiskStore(Path(sys.argv[1]) / "store")
kept = [store.add(record(b"x" * 30_000)) for _ in range(20)]
assert all(store.get(one.id) == one for one in kept)
print(*(one.stored for one in kept)); print(kept[-1].why_memory)
"""
    mount = f'mount -t tmpfs -o {options} none "$0" && exec "$@"'
    lines = child(code, tmp_path, prefix=("unshare", "-Urm", "sh", "-c", mount, str(tmp_path))).split("\n")
    stored = lines[0].split()
    assert stored[-1] == "memory-only"
    assert (stored[0] == "disk") == (options == "size=256k")
    assert "store" in lines[1]


def test_a_folder_deleted_under_a_living_store_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = DiskStore(folder)
    for _ in range(3):
        store.add(record())
    running = store.reserve(record(status="running"))
    shutil.rmtree(folder)
    assert store.ids() == []
    other = DiskStore(folder)
    theirs = [other.add(record(command="theirs")).id for _ in range(5)]
    assert running.id in theirs
    ended = store.update(replace(running, status="exited"))
    assert ended.stored == "memory-only"
    assert other.get(running.id).command == "theirs", "the number belongs to somebody else now"
    kept = store.add(record())
    assert other.get(kept.id) == kept
    other.close()
    store.close()
    assert rows(folder, "PRAGMA integrity_check") == [("ok",)]


def test_numbers_are_never_used_again(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, ttl_seconds=0.05)
    last = [store.add(record()).id for _ in range(5)][-1]
    time.sleep(0.1)
    store.gc()
    assert rows(tmp_path, "SELECT count(*) FROM records") == [(0,)]
    store.close()
    assert (last, DiskStore(tmp_path).add(record()).id) == ("cmd5", "cmd6")


def test_the_slack_on_disk_is_as_stated_and_gc_makes_it_exact(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, max_records=64)
    for n in range(200):
        store.add(record())
        held = rows(tmp_path, "SELECT count(*) FROM records")[0][0] if n % 7 == 0 else 0
        assert isinstance(held, int)
        assert held <= 64 + 64 // 16
    store.gc()
    assert rows(tmp_path, "SELECT count(*), max(n) FROM records") == [(64, 200)]
    assert rows(tmp_path, "SELECT count(*) FROM streams WHERE n NOT IN (SELECT n FROM records)") == [(0,)]


def test_gc_gives_the_room_back(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    for _ in range(20):
        store.add(record(os.urandom(200_000)))
    store.close()
    big = (tmp_path / "store.db").stat().st_size
    assert big > 4_000_000
    lean = DiskStore(tmp_path, max_bytes=500_000)
    told = lean.gc()
    assert (told["records_removed"], told["records_left"]) == (18, 2)
    assert told["bytes_freed"] > 3_000_000
    assert told["bytes_left"] < 700_000
    assert sum(path.stat().st_size for path in tmp_path.iterdir() if path.name != "store.db-shm") < 700_000
    assert lean.ids() == ["cmd20", "cmd19"]
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]


def test_a_full_store_stays_within_its_bytes_on_disk(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, max_bytes=2_000_000)
    for _ in range(60):
        store.add(record(os.urandom(150_000)))
        assert rows(tmp_path, "SELECT sum(size) <= 2000000 FROM records") == [(1,)]
    store.close()
    assert (tmp_path / "store.db").stat().st_size < 2_600_000


def test_one_memory_for_both_kinds_of_runs_without_a_trace(tmp_path: Path) -> None:
    memory = MemoryStore()
    store = DiskStore(tmp_path, memory=memory)
    on_disk = store.add(record())
    hidden = memory.add(record())
    assert store.get(hidden.id) == hidden
    assert store.get() == hidden
    assert store.ids() == [hidden.id, on_disk.id]
    assert DiskStore(tmp_path).ids() == [on_disk.id]
    with pytest.raises(NotFound, match="only in the process"):
        DiskStore(tmp_path).get(hidden.id)
    assert MemoryStore(why="no place").add(record()).why_memory == "no place"


@pytest.mark.needs("root")
def test_a_folder_of_somebody_else_in_an_open_one_is_not_used(tmp_path: Path) -> None:
    """As in /tmp: who owns the step below a folder open to all could read and swap everything."""
    public = tmp_path / "public"
    public.mkdir()
    os.chmod(public, 0o1777)
    trap = public / "veil-0"
    trap.mkdir()
    os.chown(trap, 12345, 12345)
    os.chmod(trap, 0o777)
    kept = DiskStore(trap / "projects" / "x").add(record())
    assert kept.stored == "memory-only"
    assert "another user" in str(kept.why_memory)
    assert list(trap.iterdir()) == []
