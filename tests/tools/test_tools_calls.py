"""Calls of the tools: what an agent may get slightly wrong, what is answered, and what runs nothing."""

# over 300 lines because: a third of it is two tables of arguments that are taken or refused

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marked import Marker

import veil
from veil import stateful, tools
from veil.tools.reading import read

pytestmark = pytest.mark.needs("bash")
call = tools.call


@pytest.fixture(autouse=True)
def here(tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "slip", "meant"),
    [
        ("sh_run", {"cmd": "ls"}, {"command": "ls"}),
        ("sh_run", {"command": "ls", "cmd": "ls"}, {"command": "ls"}),
        ("sh_run", {"command": "ls", "timeout": "5000"}, {"command": "ls", "timeout_ms": 5000}),
        ("sh_run", {"command": "ls", "timeout": 1000}, {"command": "ls", "timeout_ms": 1000}),
        ("sh_run", {"command": "ls", "timeout_ms": "50.5"}, {"command": "ls", "timeout_ms": 50.5}),
        ("sh_run", {"command": "ls", "run_in_background": "true"}, {"command": "ls", "background": True}),
        ("sh_run", {"command": "ls", "description": "List files"}, {"command": "ls"}),
        ("sh_run", {"command": "ls", "cwd": None, "timeout": None}, {"command": "ls"}),
        ("sh_run", {"command": "ls", "expect": '{"exit": 0}'}, {"command": "ls", "expect": {"exit": 0}}),
        ("sh_run", {"command": "ls", "sandbox": "False"}, {"command": "ls", "sandbox": False}),
        (
            "sh_run",
            {"command": "ls", "sandbox": '{"network": false}'},
            {"command": "ls", "sandbox": {"network": False}},
        ),
        ("sh_run", {"command": "ls", "retries": "2"}, {"command": "ls", "retries": 2}),
        ("sh_run", {"command": ["ls", "-l"]}, {"command": ["ls", "-l"]}),
        ("sh_run", {"command": "ls", "stdin": "true"}, {"command": "ls", "stdin": "true"}),
        ("sh_run", {"command": "ls", "effects": "all"}, {"command": "ls", "effects": "all"}),
        ("sh_plan", {"cmd": "ls", "description": "x"}, {"command": "ls"}),
        (
            "sh_logs",
            {"id": "cmd1", "stdout_cursor": "12", "full": "false"},
            {"id": "cmd1", "stdout_cursor": 12, "full": False},
        ),
        ("sh_detail", {"lines": "[1, 2]"}, {"lines": [1, 2]}),
        ("sh_checkpoints", None, {}),
    ],
)
def test_slips_with_one_meaning_are_taken(name: str, slip: Any, meant: dict[str, Any]) -> None:
    (tool,) = (tool for tool in tools.catalogue() if tool.name == name)
    assert read(tool, slip) == meant


