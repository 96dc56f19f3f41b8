"""Output and control of running commands, seen from other processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.model.errors import BadInput, NotFound
from veil.model.outcome import Observation, Outcome
from veil.model.record import Record
from veil.store.database import Database
from veil.store.disk import DiskStore
from veil.store.live import Control, LiveLog, Running, incomplete

ROOT = Path(__file__).parents[2]
RUNNING = Record(
    "", 1.0, "serve", ("serve",), "/", Observation(Outcome("exited", 0)), background=True, status="running"
)


def announced(folder: Path, cap: int) -> tuple[LiveLog, Control]:
    database = Database(folder)
    control = Control(database)
    control.announce("cmd1", os.getpid(), 4321, "start:99")
    return LiveLog(database, cap), control


@given(st.lists(st.binary(min_size=1, max_size=400), max_size=30), st.integers(1, 900), st.integers(1, 300), st.data())
@settings(max_examples=80, deadline=None)
def test_reading_by_cursor_gives_every_byte_or_says_how_many_are_gone(
    tmp_path_factory: pytest.TempPathFactory, writes: list[bytes], cap: int, limit: int, data: st.DataObject
) -> None:
    log, _ = announced(tmp_path_factory.getbasetemp() / "live", cap)
    log.drop("cmd1")
    true, cursor = b"", 0
    for n, written in enumerate([*writes, b""]):
        log.append("cmd1", "stdout", written)
        true += written
        if n == len(writes):
            log.end("cmd1", "stdout")
        elif not data.draw(st.booleans()):
            continue
        while True:
            got = log.read("cmd1", "stdout", cursor, limit)
            assert got.next_cursor == cursor + got.gap + len(got.data)
            assert true[cursor + got.gap : got.next_cursor] == got.data
            assert got.gap == 0 or cursor + got.gap >= len(true) - cap
            lines = true.count(b"\n") + (not true.endswith(b"\n") and true != b"")
            assert (got.total_bytes, got.total_lines) == (len(true), lines)
            if got.next_cursor == cursor:
                break
            cursor = got.next_cursor
    assert cursor == len(true)
    log._database.close()


@given(st.text(max_size=300), st.lists(st.integers(1, 7), min_size=1, max_size=20))
@settings(max_examples=80, deadline=None)
def test_no_character_is_split_though_the_writer_splits_them(
    tmp_path_factory: pytest.TempPathFactory, text: str, sizes: list[int]
) -> None:
    """bg-03."""
    log, _ = announced(tmp_path_factory.getbasetemp() / "text", 100_000)
    log.drop("cmd1")
    raw, cursor, shown, at, turn = text.encode("utf-8", "replace"), 0, "", 0, 0
    while at < len(raw):
        size = sizes[turn % len(sizes)]
        log.append("cmd1", "stdout", raw[at : at + size])
        at, turn = at + size, turn + 1
        got = log.read("cmd1", "stdout", cursor)
        shown += got.data.decode("utf-8")  # strict
        cursor = got.next_cursor
    assert shown.encode("utf-8", "replace") == raw
    log._database.close()


def test_half_a_character_is_held_back_until_it_is_whole_or_the_stream_ends(tmp_path: Path) -> None:
    """bg-03, as it was reported."""
    log, _ = announced(tmp_path, 1000)
    log.append("cmd1", "stdout", b"a\303")
    assert log.read("cmd1", "stdout") == (b"a", 1, 0, 2, 1)
    log.append("cmd1", "stdout", b"\251b\n\xf0\x9f")
    assert log.read("cmd1", "stdout", 1) == (b"\303\251b\n", 5, 0, 7, 2)
    log.end("cmd1", "stdout")
    assert log.read("cmd1", "stdout", 5) == (b"\xf0\x9f", 7, 0, 7, 2)


def test_a_flood_is_bounded_and_old_cursors_are_told_of_the_gap(tmp_path: Path) -> None:
    """bg-04: the log never grows beyond its cap; the totals stay true; no wrong bytes for an old cursor."""
    log, _ = announced(tmp_path, 100_000)
    line = b"y\n" * 5000
    for _ in range(300):
        log.append("cmd1", "stdout", line)
    log._database.close()
    assert (tmp_path / "store.db").stat().st_size < 600_000
    got = log.read("cmd1", "stdout", 10)
    assert (got.total_bytes, got.total_lines) == (3_000_000, 1_500_000)
    assert 10 + got.gap >= 2_900_000
    assert 10 + got.gap + len(got.data) == got.next_cursor == 3_000_000
    assert log.read("cmd1", "stdout", 3_000_000).data == b""
    log.append("cmd1", "stderr", b"z" * 1_000_000)
    assert log.read("cmd1", "stderr")[1:] == (1_000_000, 900_000, 1_000_000, 1)


@pytest.mark.parametrize("cursor", [-1, True, 1.5, "0"])
def test_a_cursor_that_is_none_is_refused(tmp_path: Path, cursor: int) -> None:
    log, _ = announced(tmp_path, 1000)
    with pytest.raises(BadInput, match="cursor"):
        log.read("cmd1", "stdout", cursor)


def test_unknown_runs_have_no_live_output(tmp_path: Path) -> None:
    log, control = announced(tmp_path, 1000)
    assert log.read("cmd1", "stdout") == (b"", 0, 0, 0, 0)
    for name in ("cmd2", "mem1"):
        with pytest.raises(NotFound):
            log.read(name, "stdout")
    assert control.request("cmd2", "SIGTERM") is False
    control.withdraw("cmd1")
    assert control.state("cmd1") is None
    with pytest.raises(NotFound):
        log.read("cmd1", "stdout")


def test_gc_removes_what_dead_owners_left_and_keeps_what_runs(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    runs = [store.reserve(RUNNING) for _ in range(2)]
    for run in runs:
        store.control.announce(run.id, 1, 2, "x")
        store.live.append(run.id, "stdout", b"text")
    store.update(replace(runs[0], status="killed"))
    assert store.gc()["live_removed"] == 1
    assert [run.id for run in store.control.all()] == [runs[1].id]
    assert store.live.read(runs[1].id, "stdout").data == b"text"
    with pytest.raises(NotFound):
        store.live.read(runs[0].id, "stdout")


def test_a_run_that_is_touched_stays_fresh(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, ttl_seconds=1.0)
    run = store.reserve(RUNNING)
    deadline = time.monotonic() + 1.6
    while time.monotonic() < deadline:
        store.control.touch(run.id)
        time.sleep(0.1)
    assert store.get(run.id).status == "running"
    store.gc()
    assert store.ids() == [run.id]


OWNER = """
import os, sys, time
from dataclasses import replace
from pathlib import Path
from veil.model.outcome import Observation, Outcome, Stream
from veil.model.record import Record
from veil.store.disk import DiskStore
store = DiskStore(Path(sys.argv[1]))
run = store.reserve(Record("", 1.0, "serve", ("serve",), "/", Observation(Outcome("exited", 0)), status="running"))
store.control.announce(run.id, os.getpid(), 4242, "boot:17")
print(run.id, flush=True)
text, at, signal = "zwölf Boxkämpfer \\N{SNOWMAN}\\n".encode() * 2000, 0, None
while signal is None:
    store.live.append(run.id, "stdout", text[at:at + 11])
    at += 11
    signal = store.control.requested(run.id)
