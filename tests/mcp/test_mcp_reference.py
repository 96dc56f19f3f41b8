"""The tools over the wire, option by option and field by field, as their reference describes them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from raw_client import Client

pytestmark = pytest.mark.needs("bash")


def ready() -> Client:
    made = Client()
    made.hello()
    return made


@pytest.fixture
def client(here: Path) -> Iterator[Client]:
    made = ready()
    try:
        yield made
    finally:
        made.end()


def test_a_quiet_reply_has_four_fields(client: Client) -> None:
    told = client.call("sh_run", command="true")
    assert told.keys() - {"effects"} == {"id", "exit", "ok", "ms"}, "and a word when nobody looked for changes"
    assert (told["exit"], told["ok"]) == (0, True)
    assert isinstance(told["ms"], int)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"command": "pwd", "cwd": "sub"}, {"stdout": "{here}/sub"}),
        ({"command": "seq 3", "full": True}, {"stdout": "1\n2\n3\n", "stdout_lines": 3}),
        ({"command": "sleep 60 & sleep 60", "timeout_ms": 200}, {"exit": 124, "ok": False, "timed_out": True}),
        ({"command": "exit 3", "retries": 1, "retry_on_exit": [3], "backoff_ms": 1}, {"exit": 3, "attempts": 2}),
        ({"command": "exit 4", "retries": 1, "retry_on_exit": 3}, {"exit": 4, "attempts": None}),
        ({"command": "echo ${A_TOKEN-none}", "scrub_env": True}, {"stdout": "none", "secrets_env_scrubbed": "some"}),
        ({"command": "echo s", "no_store": True}, {"stored": "memory-only", "id": "mem1"}),
        ({"command": "echo o; echo e >&2; echo e >&2"}, {"stdout_lines": 1, "stderr_lines": 2, "stderr": "e\ne"}),
        ({"command": "printf '\\0\\1'"}, {"stdout_binary": True}),
        ({"command": "touch made"}, {"files_changed": [{"path": "made", "change": "created", "kind": "file"}]}),
        ({"command": "seq 3000"}, {"stdout_lines": 3000, "hint": "some"}),
        ({"command": "make | tail -1"}, {"advice": "some", "exit": 0}),
        (
            {"command": "true", "expect": {"exit": 0, "file_absent": "x"}},
            {"assert_ok": True, "assertions_failed": None},
        ),
        ({"command": "true", "expect": {"exit": 1}}, {"ok": True, "assert_ok": False, "assertions_failed": "some"}),
    ],
)
def test_options_and_the_fields_that_they_bring(
    here: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], wanted: dict[str, Any]
) -> None:
    """``None``: not there. ``some``: there, whatever it says."""
    (here / "sub").mkdir()
    monkeypatch.setenv("A_TOKEN", "a" * 20)
    client = ready()
    try:
        told = client.call("sh_run", **arguments)
    finally:
        client.end()
    for name, value in wanted.items():
        if value is None:
            assert name not in told, told
        elif value == "some":
            assert told[name], told
        elif isinstance(value, str):
            assert told[name] == value.replace("{here}", str(here)), told
        else:
            assert told[name] == value, told


def test_every_post_condition_of_the_reference(client: Client) -> None:
    expect: dict[str, Any] = {
        "exit": 0,
        "stdout_contains": "in it",
        "stdout_matches": "^it .s in",
        "stderr_empty": True,
        "file_exists": "made",
        "file_absent": "never",
        "changed": True,
        "max_ms": 60_000,
    }
    command = "echo it is in it; touch made"
    assert client.call("sh_run", command=command, expect=expect)["assert_ok"] is True
    wrong = {
        "exit": 1,
        "stdout_contains": "not",
        "stdout_matches": "^is",
        "stderr_empty": False,
        "file_exists": "never",
        "file_absent": "made",
        "changed": True,
        "max_ms": 0.001,
    }
    told = client.call("sh_run", command="echo it is in it", expect=wrong)
    assert told["assert_ok"] is False
    assert {row["check"] for row in told["assertions_failed"]} == set(wrong)
    assert all(row["message"] for row in told["assertions_failed"])


def test_detail_outlives_the_server(client: Client) -> None:
    told = client.call("sh_run", command="seq 100; echo ERROR 7 >&2; exit 2")
    lost = client.call("sh_run", command="echo secret", no_store=True)
    assert client.call("sh_detail", id=lost["id"], selector="stdout")["stdout"]["text"] == "secret\n"
    client.leave()
    again = ready()
    try:
        assert again.call("sh_detail", id=told["id"], selector="stdout")["stdout"]["total_lines"] == 100
        found = again.call("sh_detail", id=told["id"], match="ERROR")
        assert found["stderr"]["matches"] == [{"line": 1, "text": "ERROR 7"}]
        assert again.call("sh_detail", id=told["id"], selector="meta")["meta"]["outcome"]["exit"] == 2
        assert "trace_unavailable" in again.call("sh_detail", id=told["id"], selector="trace")
        assert again.call("sh_detail")["id"] == told["id"]
        assert again.call("sh_detail", id=lost["id"])["error"] == "not_found"
    finally:
        again.end()


def test_a_server_in_the_background(client: Client, here: Path) -> None:
    (here / "sub").mkdir()
    began = client.call(
        "sh_run",
        command="pwd; echo ${A-none}; exec sleep 60",
        background=True,
        cwd="sub",
        env={"A": "1"},
        no_store=True,
    )
    assert began == {"id": began["id"], "pid": began["pid"], "status": "running", "background": True}
    assert psutil.pid_exists(began["pid"])
    logs = client.call("sh_logs", id=began["id"])
    while logs.get("stdout_lines") != 2:
        logs = client.call("sh_logs", id=began["id"])
    assert logs["stdout"] == f"{here}/sub\n1"
    assert (logs["status"], logs["stdout_cursor"], logs["stderr_cursor"]) == ("running", len(f"{here}/sub\n1\n"), 0)
    assert "running_ms" in logs
    assert {"exit", "signal", "gap"}.isdisjoint(logs)
    assert "stdout" not in client.call("sh_logs", id=began["id"], stdout_cursor=logs["stdout_cursor"])
    assert client.call("sh_logs", id=began["id"], stdout_cursor=len(f"{here}/sub\n"))["stdout"] == "1"
    assert "stdout" not in client.call("sh_logs", id=began["id"], stream="stderr")
    assert client.call("sh_detail", id=began["id"], selector="stdout")["stdout"]["total_lines"] == 2
    killed = client.call("sh_kill", id=began["id"])
    assert killed == {"id": began["id"], "status": "killed", "signal": "SIGTERM", "exit": 143}
    again = client.call("sh_kill", id=began["id"])
    assert again == {"id": began["id"], "status": "killed", "already_exited": True, "exit": 143}
    logs = client.call("sh_logs", id=began["id"])
    assert (logs["status"], logs["exit"], logs["signal"]) == ("killed", 143, "SIGTERM")
    assert client.call("sh_detail", id=began["id"], selector="meta")["meta"]["outcome"]["signal"] == "SIGTERM"


def test_what_does_not_listen_to_term_is_killed_after_two_seconds(client: Client) -> None:
    began = client.call("sh_run", command="trap '' TERM; echo up; while :; do sleep 0.1; done", background=True)
    while not client.call("sh_logs").get("stdout_lines"):
        pass
    before = time.monotonic()
    killed = client.call("sh_kill")
    assert (killed["id"], killed["status"], killed["exit"]) == (began["id"], "killed", 128 + signal.SIGKILL)
    assert time.monotonic() - before >= 1.9
    mild = client.call(
        "sh_run", command="trap 'echo got; exit 5' USR1; echo up; while :; do sleep 0.1; done", background=True
    )
    while not client.call("sh_logs").get("stdout_lines"):
        pass
    client.call("sh_kill", id=mild["id"], signal="SIGUSR1")
    while client.call("sh_logs", id=mild["id"])["status"] == "running":
        pass
    logs = client.call("sh_logs", id=mild["id"])
    assert (logs["status"], logs["exit"], logs["stdout"]) == ("exited", 5, "up\ngot")


@pytest.mark.parametrize(
    "option",
    [
        {"expect": {"exit": 0}},
        {"preview": True},
        {"trace": True},
        {"retries": 1},
        {"full": True},
        {"timeout_ms": 5000},
        {"retry_on_exit": 1},
        {"backoff_ms": 1},
    ],
    ids=str,
)
def test_what_a_background_run_cannot_have(client: Client, here: Path, option: dict[str, Any]) -> None:
    told = client.call("sh_run", command="touch ran", background=True, **option)
    assert told["error"] == "background_incompatible"
    assert told["facts"]["options"] == list(option)
    assert not (here / "ran").exists()


def test_so_many_in_the_background(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_MAX_BG_PROCS", "2")
    monkeypatch.setenv("VEIL_MAX_STREAM_BYTES", "1000")
    client = ready()
    try:
        one = client.call("sh_run", command="seq 5000; sleep 60", background=True)
        two = client.call("sh_run", command="sleep 60", background=True)
        told = client.call("sh_run", command="sleep 60", background=True)
        assert told["error"] == "too_many_background"
        assert sorted(told["facts"]["alive"]) == sorted([one["id"], two["id"]])
        while client.call("sh_logs", id=one["id"]).get("stdout_lines") != 5000:
            pass
        first = client.call("sh_logs", id=one["id"], stdout_cursor=10)
        later = client.call("sh_logs", id=one["id"], stdout_cursor=first["stdout_cursor"])
        assert True in (first.get("gap"), later.get("gap")), "output between two looks was dropped at the byte cap"
    finally:
        client.end()


def test_plans_as_in_the_reference(client: Client, here: Path) -> None:
    told = client.call("sh_plan", command="git push --force")
    assert (told["category"], told["reversible"]) == ("destructive", False)
    assert told["warning"]
    for command, category in {
        "ls -l": "read-only",
        "touch a": "mutating",
        "rm -rf build": "destructive",
        "curl example.org": "network",
        "$(cat x) y": "complex",
        "frobnicate": "unknown",
        "ls && rm -rf x": "destructive",
        "cat a | sort": "read-only",
    }.items():
        assert client.call("sh_plan", command=command)["category"] == category, command
    assert client.call("sh_plan", command="touch a > b")["effects"]
    assert list(here.iterdir()) == []


def test_checkpoints_as_in_the_reference(client: Client, here: Path) -> None:
    (here / "one").mkdir()
    (here / "other").mkdir()
    (here / "one" / "a").write_text("old")
    (here / "other" / "a").write_text("theirs")
    for folder in ("one", "other"):
        assert client.call("sh_checkpoint", label="same", dir=folder)["label"] == "same"
    (here / "one" / "a").write_text("new")
    (here / "one" / "b").write_text("later")
    restored = client.call("sh_restore", label="same", dir="one")
    assert (restored["label"], restored["before"]) == ("same", "before-restore")
    assert (here / "one" / "a").read_text() == "old"
    assert not (here / "one" / "b").exists()
    assert (here / "other" / "a").read_text() == "theirs", "the same label elsewhere is another one"
    labels = [row.get("label") for row in client.call("sh_checkpoints", dir="one")["checkpoints"]]
    assert labels[0] == "before-restore"
    assert "same" in labels
    assert client.call("sh_checkpoints")["checkpoints"] == []
    assert client.call("sh_checkpoint", label="mine")["files"] >= 2
    # the origin of a checkpoint is where it was taken
    (here / "third").mkdir()
    elsewhere = client.call("sh_restore", label="same", dir="third")
    assert elsewhere["error"] in ("other_origin", "not_found")
    assert os.listdir(here / "third") == []