@pytest.mark.parametrize(
    ("name", "arguments", "code", "words"),
    [
        ("sh_run", {"command": "touch ran", "timeout": 30}, "bad_input", "timeout_ms: 30000"),
        ("sh_run", {"command": "touch ran", "timeout": "999"}, "bad_input", "milliseconds"),
        ("sh_run", {"command": "touch ran", "timeout": "soon"}, "bad_input", "timeout_ms: expected milliseconds"),
        ("sh_run", {"command": "touch ran", "timeout_ms": -1}, "bad_input", "timeout_ms"),
        ("sh_run", {"command": "touch ran", "timeout_ms": 0}, "bad_input", "more than 0"),
        ("sh_run", {"command": "touch ran", "timeout_ms": True}, "bad_input", "timeout_ms"),
        ("sh_run", {"command": "touch ran", "timeout_ms": 5, "timeout": 5000}, "bad_input", "the same as timeout_ms"),
        ("sh_run", {"command": "touch ran", "cmd": "touch other"}, "bad_input", "the same as command"),
        ("sh_run", {"command": "touch ran", "backoff_ms": 10, "retries": 0}, "bad_input", "retries"),
        ("sh_run", {"command": "touch ran", "backoff_ms": 1e12, "retries": 1}, "bad_input", "backoff_ms: "),
        ("sh_run", {"command": "touch ran", "timout_ms": 5000}, "unknown_option", "did you mean 'timeout_ms'?"),
        ("sh_run", {"command": "touch ran", "workdir": "/"}, "unknown_option", "these are: command, cwd"),
        ("sh_run", {"command": "touch ran", "check": True}, "unknown_option", "check"),
        ("sh_run", {"command": "touch ran", "background": "maybe"}, "bad_input", "background"),
        ("sh_run", {"command": "touch ran", "expect": {"exot": 0}}, "bad_input", "did you mean 'exit'?"),
        ("sh_run", {"command": "touch ran", "expect": "{exit: 0}"}, "bad_input", "expect"),
        ("sh_run", {"command": "touch ran", "sandbox": {"netwrok": False}}, "bad_input", "did you mean 'network'?"),
        ("sh_run", {"command": "touch ran", "cwd": "not/there"}, "bad_input", "cwd"),
        ("sh_run", {"command": "touch ran", "session": ""}, "bad_input", "session: "),
        ("sh_run", {"command": "touch ran", "session": {}}, "bad_input", "session: "),
        ("sh_run", {"command": "touch ran", "session": ["a"], "background": True}, "bad_input", "session: "),
        ("sh_run", {"command": "  "}, "bad_input", "blank"),
        ("sh_run", {}, "bad_input", "sh_run needs it"),
        ("sh_run", ["touch ran"], "bad_input", "an object with command"),
        (
            "sh_run",
            {"command": "touch ran", "background": True, "timeout": 5000, "expect": {}, "retries": 1},
            "background_incompatible",
            "expect, retries, timeout_ms",
        ),
        ("sh_detail", {"id": "cmd1"}, "not_found", "cmd1"),
        ("sh_detail", {"selector": "stdouts"}, "bad_input", "stdout or stderr"),
        ("sh_detail", {"limit": {}}, "bad_input", "limit: "),
        ("sh_logs", {"id": "one"}, "bad_input", "id"),
        ("sh_logs", {"id": "cmd1", "stdout_cursor": -1}, "bad_input", "cursor"),
        ("sh_kill", {}, "not_found", "background run"),
        ("sh_kill", {"id": "cmd1", "signal": "SIGFOO"}, "bad_input", "SIGTERM"),
        ("sh_plan", {"command": ""}, "bad_input", "blank"),
        ("sh_restore", {"label": "never"}, "not_found", "never"),
        ("sh_checkpoint", {"dir": "not/there"}, "bad_input", "dir"),
        ("sh_checkpoint", {"dir": "\ud800"}, "bad_input", "dir: "),
        ("sh_restore", {"dir": "\ud800"}, "bad_input", "dir: "),
        ("sh_checkpoints", {"dir": "\ud800"}, "bad_input", "dir: "),
        ("sh_checkpoint", {"name": "x"}, "unknown_option", "label, dir"),
    ],
)
def test_everything_else_is_answered_and_runs_nothing(
    here: Path, name: str, arguments: Any, code: str, words: str
) -> None:
    told = call(name, arguments)
    assert told.keys() == {"error", "message", "facts"}
    assert (told["error"], words in told["message"]) == (code, True), told
    assert list(here.iterdir()) == []
    assert asyncio.run(tools.acall(name, arguments)) == told


def test_errors_speak_of_options_by_the_names_of_the_tools() -> None:
    told = call("sh_run", {"command": "x", "background": True, "timeout_ms": 5000, "backoff_ms": 1})
    assert set(told["facts"]["options"]) == {"timeout_ms", "backoff_ms"}
    assert "sh_logs" in told["message"]
    assert "handle" not in told["message"]
    told = call("sh_run", {"command": "x", "timeout_ms": "no"})
    assert told["facts"]["argument"] == "timeout_ms"


def test_a_checkpoint_of_another_folder_names_a_way_that_the_tool_has(here: Path) -> None:
    for name in ("one", "other"):
        (here / name).mkdir()
    call("sh_checkpoint", {"label": "kept", "dir": "one"})
    told = call("sh_restore", {"label": "kept", "dir": "other"})
    assert told["error"] == "other_origin"
    assert told["message"].endswith("; name its own folder in dir")