kept = text[:at]
ended = Outcome("signaled", 143, 1.0, Stream(kept, b"", len(kept), kept.count(b"\\n")), signal=signal)
store.update(replace(run, status="killed", observation=Observation(ended)))
store.live.drop(run.id); store.control.withdraw(run.id); store.close()
"""


def test_another_process_follows_the_output_and_has_the_owner_end_it(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], env=env, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        run = owner.stdout.readline().decode().strip()
        store = DiskStore(tmp_path)
        assert store.get(run).status == "running"
        assert store.control.state(run) == Running(run, owner.pid, 4242, "boot:17", None)
        cursor, seen = 0, b""
        while len(seen) < 600:
            got = store.live.read(run, "stdout", cursor)
            got.data.decode("utf-8")  # strict: whole characters only
            assert got.gap == 0
            seen, cursor = seen + got.data, got.next_cursor
        assert store.control.request(run, "SIGTERM") is True
        assert owner.wait(timeout=60) == 0
    final = store.get(run)
    assert (final.status, final.observation.outcome.signal) == ("killed", "SIGTERM")
    assert final.observation.outcome.stdout.data.startswith(seen)
    assert store.control.state(run) is None
    with pytest.raises(NotFound):
        store.live.read(run, "stdout", cursor)


@given(st.text(min_size=1, max_size=5), st.integers(0, 3))
def test_incomplete_counts_exactly_what_lacks_an_end(text: str, cut: int) -> None:
    raw = text.encode("utf-8", "replace")
    part = raw[: max(0, len(raw) - cut)]
    whole = part[: len(part) - incomplete(part)]
    assert whole.decode("utf-8", "ignore").encode() == whole
    assert len(part) - len(whole) < 4
    assert part.decode("utf-8", "ignore").encode() == whole
