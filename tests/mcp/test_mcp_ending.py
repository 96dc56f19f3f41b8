"""How everything ends when the client of the server leaves, its parent dies, or the server itself is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from marked import Marker
from raw_client import HELLO, LONG, Client, started

pytestmark = pytest.mark.needs("bash")


def test_the_end_of_the_client_ends_all_of_it(client: Client, marker: Marker) -> None:
    started(client, marker)
    assert client.leave() == 0
    assert marker.alive() == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_all_of_it(client: Client, marker: Marker, number: signal.Signals) -> None:
    started(client, marker)
    client.process.send_signal(number)
    assert client.wait() == 128 + number
    assert marker.alive() == {}


@pytest.mark.linux
def test_the_end_of_the_parent_ends_all_of_it(here: Path, marker: Marker) -> None:
    """Also when somebody else still holds the pipe open, so that its end is never seen."""
    client = Client(("bash", "-c", '"$0" -m veil mcp <&0 & wait', sys.executable))
    try:
        client.hello()
        server = client.server
        started(client, marker)
        client.process.kill()
        server.wait(LONG)
        marker.until(0)
    finally:
        client.end()


@pytest.mark.linux
@pytest.mark.parametrize("who", ["the one that serves", "its guard", "the group"])
def test_a_server_that_is_killed_takes_all_of_it_along(here: Path, marker: Marker, who: str) -> None:
    client = Client(start_new_session=True)
    try:
        client.hello()
        started(client, marker)
        server = client.server
        assert server.pid != client.process.pid
        if who == "the group":
            assert os.getpgid(client.process.pid) == client.process.pid
            os.killpg(client.process.pid, signal.SIGKILL)
        else:
            (server if who == "the one that serves" else psutil.Process(client.process.pid)).kill()
        client.wait()
        with contextlib.suppress(psutil.NoSuchProcess):
            server.wait(LONG)
        marker.until(0)
        assert client.complaints == b""
    finally:
        client.end()


@pytest.mark.linux
def test_background_runs_end_when_nobody_is_left_to_end_them(client: Client, marker: Marker) -> None:
    client.call("sh_run", command=f"sleep {marker} & setsid sleep {marker} & wait", background=True)
    marker.until(2)
    server = client.server
    psutil.Process(client.process.pid).suspend()  # so that the two really end at once
    server.kill()
    client.process.kill()
    client.wait()
    marker.until(0)


@pytest.mark.linux
def test_the_exit_code_of_a_killed_server_tells_by_what(client: Client) -> None:
    client.server.kill()
    assert client.wait() == 128 + signal.SIGKILL


def test_over_sockets(here: Path, marker: Marker) -> None:
    client = Client(sockets=True)
    try:
        client.hello()
        assert client.call("sh_run", command="echo hi")["stdout"] == "hi"
        told = client.call(
            "sh_run", command="head -c 2000000 /dev/zero | tr '\\0' w; cat", stdin="x" * 2_000_000, full=True
        )
        assert told["stdout"] == "w" * 2_000_000 + "x" * 2_000_000
        client.call("sh_run", command=f"sleep {marker}", background=True)
        assert client.leave() == 0
        assert marker.alive() == {}
    finally:
        client.end()


def test_requests_from_a_file_are_read_to_its_end(here: Path) -> None:
    """What is on its way at the end is not waited for: nobody would be there to read it."""
    asked = here / "asked.jsonl"
    frames = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}, {"half": 1}]
    asked.write_text("".join(json.dumps(frame) + "\n" for frame in frames))
    with asked.open() as stdin:
        done = subprocess.run([sys.executable, "-m", "veil", "mcp"], stdin=stdin, capture_output=True, timeout=LONG)
    assert (done.returncode, done.stderr) == (0, b"")
    assert {json.loads(line)["id"] for line in done.stdout.splitlines()} <= {1, None}


@pytest.mark.parametrize("how", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_a_client_that_has_left(here: Path, how: str) -> None:
    argv = ["bash", "-c", f'"$0" -m veil mcp {how}', sys.executable]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_client_that_reads_no_more_does_not_hold_the_server_up(here: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "veil", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server.stdin, server.stdout:
        server.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode() + b"\n"
        )
        server.stdin.flush()
        assert server.stdout.readline()
        for number in range(2, 6):  # more than any pipe holds
            call = {"name": "sh_run", "arguments": {"command": "head -c 900000 /dev/zero | tr '\\0' q", "full": True}}
            frame = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
            server.stdin.write(json.dumps(frame).encode() + b"\n")
        touch = {"name": "sh_run", "arguments": {"command": "touch after"}}
        frame = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": touch}
        server.stdin.write(json.dumps(frame).encode() + b"\n")
        server.stdin.flush()
        deadline = time.monotonic() + LONG
        while not (here / "after").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert server.wait(LONG) == 0
