"""The server by raw JSON-RPC over pipes: frames whole and broken, what children may try, and many calls at once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from marked import Marker
from raw_client import LONG, Client

pytestmark = pytest.mark.needs("bash")


def error(frame: dict[str, Any]) -> tuple[Any, int]:
    return frame["id"], frame["error"]["code"]


# -- calls


def test_what_a_client_is_told_first(here: Path) -> None:
    client = Client()
    try:
        told = client.hello()
        assert told["serverInfo"]["name"] == "veil"
        assert told["capabilities"] == {"tools": {"listChanged": False}}
        assert "sh_run" in told["instructions"]
        tools = client.answer(client.ask("tools/list"))["result"]["tools"]
        assert {"sh_run", "sh_detail", "sh_logs", "sh_kill"} <= {tool["name"] for tool in tools}
        assert all(tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object" for tool in tools)
        assert [tool["name"] for tool in tools if tool["annotations"]["readOnlyHint"]][:2] == ["sh_detail", "sh_logs"]
        assert client.leave() == 0
        assert client.complaints == b""
    finally:
        client.end()


def test_a_run_and_its_detail(client: Client, here: Path) -> None:
    told = client.call("sh_run", command="echo one; echo two >&2; touch made; exit 3", expect={"exit": 3})
    assert (told["exit"], told["ok"], told["assert_ok"]) == (3, False, True)
    assert (told["stdout"], told["stderr"]) == ("one", "two")
    assert [row["path"] for row in told["files_changed"]] == ["made"]
    found = client.call("sh_detail", id=told["id"], selector="stderr")
    assert found["stderr"]["text"] == "two\n"
    wrong = client.call("sh_detail", id="cmd999")
    assert wrong["error"] == "not_found"
    assert told["id"] in wrong["facts"]["known"]


def test_a_tool_that_there_is_not(client: Client) -> None:
    told = client.call("sh_runn", command="true")
    assert told["error"] == "not_found"
    assert "sh_run" in told["facts"]["known"]


# -- frames


def test_malformed_frames_are_answered_and_cost_nothing_else(client: Client) -> None:
    client.write(b"this is no JSON\n")
    assert error(client.next()) == (None, -32700)
    client.write(b'{"jsonrpc": "2.0", "id": 71\n')
    assert error(client.next()) == (None, -32700)
    client.write(b'{"jsonrpc": "2.0", "id": 72, "method": "ping", "params": {"x": "\xff\xfe"}}\n')
    assert error(client.next()) == (None, -32700)
    client.write(b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}\n')
    assert error(client.next()) == (None, -32700)
    client.write(b"[" * 100_000 + b"\n")
    assert error(client.next()) == (None, -32700)
    client.send([{"jsonrpc": "2.0", "id": 73, "method": "ping"}])
    assert error(client.next()) == (None, -32600)
    client.send({"id": 74, "method": "ping"})
    assert error(client.next()) == (74, -32600)
    client.send({"jsonrpc": "2.0", "id": True, "method": "ping"})
    assert error(client.next()) == (None, -32600)
    client.send({"jsonrpc": "2.0", "id": 75, "method": "tools/call", "params": [1]})
    assert error(client.next()) == (75, -32600)
    client.write(b"\n  \n\r\n")
    assert client.answer(client.ask("ping"))["result"] == {}
    assert len(client.lines) == 11, "one answer each, and none to a blank line"


def test_frames_in_pieces_and_several_at_once(client: Client) -> None:
    frame = b'{"jsonrpc": "2.0", "id": 80, "method": "ping"}\n'
    for at in range(0, len(frame), 5):
        client.write(frame[at : at + 5])
        time.sleep(0.002)
    assert client.answer(80)["result"] == {}
    client.write(frame.replace(b"80", b"81") + frame.replace(b"80", b"82") + frame.replace(b"80", b'"x"')[:20])
    assert client.answer(81)["result"] == client.answer(82)["result"] == {}
    client.write(frame.replace(b"80", b'"x"')[20:])
    assert client.next() == {"jsonrpc": "2.0", "id": "x", "result": {}}


def test_unknown_methods_and_wrong_parameters(client: Client) -> None:
    assert error(client.answer(client.ask("tools/explode")))[1] == -32601
    assert error(client.answer(client.ask("tools/call", {"arguments": {}})))[1] == -32602
    assert error(client.answer(client.ask("tools/call", {"name": "sh_run", "arguments": "ls"})))[1] == -32602
    client.tell("notifications/of_something_else", {"x": 1})
    client.tell("notifications/cancelled", {"requestId": 12345})
    assert client.call("sh_run", command="echo still there")["stdout"] == "still there"


def test_ten_megabytes_of_arguments(client: Client) -> None:
    told = client.call("sh_run", command="wc -c", stdin="x" * 10_000_000)
    assert told["stdout"].strip() == "10000000"
    told = client.call("sh_run", command="true", nonsense="y" * 10_000_000)
    assert told["error"] == "unknown_option"
    assert len(json.dumps(told)) < 5_000


def test_before_the_handshake_no_tool_runs(here: Path) -> None:
    client = Client()
    try:
        told = client.answer(client.begin("sh_run", command="touch ran"))
        assert told["error"]["code"] == -32602
        assert not (here / "ran").exists()
    finally:
        client.end()


# -- what children may try


def test_mcp_01_children_reach_neither_stdin_nor_protocol(client: Client) -> None:
    began = client.begin("sh_run", command="cat; read line; echo got:$line:")
    assert client.answer(client.ask("ping"))["result"] == {}
    assert client.told(began)["stdout"] == "got::", "its standard input is at its end at once"
    client.call("sh_run", command="echo x >/dev/fd/1; echo y >/proc/$PPID/fd/1; echo z >/proc/$PPID/fd/0")
    client.call("sh_run", command="echo late > /dev/tty; echo err >&2; echo {} >&3", full=True)
    started = client.call("sh_run", command="sleep 0.2; echo late; cat", background=True)
    for _ in range(20):
        assert client.answer(client.ask("ping"))["result"] == {}
    client.call("sh_kill", id=started["id"])
    assert client.call("sh_detail", id=started["id"], selector="stdout")["stdout"]["text"] in ("late\n", "")
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in client.lines)


_WIRE = """
import os, subprocess, sys
from veil.host import prctl
os.setgroups([])
os.setgid(1001)
os.setuid(1001)
wire, end = os.pipe()
prctl.libc().prctl(4, 1, 0, 0, 0)  # changing the user has shut it already
if sys.argv[1] == "private":
    assert prctl.keep_private()
