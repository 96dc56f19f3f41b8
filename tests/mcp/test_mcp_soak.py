"""Two thousand calls of one server: memory and descriptors stay where they were."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from marked import Marker
from raw_client import Client

CALLS = 2_000
#: So many are on their way at once.
AT_ONCE = 10
MIB = 1 << 20
pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux, pytest.mark.timeout(600)]


def deck(client: Client, marker: Marker) -> list[Callable[[], int]]:
    """Every kind of call, in the mixture of an agent's day. Each gives the id of its request."""

    def cancelled() -> int:
        began = client.begin("sh_run", command=f"sleep {marker}", effects=False)
        client.tell("notifications/cancelled", {"requestId": began})
        return client.ask("ping")

    def malformed() -> int:
        client.write(b'{"half": \n')
        return client.ask("ping")

    return [
        *[lambda: client.begin("sh_run", command="true", effects=False)] * 6,
        lambda: client.begin("sh_run", command="echo x > made; exit 3", expect={"exit": 3, "file_exists": "made"}),
        lambda: client.begin("sh_run", command="head -c 300000 /dev/zero | tr '\\0' x", full=True, effects=False),
        lambda: client.begin("sh_run", {"progressToken": 1}, command="seq 2000", no_store=True, effects=False),
        lambda: client.begin("sh_run", command="echo $((++n))", session="one", effects=False),
        lambda: client.begin("sh_detail", selector="stdout", match="x"),
        lambda: client.begin("sh_detail", id="cmd999999"),
        lambda: client.begin("sh_logs"),
        lambda: client.begin("sh_plan", command="rm -rf x | tee y"),
        lambda: client.begin("sh_runn", command="true"),
        lambda: client.begin("sh_run", command="true", nonsense=1),
        lambda: client.ask("tools/list"),
        lambda: client.ask("no/such/method"),
        cancelled,
        malformed,
    ]


def held(process: psutil.Process) -> Iterator[str]:
    """What its descriptors are; one that is closed meanwhile is none."""
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(link)


def settle(process: psutil.Process, descriptors: int) -> None:
    """A cancelled run may still be ending."""
    deadline = time.monotonic() + 30
    while process.num_fds() > descriptors:
        assert time.monotonic() < deadline, list(held(process))
        time.sleep(0.02)


def test_nothing_piles_up_in_a_server(
    marker: Marker, tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # limits that are reached early, so that what may be kept is all there when memory is first looked at
    monkeypatch.setenv("VEIL_MAX_RECORDS", "50")
    monkeypatch.setenv("VEIL_MAX_STORE_BYTES", "4000000")
    client = Client()
    try:
        client.hello()
        process = client.server
        cards = deck(client, marker)
        descriptors = memory = threads = 0
        for turn in range(CALLS // len(cards)):
            for at in range(0, len(cards), AT_ONCE):
                for asked in [card() for card in cards[at : at + AT_ONCE]]:
                    client.answer(asked)
            if turn % 20 == 0:
                started = client.call("sh_run", command=f"echo up; sleep {marker}", background=True)
                assert "id" in started, started
                assert client.call("sh_kill", id=started["id"])["status"] == "killed"
            client.lines.clear()
            client._early.clear()
            marker.until(0)
            if turn == 30:  # caches are filled, and the allocator has its reserves
                descriptors, threads = process.num_fds(), process.num_threads()
                memory = process.memory_info().rss
            elif turn > 30:
                settle(process, descriptors)
                assert process.num_threads() <= threads + AT_ONCE
        assert process.memory_info().rss - memory < 24 * MIB
        assert process.children() == [], "not even one that is dead and unreaped"
        assert client.leave() == 0
    finally:
        client.end()
