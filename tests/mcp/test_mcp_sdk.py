"""The server with the official SDK's own client: in one process and over pipes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from marked import Marker
from mcp.client.client import Client
from raw_client import LONG
from sdk_client import give_up, over_pipes, with_client

from veil import Result
from veil.serving.answering import Answering
from veil.tools import Everywhere, Toolbox

pytestmark = pytest.mark.needs("bash")


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