script = f"echo x 2>/dev/null >/proc/$PPID/fd/{end} || echo kept out"
print(subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout, end="")
"""


@pytest.mark.needs("root")
@pytest.mark.linux
def test_mcp_01_a_command_of_the_same_user_cannot_open_the_wire_in_proc() -> None:
    """What the server does to itself, told from what would be without it. The superuser cannot be kept out."""
    for how, told in (("private", "kept out\n"), ("open", "")):
        done = subprocess.run([sys.executable, "-c", _WIRE, how], capture_output=True, text=True, timeout=LONG)
        assert (done.returncode, done.stdout) == (0, told), done.stderr


def test_mcp_04_any_bytes_are_one_line_of_json(client: Client) -> None:
    told = client.call("sh_run", command="seq 30; printf '\\377 \\355\\240\\200 \\342\\200\\250 end'")
    assert told["stdout_lossy"] is True
    assert told["stdout"].endswith("end")
    told = client.call(
        "sh_run", command="printf '\\377\\000\\355\\240\\200'; head -c 1000000 /dev/zero | tr '\\0' z", full=True
    )
    assert told["stdout_binary"] is True
    assert len(told["stdout_base64"]) > 1_000_000
    told = client.call("sh_run", command="head -c 1000000 /dev/zero | tr '\\0' z", full=True)
    assert told["stdout"] == "z" * 1_000_000
    told = client.call("sh_run", command="touch $'a\\xff\\xed\\xa0\\x80b' $'line\\nbreak'")
    assert sorted(row["path"] for row in told["files_changed"])[-1] == "line\nbreak"
    for line in client.lines:
        assert line.endswith(b"\n")
        assert line.isascii()
        json.loads(line).get("id")


def test_mcp_04_lone_surrogates_in_a_request(client: Client) -> None:
    client.write(
        b'{"jsonrpc":"2.0","id":900,"method":"tools/call","params":'
        b'{"name":"sh_run","arguments":{"command":"echo \\ud800"}}}\n'
    )
    told = client.told(900)
    assert told["error"] == "bad_input"
    assert "lone surrogate" in told["message"]
    client.write(b'{"jsonrpc":"2.0","id":901,"method":"tools/call","params":{"name":"\\udfff","arguments":{}}}\n')
    frame = client.answer(901)
    assert "error" in frame or frame["result"]["isError"]
    big = "p" * 70_000  # a request line beyond the usual limit of line readers
    assert client.call("sh_run", command=f": {big}; echo ok")["stdout"] == "ok"


# -- cancelling, progress, many at once


def test_mcp_03_a_cancelled_call_ends_its_tree_and_nothing_else(client: Client, marker: Marker) -> None:
    began = client.begin("sh_run", command=f"sleep {marker} & sleep {marker}", timeout_ms=600_000)
    marker.until(2)
    client.tell("notifications/cancelled", {"requestId": began, "reason": "no longer wanted"})
    asked = []
    for number in range(20):
        asked.append(client.begin("sh_run", command=f"echo {number}"))
        if number in (3, 7):  # while the handler ends, as nearly as can be
            time.sleep(0.01)
            client.tell("notifications/cancelled", {"requestId": asked[-1]})
    assert client.answer(began)["error"]["code"] == -32800
    assert marker.alive() == {}, "it is answered once all of it has ended"
    for number in range(20):
        answer = client.answer(asked[number])
        if number in (3, 7) and "error" in answer:
            assert answer["error"]["code"] == -32800
        else:
            assert answer["result"]["structuredContent"]["stdout"] == str(number)
    assert client.answer(client.ask("ping"))["result"] == {}
    ids = [json.loads(line).get("id") for line in client.lines]
    assert all(ids.count(number) == 1 for number in (began, *asked))
    newest = client.call("sh_detail", selector="meta", id=client.call("sh_run", command="true")["id"])
    assert newest["meta"]["outcome"]["exit"] == 0


def test_progress_is_told_to_who_asks(client: Client) -> None:
    began = client.begin("sh_run", {"progressToken": "tok"}, command="echo first; sleep 2.4; echo last")
    told = []
    while "method" in (frame := client.next()):
        assert frame["method"] == "notifications/progress"
        told.append(frame["params"])
    assert frame["id"] == began
    assert len(told) >= 2
    assert all(params["progressToken"] == "tok" for params in told)
    assert told[0]["progress"] < told[1]["progress"]
    assert told[0]["message"].endswith("6 bytes: first")
    client.call("sh_run", command="sleep 1.5")
    assert "progress" not in json.dumps([json.loads(line) for line in client.lines[-1:]])


def test_fifty_calls_at_once(client: Client, here: Path) -> None:
    """None waits for another: each waits for a file that the last one makes."""
    waits = "for i in $(seq 600); do [ -e go ] && break; sleep 0.1; done; [ -e go ] && echo"
    asked = [client.begin("sh_run", command=f"{waits} {n}", effects=False) for n in range(49)]
    asked.append(client.begin("sh_run", command="touch go; echo 49", effects=False))
    assert [client.told(call)["stdout"] for call in asked] == [str(n) for n in range(50)]
