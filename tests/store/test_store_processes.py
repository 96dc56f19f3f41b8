"""One store, many processes: first opening, numbers, sudden death, forks."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from veil.model.outcome import Observation, Outcome, Stream
from veil.model.record import Record
from veil.store.disk import DiskStore

ROOT = Path(__file__).parents[2]
WRITER = """
import os, sys, time
from pathlib import Path
from veil.model.outcome import Observation, Outcome, Stream
from veil.model.record import Record
from veil.store.disk import DiskStore
folder, rounds, who, reopen = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "reopen"
store = DiskStore(folder, max_records=100_000)
os.write(1, b"ready\\n")
sys.stdin.read(1)  # all start at once
for turn in range(rounds):
    out = f"{who}.{turn} ".encode() * (1 if turn % 3 else 2000)
    seen = Observation(Outcome("exited", 0, 0.0, Stream(out, b"", len(out), 0)))
    kept = store.add(Record("", time.time(), f"{who}.{turn}", ("x",), "/", seen))
    assert kept.stored == "disk", kept.why_memory
    os.write(1, f"{kept.id} {who}.{turn}\\n".encode())
    if reopen:
        store.close()
"""


def writer(folder: Path, rounds: int, who: str, reopen: bool = False) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", WRITER, str(folder), str(rounds), who, "reopen" if reopen else "keep"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    # unbuffered: `communicate` does not see what `readline` has read ahead
    return subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)


def go(processes: list[subprocess.Popen[bytes]]) -> None:
    """Let them all begin when the last one is ready."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"g")


def acknowledged(output: bytes) -> dict[str, str]:
    """Id and command of each record that was reported as kept (a line cut by a kill counts for nothing)."""
    lines = output.decode().split("\n")[:-1]
    return dict(line.split(" ") for line in lines)  # type: ignore[misc]


def healthy(folder: Path) -> bool:
    connection = sqlite3.connect(folder / "store.db")
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


@pytest.mark.parametrize("reopen", [False, True])
def test_many_processes_open_a_brand_new_store_at_once(tmp_path: Path, reopen: bool) -> None:
    """store-01: 20 processes, 20 records each; nothing lost, no number twice, nobody refused."""
    folder = tmp_path / "deep" / "store"
    processes = [writer(folder, 20, f"p{n}", reopen) for n in range(20)]
    go(processes)
    told: dict[str, str] = {}
    count = 0
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err.decode()
        mine = acknowledged(out)
        count += len(mine)
        told.update(mine)
    assert (count, len(told)) == (400, 400)
    store = DiskStore(folder)
    assert sorted(store.ids(1000)) == sorted(told)
    for name, command in told.items():
        found = store.get(name)
        out = f"{command} ".encode() * (1 if int(command.split(".")[1]) % 3 else 2000)
        assert (found.command, found.observation.outcome.stdout.data) == (command, out)
    store.close()
    assert healthy(folder)


def test_sudden_death_loses_no_record_that_was_acknowledged(tmp_path: Path) -> None:
    """Writers are killed with SIGKILL at random moments, in the first rounds while they make the store."""
    chance = random.Random(20)
    told: dict[str, str] = {}
    for turn in range(16):
        folder = tmp_path / f"store{turn if turn < 8 else 'last'}"
        processes = [writer(folder, 100_000, f"r{turn}w{n}") for n in range(3)]
        go(processes)
        # later rounds wait for a first record; the early ones may strike while the file is being made
        first = b""
        if turn >= 8:
            assert processes[0].stdout is not None
            first = processes[0].stdout.readline()
        time.sleep(chance.uniform(0.0, 0.1))
        for process in processes:
            process.send_signal(signal.SIGKILL)
        mine = acknowledged(first)
        for process in processes:
            mine |= acknowledged(process.communicate(timeout=60)[0])
        if folder.name == "storelast":
            told |= mine
            mine = told
        store = DiskStore(folder, max_records=100_000)
        there = set(store.ids(100_000))
        assert set(mine) <= there
        for name in chance.sample(sorted(mine), min(20, len(mine))):
            assert store.get(name).command == mine[name]
        assert store.add(store.get() if there else Record("", 0.0, "x", (), "/", Observation(Outcome("exited", 0))))
        store.close()
        assert healthy(folder)
    assert len(told) >= 8, "the writers got to write"


def one(command: str) -> Record:
    return Record(
        "", time.time(), command, ("x",), "/", Observation(Outcome("exited", 0, 0.0, Stream(b"x", b"", 1, 1)))
    )


def test_both_sides_of_a_fork_go_on_writing(tmp_path: Path) -> None:
    """A connection carried over a fork, or file locks only believed in, would lose records here: the parent closes as
    the last one it knows of while the children write."""
    store = DiskStore(tmp_path, max_records=100_000)
    store.add(one("before"))
    children = []
    for n in range(4):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                kept = [store.add(one(f"child {n}.{turn}")) for turn in range(150)]
                store.close()
                status = 0 if all(k.stored == "disk" for k in kept) else 2
            finally:
                os._exit(status)
        children.append(pid)
        for turn in range(20):
            assert store.add(one(f"parent {n}.{turn}")).stored == "disk"
            store.close()
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    commands = sorted(store.get(name).command for name in store.ids(100_000))
    parents = [f"parent {n}.{turn}" for n in range(4) for turn in range(20)]
    theirs = [f"child {n}.{turn}" for n in range(4) for turn in range(150)]
    assert commands == sorted(["before", *parents, *theirs])
    store.close()
    assert healthy(tmp_path)


def test_a_fork_in_the_middle_of_other_threads_writing(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, max_records=100_000)
    stop = threading.Event()
    written: list[str] = []

    def work() -> None:
        while not stop.is_set():
            written.append(store.add(one("thread")).id)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for n in range(15):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    signal.alarm(60)  # a lock held by a thread that is not here would hang for ever
                    status = 0 if store.add(one(f"child {n}")).stored == "disk" else 2
                finally:
                    os._exit(status)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    there = store.ids(1_000_000)
    assert set(written) <= set(there)
    assert len(there) == len(written) + 15
    store.close()
    assert healthy(tmp_path)