def test_units_are_those_of_the_names() -> None:
    began = time.monotonic()
    told = call("sh_run", {"command": "sleep 60", "timeout_ms": 300})
    assert told["timed_out"] is True
    assert 0.3 <= time.monotonic() - began < 30


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert call("sh_run", {"command": "exit 3", "retries": 1.0})["attempts"] == 2


def test_which_run_is_meant_where_none_is_named() -> None:
    first, second = (call("sh_run", {"command": f"echo {n}; sleep 60", "background": True}) for n in (1, 2))
    assert first["status"] == "running"
    for name in ("sh_kill", "sh_logs"):
        told = call(name, {})
        assert sorted(told["facts"]["known"]) == sorted([first["id"], second["id"]])
    assert call("sh_kill", {"id": first["id"]})["status"] == "killed"
    assert call("sh_logs")["id"] == second["id"]
    assert call("sh_kill")["id"] == second["id"]
    again = call("sh_kill", {"id": second["id"]})
    assert again["already_exited"] is True
    assert call("sh_logs", {"id": second["id"], "stdout_cursor": 2})["status"] == "killed"


def test_what_cannot_start_in_the_background_says_so_at_once() -> None:
    told = call("sh_run", {"command": ["./not/there"], "background": True})
    assert told["ended"] == "spawn_failed"
    assert told["exit"] == 127


def test_the_newest_checkpoint_is_meant_and_can_be_taken_back(here: Path) -> None:
    (here / "notes").write_text("old")
    kept = call("sh_checkpoint", {"label": "before"})
    (here / "notes").write_text("new")
    assert call("sh_restore")["id"] == kept["id"]
    assert (here / "notes").read_text() == "old"
    call("sh_restore", {"label": "before-restore"})
    assert (here / "notes").read_text() == "new"
    assert "before" in [row.get("label") for row in call("sh_checkpoints")["checkpoints"]]


def test_sessions_by_name(here: Path) -> None:
    (here / "sub").mkdir()
    assert call("sh_run", {"command": "cd sub; export A=1", "session": "one"})["session"] == "one"
    assert call("sh_run", {"command": "echo $A; basename $PWD", "session": "one"})["stdout"].split() == ["1", "sub"]
    assert call("sh_run", {"command": "echo ${A-unset}", "session": "two"})["stdout"] == "unset"
    told = asyncio.run(tools.acall("sh_run", {"command": "echo $A", "session": "one"}))
    assert told["stdout"] == "1"


def test_sessions_are_bounded_and_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in stateful.shells():
        stateful.shell_named(name).close()
    monkeypatch.setenv("VEIL_MAX_SESSIONS", "2")
    for name in ("one", "two"):
        assert call("sh_run", {"command": f"me={name}", "session": name})["ok"]
    for background in (False, True):
        told = call("sh_run", {"command": "touch ran", "session": "three", "background": background})
        assert told["error"] == "too_many_sessions"
        assert told["facts"] == {"sessions": ["two", "one"], "limit": 2}
        assert "sh_kill (session)" in told["message"]
    assert asyncio.run(tools.acall("sh_run", {"command": "touch ran", "session": "three"})) == told
    assert call("sh_kill", {"session": "one"}) == {"session": "one", "status": "closed"}
    assert call("sh_run", {"command": "echo ${me-new}", "session": "three"})["stdout"] == "new"
    assert call("sh_run", {"command": "echo $me", "session": "two"})["stdout"] == "two"
    assert call("sh_kill", {"session": "one"})["facts"]["known"] == ["three", "two"]
    for arguments in ({"session": "two", "id": "cmd1"}, {"session": "two", "signal": "SIGKILL"}, {"session": ""}):
        assert call("sh_kill", arguments)["error"] == "bad_input"
    for name in ("two", "three"):
        call("sh_kill", {"session": name})
    assert call("sh_kill", {})["facts"]["what"] == "background run"


def test_names_that_are_no_text_do_not_break_an_encoder(here: Path) -> None:
    told = call("sh_run", {"command": "touch $'a\\xff\\xed\\xa0\\x80b'"})
    (row,) = told["files_changed"]
    assert row["path"].startswith("a\N{REPLACEMENT CHARACTER}")
    json.dumps(told, ensure_ascii=False).encode("utf-8")
    json.dumps(call("sh_run", {"command": "x \ud800", "nonsense\udfff": 1}), ensure_ascii=False).encode("utf-8")


