"""A process that takes or restores a checkpoint is killed at any moment: nothing is lost, and doing it again helps."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ckpt_trees import snapshot
from killing import Killer, started

from veil.snapshots import Checkpoints

#: Kills of a checkpoint, and of a restore.
ROUNDS = 200


def fill(ws: Path, word: str, rng: random.Random) -> None:
    """A tree with many files, some of which are the same in every state."""
    ws.mkdir(exist_ok=True)
    for folder in range(4):
        at = ws / f"d{folder}"
        instead = rng.random() < 0.1
        if at.is_file():
            at.unlink()
        elif at.exists() and (instead or rng.random() < 0.2):
            shutil.rmtree(at)
        if instead:
            at.write_text(f"a file instead {word}")
            continue
        at.mkdir(exist_ok=True)
        for number in range(5):
            if rng.random() < 0.6:
                (at / f"f{number}").write_text(f"{word} {rng.random()}" * rng.randrange(1, 60))
        (at / f"only {word}").write_bytes(rng.randbytes(260_000 if folder == 0 and rng.random() < 0.25 else 10))


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """In memory where that can be had: SIGKILL knows nothing of disks, and waiting for one takes most of the time."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="veil-kills-", dir="/dev/shm") as made:
        yield Path(made).resolve()


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with started() as process:
        yield process


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(f"{request.node.name} {os.environ.get('VEIL_TEST_SEED', '')}")


def spent(killer: Killer, state: Path, ws: Path, verb: str, label: str) -> float:
    """Seconds that the operation takes when nobody kills it."""
    start = time.monotonic()
    assert killer.done(state, ws, verb, label)
    return time.monotonic() - start


def test_a_killed_take_leaves_everything_older(base: Path, rng: random.Random, killer: Killer) -> None:
    ws, state = base / "ws", base / "state"
    kept = Checkpoints(state)
    fill(ws, "first", rng)
    first = snapshot(ws)
    usual = spent(killer, state, ws, "take", "first")
    interrupted = 0
    for number in range(ROUNDS):
        fill(ws, f"w{number}", rng)
        now = snapshot(ws)
        many = len(kept.list(ws))
        done = killer.done(state, ws, "take", f"k{number}", after=rng.random() * usual * 1.5)
        interrupted += not done
        assert snapshot(ws) == now
        assert len(kept.list(ws)) - many in ((1,) if done else (0, 1))
        for each in kept.list(ws)[:1]:
            if each.label == f"k{number}":
                assert kept.diff(ws, each.id) == []
        if number % 4 == 0:
            kept.take(ws, "whole")
            kept.restore(ws, "first")
            assert snapshot(ws) == first
            kept.restore(ws, "whole")
            assert snapshot(ws) == now
    assert interrupted
    kept.restore(ws, "first")
    assert snapshot(ws) == first


def test_a_killed_restore_is_finished_or_undone(base: Path, rng: random.Random, killer: Killer) -> None:
    ws, state = base / "ws", base / "state"
    kept = Checkpoints(state)
    fill(ws, "target", rng)
    target = snapshot(ws)
    kept.take(ws, "target")
    fill(ws, "other", rng)
    usual = spent(killer, state, ws, "restore", "target")
    halfway = 0
    for number in range(ROUNDS):
        fill(ws, f"w{number}", rng)
        displaced = snapshot(ws)
        for _ in range(rng.randrange(1, 3)):  # killed once, or twice in a row
            killer.done(state, ws, "restore", "target", after=rng.random() * usual * 1.5)
            if snapshot(ws) == target:  # also when it was killed after its end: another one would displace this
                break
        now = snapshot(ws)
        mixed = now not in (target, displaced)
        halfway += mixed
        if number % 2:
            kept.restore(ws, "target")
            assert snapshot(ws) == target
        if mixed:
            kept.restore(ws, "before-restore")
            assert snapshot(ws) == displaced
        assert not list(ws.glob(".veil-restore-*"))
        if now == target:
            undo = [each.id for each in kept.list(ws) if each.label == "before-restore"][:4]
            assert any(kept.restore(ws, each) and snapshot(ws) == displaced for each in undo)
    assert halfway


def test_work_done_after_a_killed_restore_is_displaced_as_well(base: Path, rng: random.Random, killer: Killer) -> None:
    ws, state = base / "ws", base / "state"
    kept = Checkpoints(state)
    fill(ws, "target", rng)
    target = snapshot(ws)
    kept.take(ws, "target")
    fill(ws, "other", rng)
    usual = spent(killer, state, ws, "restore", "target")
    for number in range(ROUNDS // 8):
        fill(ws, f"w{number}", rng)
        killer.done(state, ws, "restore", "target", after=(0.3 + rng.random() * 0.7) * usual)
        (ws / "later work").write_text(f"precious {number}")
        kept.take(ws)  # also clears away what the killed one left
        worked = snapshot(ws)
        assert not list(ws.glob(".veil-restore-*"))
        kept.restore(ws, "target")
        assert snapshot(ws) == target
        kept.restore(ws, "before-restore")
        assert snapshot(ws) == worked


def test_a_killed_clearing_loses_nothing(base: Path, rng: random.Random, killer: Killer) -> None:
    ws, state = base / "ws", base / "state"
    kept = Checkpoints(state)
    for number in range(ROUNDS // 8):
        fill(ws, f"w{number}", rng)
        kept.take(ws, "gone")
        shutil.rmtree(ws / "d1", ignore_errors=True)
        rest = snapshot(ws)
        kept.take(ws, "stays")
        killer.done(state, ws, "drop", "gone", after=rng.random() * 0.05)
        shutil.rmtree(ws)
        kept.restore(ws, "stays")
        assert snapshot(ws) == rest


def test_a_killed_undo_is_finished_by_the_same_call(base: Path, rng: random.Random, killer: Killer) -> None:
    ws, state = base / "ws", base / "state"
    kept = Checkpoints(state)
    fill(ws, "target", rng)
    target = snapshot(ws)
    kept.take(ws, "target")
    fill(ws, "other", rng)
    other = snapshot(ws)
    usual = spent(killer, state, ws, "restore", "target")
    halfway = 0
    for _ in range(ROUNDS // 4):
        killer.done(state, ws, "restore", "before-restore", after=rng.random() * usual)
        now = snapshot(ws)
        if now not in (target, other):
            halfway += 1
            kept.restore(ws, "before-restore")
            assert snapshot(ws) == other
        kept.restore(ws, "target")
        assert snapshot(ws) == target
        if now == target:  # nothing was begun, or all was done before: make the undo the right way round again
            fill(ws, "other", rng)
            other = snapshot(ws)
            kept.restore(ws, "target")
    assert halfway


def test_a_restore_that_was_killed_at_its_very_end_counts_as_done_for_others(base: Path, killer: Killer) -> None:
    """Killed at every call of the system in turn: whatever then restores something else displaces what is there."""
    ws, state = base / "ws", base / "state"
    kept = Checkpoints(state)
    ws.mkdir()
    (ws / "f").write_text("first")
    kept.take(ws, "first")
    (ws / "f").write_text("second")
    kept.take(ws, "second")
    at_the_end = 0
    for moment in range(1, 400):
        (ws / "f").write_text("work")
        if killer.done(state, ws, "restore", "first", moment=moment):
            break
        then = (ws / "f").read_text()
        at_the_end += then == "first"
        kept.restore(ws, "second")
        kept.restore(ws, "before-restore")
        assert (ws / "f").read_text() == then
    else:
        pytest.fail("the restore never came to its end")
    assert at_the_end
