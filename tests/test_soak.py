"""Hundreds of mixed runs in one process: nothing piles up, in memory, descriptors, threads, processes or files."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from marked import Marker

import veil

RUNS = 500
MIB = 1 << 20


def refuses() -> None:
    with pytest.raises(veil.BadInput):
        veil.run("true", timeout=-1)


def fails_listening(name: str, data: bytes) -> None:
    raise ZeroDivisionError


def listened() -> None:
    with pytest.raises(ZeroDivisionError):
        veil.run("echo x; sleep 60", on_output=fails_listening)


async def cancelled() -> None:
    task = asyncio.create_task(veil.arun("sleep 60"))
    await asyncio.sleep(0.03)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def background() -> None:
    with veil.start("echo up; sleep 60") as handle:
        handle.wait_for(pattern="up", timeout=60)


def mixture(marker: Marker, here: Path) -> list[tuple[int, Callable[[], object]]]:
    """How many in a hundred, and what."""
    long = "y" * 140_000
    return [
        (30, lambda: veil.run("true")),
        (14, lambda: veil.run("echo x > made; echo err >&2; exit 3", expect={"exit": 3, "file_exists": "made"})),
        (10, lambda: veil.run("head -c 3000000 /dev/zero | tr '\\0' x", effects=False)),
        (8, lambda: veil.run("cat", stdin=b"z" * 300_000, no_store=True)),
        (6, lambda: veil.run(["./not/there"], retries=1)),
        (6, lambda: veil.run("exit 1", retries=2, effects=False)),
        (4, lambda: veil.run(f": {long}; exit 4", redact=True, secrets=["a very secret value"])),
        (4, lambda: veil.run(f"sleep {marker} & echo left", effects=False)),
        (4, lambda: veil.run("echo in; exit 5", contain=True)),
        (3, lambda: veil.run(f"sleep {marker}", timeout=0.05, effects=False)),
        (3, refuses),
        (3, listened),
        (3, lambda: asyncio.run(cancelled())),
        (2, background),
    ]


def settled(marker: Marker, threads: int) -> None:
    deadline = time.monotonic() + 60
    while threading.active_count() > threads or marker.alive():
        assert time.monotonic() < deadline, (threading.enumerate(), marker.alive())
        time.sleep(0.05)
    gc.collect()


def test_nothing_piles_up(marker: Marker, tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, temporary = tmp_path / "work", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("MARK", marker.text)
    # limits that are reached early, so that what may be kept is all there when memory is first looked at
    monkeypatch.setenv("VEIL_MAX_STORE_BYTES", "6000000")
    monkeypatch.setenv("VEIL_MAX_RECORDS", "40")
    deck = [what for many, what in mixture(marker, here) for _ in range(many)]
    assert len(deck) == 100
    order = random.Random(7)
    process = psutil.Process()
    children = set(process.children(recursive=True))
    before = threads = memory = 0
    for turn in range(RUNS // len(deck)):
        order.shuffle(deck)
        for what in deck:
            what()
        settled(marker, threads or threading.active_count())
        descriptors = len(os.listdir("/dev/fd"))
        if turn == 1:  # the first two rounds fill caches and the allocator's own reserves
            before, threads, memory = descriptors, threading.active_count(), process.memory_info().rss
        elif turn > 1:
            assert descriptors <= before
            assert threading.active_count() <= threads
    assert process.memory_info().rss - memory < 24 * MIB
    assert set(process.children(recursive=True)) <= children, "not even one that is dead and unreaped"
    assert list(temporary.iterdir()) == []
    assert sum(path.stat().st_size for path in own_state.rglob("*") if path.is_file()) < 60 * MIB