def test_memory_only_runs_are_found_in_this_process() -> None:
    told = call("sh_run", {"command": "echo secret", "no_store": True})
    assert told["stored"] == "memory-only"
    assert call("sh_detail", {"id": told["id"], "selector": "stdout"})["stdout"]["text"] == "secret\n"


def test_the_output_so_far_is_found_while_a_run_goes_on() -> None:
    started = call("sh_run", {"command": "echo one; echo two; echo bad >&2; sleep 60", "background": True})
    veil.handle_of(started["id"]).wait_for(pattern="bad")
    for where in ({"id": started["id"]}, {}):
        told = call("sh_detail", {**where, "selector": "stdout"})
        assert told["status"] == "running"
        assert told["stdout"] == {"total_bytes": 8, "total_lines": 2, "text": "one\ntwo\n", "offset": 0}
    whole = call("sh_detail", {"selector": "full"})
    assert whole["stderr"]["text"] == "bad\n"
    assert "outcome" not in whole["meta"]  # there is none yet
    assert call("sh_detail", {"match": "^two"})["stdout"]["matches"] == [{"line": 2, "text": "two"}]
    call("sh_kill")
    assert call("sh_detail", {"selector": "stdout"})["stdout"]["text"] == "one\ntwo\n"
    assert call("sh_detail", {"selector": "meta"})["meta"]["outcome"]["signal"] == "SIGTERM"


def test_the_output_so_far_is_told_with_what_was_dropped_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_MAX_STREAM_BYTES", "1000")
    started = call("sh_run", {"command": "seq 5000; echo end >&2; sleep 60", "background": True})
    veil.handle_of(started["id"]).wait_for(pattern="end")
    going = call("sh_detail", {"selector": "stdout"})["stdout"]
    call("sh_kill")
    assert going == call("sh_detail", {"selector": "stdout"})["stdout"]
    assert (going["total_bytes"], going["total_lines"]) == (23893, 5000)


def test_output_reaches_a_listener_and_a_cancelled_call_leaves_nothing(marker: Marker) -> None:
    heard: list[bytes] = []

    async def work() -> None:
        told = await tools.acall("sh_run", {"command": "echo one"}, on_output=lambda name, data: heard.append(data))
        assert told["stdout"] == "one"
        task = asyncio.ensure_future(tools.acall("sh_run", {"command": f"sleep {marker} & sleep {marker}"}))
        while len(marker.alive()) < 2:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert b"".join(heard) == b"one\n"
    marker.until(0)


def test_a_cancelled_start_leaves_nothing_though_the_caller_goes_elsewhere(
    marker: Marker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another project counts its runs from 1 as well: what is ended is the run, and not an id."""
    box = tools.Toolbox()

    async def work() -> None:
        command = f"sleep {marker} & sleep {marker}"
        task = asyncio.ensure_future(box.acall("sh_run", {"command": command, "background": True}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        monkeypatch.setenv("VEIL_STATE_DIR", str(tmp_path / "elsewhere"))

    asyncio.run(work())
    box.close()
    marker.until(0)


def test_many_calls_from_many_threads() -> None:
    told: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda n=n: told.append(call("sh_run", {"command": f"echo {n}", "effects": False})))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(reply["stdout"]) for reply in told) == list(range(20))
    assert len({reply["id"] for reply in told}) == 20


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    ["timeout", "timeout_ms", "retries", "expect", "sandbox", "cwd", "background", "env", "x", "cmd"]
)


@given(st.dictionaries(_KEYS, _JSON, max_size=5))
def test_any_arguments_are_read_or_refused_by_name(arguments: dict[str, Any]) -> None:
    run = tools.catalogue()[0]
    found: dict[str, Any] = {}
    with contextlib.suppress(veil.BadInput):
        found = read(run, arguments)
    assert set(found) <= set(run.arguments)
    assert None not in found.values()
    if "x" in arguments or not found:
        told = call("sh_run", arguments)
        assert told["facts"]["argument"] in told["message"]
        json.dumps(told)
