"""The server over HTTP, asked by the client of the official SDK and by requests of hand."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from marked import Marker
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from raw_client import LONG
from sdk_client import give_up

pytestmark = pytest.mark.needs("bash")


@contextmanager
def serving(*words: str) -> Iterator[tuple[subprocess.Popen[str], str, str | None]]:
    """The process, its address and the token that it told, if it told one."""
    argv = [sys.executable, "-m", "veil", "mcp", "--http", *words]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            address = re.findall(r"http://\S+", server.stderr.readline())
            assert address, server.stderr.read()
            told = None if "--token-file" in words else server.stderr.readline().split()[-1]
            yield server, address[0], told
        finally:
            server.terminate()


def call_over_http(address: str, token: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    async def run() -> list[Any]:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=LONG) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            return [(await client.call_tool(name, arguments)).structured_content for name, arguments in calls]

    return asyncio.run(run())


def status(address: str, **headers: str) -> int:
    request = urllib.request.Request(address, data=b"{}", headers={"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=LONG) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_over_http_with_the_token_and_not_without(here: Path, marker: Marker) -> None:
    with serving() as (server, address, token):
        assert token is not None
        assert address.startswith("http://127.0.0.1:")
        assert status(address) == status(address, Authorization="Bearer wrong") == 401
        assert status(address, Authorization=token) == 401
        assert status(address, Authorization=f"Bearer {token}", Host="evil.example") in (403, 421)
        ran, started = call_over_http(
            address,
            token,
            ("sh_run", {"command": "echo hi; env"}),
            ("sh_run", {"command": f"sleep {marker} & setsid sleep {marker} & wait", "background": True}),
        )
        assert ran["stdout"].startswith("hi")
        assert token not in json.dumps(ran)
        marker.until(2)
        # another client finds what the first one left
        (logs,) = call_over_http(address, token, ("sh_logs", {}))
        assert logs["id"] == started["id"]
        server.send_signal(signal.SIGTERM)
        assert server.wait(LONG) == 128 + signal.SIGTERM
        assert marker.alive() == {}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_giving_up_waiting_ends_the_command_over_http(here: Path, marker: Marker, mode: str) -> None:
    async def run(address: str, token: str) -> None:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=LONG) as http,
            Client(streamable_http_client(address, http_client=http), mode=mode) as client,
        ):
            await give_up(client, marker)
            told = await client.call_tool("sh_run", {"command": "echo serving"})
            assert told.structured_content["stdout"] == "serving"  # type: ignore[index]

    with serving() as (_, address, token):
        assert token is not None
        asyncio.run(asyncio.wait_for(run(address, token), LONG))


def test_a_signal_ends_and_answers_what_is_on_its_way(here: Path, marker: Marker) -> None:
    with serving() as (server, address, token):
        assert token is not None
        answered: list[Any] = []

        def ask() -> None:
            answered.extend(call_over_http(address, token, ("sh_run", {"command": f"sleep {marker} & sleep {marker}"})))

        asking = threading.Thread(target=ask)
        asking.start()
        marker.until(3)
        server.send_signal(signal.SIGTERM)
        assert server.wait(LONG) == 128 + signal.SIGTERM
        assert marker.alive() == {}
        asking.join(LONG)
        assert [reply["error"] for reply in answered] == ["server_ending"]
        assert server.stderr is not None
        assert server.stderr.read() == ""


def test_a_token_file_is_made_once_and_for_its_owner_alone(here: Path) -> None:
    path = here.parent / "token"
    with serving("--token-file", str(path)) as (_, address, _):
        token = path.read_text().strip()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert call_over_http(address, token, ("sh_run", {"command": "echo 1"}))[0]["stdout"] == "1"
    with serving("--token-file", str(path)) as (_, address, _):
        assert path.read_text().strip() == token
        assert call_over_http(address, token, ("sh_run", {"command": "echo 2"}))[0]["stdout"] == "2"


@pytest.mark.parametrize(
    ("content", "words", "why"),
    [
        ("short\n", [], "16 characters"),
        ("with a blank in the middle\n", [], "no blank"),
        (None, ["--port", "99999"], "port 99999"),
        ("x" * 32, ["--port", "-1"], "port -1"),
    ],
)
def test_what_cannot_be_served_is_refused(here: Path, content: str | None, words: list[str], why: str) -> None:
    path = here.parent / "token"
    if content is not None:
        path.write_text(content)
    argv = [sys.executable, "-m", "veil", "mcp", "--http", "--token-file", str(path), *words]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stdout) == (125, "")
    assert why in done.stderr
    assert "Traceback" not in done.stderr
