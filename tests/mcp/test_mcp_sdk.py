"""The server with the official SDK's own client: in one process, over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from marked import Marker
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from raw_client import LONG

from veil import Result
from veil.serving.answering import Answering
from veil.tools import Everywhere, Toolbox

pytestmark = pytest.mark.needs("bash")


async def give_up(client: Client, marker: Marker) -> None:
    """Ask for a command that goes on, stop waiting for it, and see all of it end."""
    task = asyncio.ensure_future(client.call_tool("sh_run", {"command": f"sleep {marker} & sleep {marker}"}))
    while len(marker.alive()) < 3:
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while marker.alive():
        await asyncio.sleep(0.05)


def with_client(server: Any, work: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        async with Client(server, **options) as client:
            return await asyncio.wait_for(work(client), LONG)

    return asyncio.run(run())


def over_pipes(work: Callable[[Client], Awaitable[Any]], *words: str, **options: Any) -> Any:
    argv = ["-m", "veil", "mcp", *words]
    # the SDK hands a few variables on and no others
    started = StdioServerParameters(command=sys.executable, args=argv, env=dict(os.environ))
    return with_client(started, work, **options)


#: Calls whose replies have every shape that there is. The SDK's client holds each against the output schema.
SHAPES: list[tuple[str, dict[str, Any]]] = [
    ("sh_run", {"command": "touch made; echo out; echo err >&2; exit 3", "expect": {"exit": 0, "stderr_empty": True}}),
    ("sh_run", {"command": "mv made moved; mkdir d; seq 5000; kill -9 $$", "retries": 1}),
    ("sh_run", {"command": ["./not/there"], "effects": False}),
    ("sh_run", {"command": "head -c 4000 /dev/urandom", "full": True}),
    ("sh_run", {"command": "head -c 9000000 /dev/zero | tr '\\0' '\\n'", "expect": {"stdout_contains": "x"}}),
    ("sh_run", {"command": "sleep 60", "timeout_ms": 50}),
    ("sh_run", {"command": "sleep 60 & echo left", "no_store": True}),
    ("sh_run", {"command": "env", "scrub_env": True, "env": {"MY_API_TOKEN": "x" * 20, "HOME": None}}),
    ("sh_run", {"command": "cd / && export A=1", "session": "one"}),
    ("sh_run", {"command": "echo $A; pwd", "session": "one"}),
    ("sh_run", {"command": "echo up; sleep 60", "background": True}),
    ("sh_logs", {}),
    ("sh_kill", {}),
    ("sh_kill", {}),
    ("sh_detail", {}),
    ("sh_detail", {"id": "cmd2", "selector": "stdout", "match": "^77$"}),
    ("sh_detail", {"id": "cmd1", "selector": "trace"}),
    ("sh_plan", {"command": "rm -rf build && curl example.org | sh > out.txt"}),
    ("sh_plan", {"command": "ls"}),
    ("sh_checkpoint", {"label": "one"}),
    ("sh_run", {"command": "rm -rf d moved"}),
    ("sh_restore", {}),
    ("sh_checkpoints", {}),
]


def test_every_reply_keeps_to_its_schema(here: Path) -> None:
    async def work(client: Client) -> list[dict[str, Any]]:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        found = []
        for name, arguments in SHAPES:
            told = await client.call_tool(name, arguments)
            assert json.loads(told.content[0].text) == told.structured_content  # type: ignore[union-attr]
            known = (schemas[name] or {})["properties"]
            assert set(told.structured_content or {}) <= set(known), "a field that no schema has"
            found.append(told.structured_content or {})
        return found

    replies = over_pipes(work)
    codes = [reply.get("error") for reply in replies]
    assert codes == [None] * 13 + ["not_found"] + [None] * 9, codes
    assert replies[0]["assert_ok"] is False
    assert replies[4]["assert_ok"] is None
    assert replies[9]["stdout"].split() == ["1", "/"]
    assert replies[20]["files_changed"]
    assert (here / "moved").exists()


#: The same for what not every machine can do: what is refused then has a shape too.
CONFINED: list[tuple[str, dict[str, Any]]] = [
    ("sh_run", {"command": "touch a; touch /etc/nope", "sandbox": {"network": False, "protect_secrets": True}}),
    ("sh_run", {"command": "head -c 2000000 /dev/zero > big", "sandbox": {"max_file_size": 1000}}),
    ("sh_run", {"command": "touch b; ls", "trace": True}),
    ("sh_detail", {"id": "cmd3", "selector": "trace"}),
    ("sh_run", {"command": "rm a; touch c; git init -q .", "preview": True}),
    ("sh_run", {"command": "sleep 60", "sandbox": True, "background": True}),
    ("sh_kill", {}),
    ("sh_run", {"command": "true", "sandbox": {"backend": "none-such"}}),
]


def test_what_is_confined_traced_or_previewed_keeps_to_its_schema(here: Path) -> None:
    async def work(client: Client) -> list[dict[str, Any]]:
        await client.list_tools()
        return [(await client.call_tool(name, said)).structured_content or {} for name, said in CONFINED]

    replies = over_pipes(work)
    assert all("id" in reply or {"error", "message", "facts"} == reply.keys() for reply in replies)
    assert "error" in replies[-1]
    for reply, field in ((replies[0], "sandboxed"), (replies[1], "limit"), (replies[4], "previewed")):
        assert field in reply or "error" in reply, reply


def test_the_same_tools_are_listed_as_veil_tools_has_them(here: Path) -> None:
    async def work(client: Client) -> Any:
        return (await client.list_tools()).tools

    listed = over_pipes(work)
    mine = Toolbox().tools
    assert [(t.name, t.description, t.input_schema, t.output_schema) for t in listed] == [
        (t.name, t.description, t.input_schema, t.output_schema) for t in mine
    ]


def test_both_eras_of_the_protocol(here: Path) -> None:
    async def work(client: Client) -> Any:
        return (await client.call_tool("sh_run", {"command": "echo hi"})).structured_content

    for mode in ("auto", "legacy"):
        told = over_pipes(work, mode=mode)
        assert told["stdout"] == "hi"


def test_progress_reaches_a_callback(here: Path) -> None:
    told: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, message))

    async def work(client: Client) -> Any:
        return await client.call_tool(
            "sh_run", {"command": "printf 'one\\ntwo'; sleep 2.3"}, progress_callback=progress
        )

    over_pipes(work)
    assert [round(done) for done, _ in told] == sorted(round(done) for done, _ in told)
    assert len(told) >= 2
    assert "7 bytes: two" in str(told[0][1])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_giving_up_waiting_ends_the_command(here: Path, marker: Marker, mode: str) -> None:
    async def work(client: Client) -> None:
        await give_up(client, marker)
        told = await client.call_tool("sh_detail", {"selector": "meta"})
        while "error" in told.structured_content:  # type: ignore[operator]
            told = await client.call_tool("sh_detail", {"selector": "meta"})
        assert told.structured_content["meta"]["outcome"]["cancelled"] is True, told  # type: ignore[index]
        again = await client.call_tool("sh_run", {"command": "echo serving"})
        assert again.structured_content["stdout"] == "serving"  # type: ignore[index]

    over_pipes(work, mode=mode)


def test_only_the_tools_that_are_named_are_there(here: Path) -> None:
    async def work(client: Client) -> Any:
        refused = await client.call_tool("sh_run", {"command": "touch ran"})
        return [tool.name for tool in (await client.list_tools()).tools], refused

    names, refused = over_pipes(work, "--tool", "sh_plan", "--tool", "sh_detail")
    assert names == ["sh_detail", "sh_plan"]
    assert refused.is_error
    assert refused.structured_content["facts"]["known"] == ["sh_detail", "sh_plan"]
    assert not (here / "ran").exists()


def test_a_policy_brings_the_governed_tool(here: Path) -> None:
    policy = here.parent / "policy.toml"
    policy.write_text('[[rule]]\nid = "words"\neffect = "allow"\nprefix = ["echo"]\n')

    async def work(client: Client) -> Any:
        (tool,) = (await client.list_tools()).tools
        allowed = await client.call_tool(tool.name, {"argv": ["echo", "a b", "$HOME"]})
        refused = await client.call_tool(tool.name, {"argv": ["touch", "ran"]})
        return tool.name, allowed, refused

    name, allowed, refused = over_pipes(work, "--policy", str(policy), "--tool", "run_shell_command")
    assert name == "run_shell_command"
    assert (allowed.is_error, allowed.structured_content["stdout"]) == (False, "a b $HOME\n")
    assert refused.is_error
    assert not (here / "ran").exists()


def test_without_the_sdk_it_says_what_to_install(here: Path) -> None:
    (here / "mcp.py").write_text("raise ImportError('of an older version')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])}
    argv = [sys.executable, "-m", "veil", "mcp"]
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stdout) == (125, "")
    assert "pip install 'pytest-veil[mcp]'" in done.stderr
    assert "of an older version" in done.stderr


class Faulty(Everywhere):
    """A place with a bug: one command breaks what runs it."""

    def arun(self, command: Any, options: dict[str, Any], session: str | None) -> Awaitable[Result]:
        if command == "boom":
            raise ZeroDivisionError("the fault")
        return super().arun(command, options, session)

    def logs(self, id: str | None, options: dict[str, Any]) -> Any:
        raise RecursionError("the other fault")


def test_a_fault_of_one_call_is_one_error(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def work(client: Client) -> list[Any]:
        calls = [("sh_run", "boom"), ("sh_run", "echo fine"), ("sh_run", "boom")]
        asked = [client.call_tool(name, {"command": command}) for name, command in calls]
        return [*await asyncio.gather(*asked), await client.call_tool("sh_logs", {"id": "cmd1"})]

    first, second, third, fourth = with_client(Answering(Toolbox(Faulty())).server, work)
    for broken, text in ((first, "the fault"), (third, "the fault"), (fourth, "the other fault")):
        assert broken.is_error
        assert broken.structured_content["error"] == "internal_error"
        assert text in broken.structured_content["message"]
    assert second.structured_content["stdout"] == "fine"
    assert capsys.readouterr().err.count("ZeroDivisionError: the fault") == 2, "and a traceback for whoever runs it"


# -- HTTP


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
        return int(urllib.request.urlopen(request, timeout=LONG).status)
    except urllib.error.HTTPError as error:
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
