"""The same run for asyncio: cancelled means gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from marked import Marker

import veil

ROOT = Path(__file__).parents[2]
LONG = 60.0


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_gives_what_run_gives() -> None:
    result = asyncio.run(veil.arun("echo out; echo err >&2; exit 3", expect={"exit": 3}))
    assert (result.exit, result.stdout, result.stderr, result.assert_ok) == (3, "out\n", "err\n", True)
    assert veil.detail(result.id).result == result
    with pytest.raises(veil.CommandFailed):
        asyncio.run(veil.arun("exit 3", check=True))
    with pytest.raises(veil.BadInput):
        asyncio.run(veil.arun("true", timeout=-1))


def test_many_at_once_wait_for_one_another() -> None:
    # each waits for all the others: fewer than eight at a time would never end
    text = "touch {n}; while [ $(ls | wc -l) -lt 8 ]; do sleep 0.02; done"

    async def all_of_them() -> list[veil.Result]:
        return await asyncio.gather(*(veil.arun(text.format(n=n), effects=False, timeout=LONG) for n in range(8)))

    results = asyncio.run(all_of_them())
    assert all(result.ok for result in results)
    assert len({result.id for result in results}) == 8


@pytest.mark.parametrize("contain", [False, pytest.param(True, marks=pytest.mark.linux)])
def test_cancelling_ends_the_tree_before_it_returns(contain: bool, marker: Marker) -> None:
    async def cancelled() -> dict[int, str]:
        task = asyncio.create_task(veil.arun(f"setsid sleep {marker} & sleep {marker}", contain=contain))
        while len(await asyncio.to_thread(marker.alive)) < 2:
            assert not task.done()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # again, while it is on its way
        with pytest.raises(asyncio.CancelledError):
            await task
        return marker.alive()

    assert asyncio.run(cancelled()) == {}


def test_cancelled_while_it_waits_for_its_turn_it_never_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_EFFECTS_WAIT_MS", "60000")

    async def both() -> bool:
        first = asyncio.create_task(veil.arun("touch begun; until [ -e go ]; do sleep 0.02; done", timeout=LONG))
        while not (tmp_path / "begun").exists():
            assert not first.done()
            await asyncio.sleep(0.01)
        second = asyncio.create_task(veil.arun("touch never"))
        await asyncio.sleep(0.1)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second  # at once, though its turn has not come
        (tmp_path / "go").touch()
        return (await first).ok

    assert asyncio.run(both())
    assert not (tmp_path / "never").exists()
    (run,) = [run for run in veil.runs() if run.command == "touch never"]
    outcome = run.record.observation.outcome
    assert (outcome.ended, outcome.exit, outcome.cancelled) == ("spawn_failed", 126, True)


def test_cancelled_before_it_starts_and_between_attempts(marker: Marker) -> None:
    async def soon() -> None:
        task = asyncio.create_task(veil.arun(f"sleep {marker}"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        task = asyncio.create_task(veil.arun("touch tried; exit 1", retries=3, backoff=LONG * 10))
        while not Path("tried").exists():
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    asyncio.run(soon())
    assert time.monotonic() - began < LONG
    assert marker.alive() == {}


def test_a_timeout_of_asyncio_is_a_cancellation(marker: Marker) -> None:
    async def limited() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(veil.arun(f"sleep {marker}"), 0.5)
        assert marker.alive() == {}

    asyncio.run(limited())


def test_an_error_of_the_listener_ends_it_and_is_raised(marker: Marker) -> None:
    def listen(name: str, data: bytes) -> None:
        raise ZeroDivisionError(threading.current_thread().name)

    with pytest.raises(ZeroDivisionError, match="veil-run"):
        asyncio.run(veil.arun(f"echo up; sleep {marker}", on_output=listen))
    assert marker.alive() == {}


def test_no_thread_and_no_descriptor_is_left() -> None:
    asyncio.run(veil.arun("true"))
    threads, before = threading.active_count(), len(os.listdir("/dev/fd"))
    for _ in range(5):
        asyncio.run(veil.arun("true"))
    deadline = time.monotonic() + LONG
    while threading.active_count() > threads:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(os.listdir("/dev/fd")) <= before


CLOSED = """
import asyncio, sys, veil
loop = asyncio.new_event_loop()
task = loop.create_task(veil.arun(f"sleep {sys.argv[1]}"))
loop.run_until_complete(asyncio.sleep(1))
loop.close()
print("closed", flush=True)
"""
CTRL_C = """
import asyncio, sys, veil
async def main():
    await veil.arun(f"echo; sleep {sys.argv[1]}", on_output=lambda *_: print("up", flush=True))
asyncio.run(main())
"""


def test_a_loop_that_was_closed_meanwhile_leaves_nobody_at_the_end(marker: Marker) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-W", "ignore", "-c", CLOSED, marker.text]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stdout) == (0, "closed\n")
    assert "Traceback" not in done.stderr
    assert marker.alive() == {}


def test_ctrl_c_ends_the_tree(marker: Marker) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", CTRL_C, marker.text]
    owner = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    owner.send_signal(signal.SIGINT)
    _, told = owner.communicate(timeout=LONG)
    assert owner.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in told
    assert marker.alive() == {}
