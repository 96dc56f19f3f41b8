"""``veil start`` and what other processes do with such a run: the process that stays behind, and what is left of it."""

# over 300 lines because: it is one subject: the life of a run that another process holds, and what is left of it

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from command_line import environment, going_on, veil, veil_json, wait_for
from marked import Marker

import veil as api

#: Bytes that the page and log overhead of the database may add to what is kept of the streams.
SLACK = 12_000_000


def until(true: Callable[[], Any], within: float = 60.0) -> Any:
    """Waits for it; fails the test when it does not come."""
    deadline = time.monotonic() + within
    while not (found := true()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def owner_of(pid: int) -> psutil.Process:
    """The process that ``veil start`` left: the grandparent of the command, whose parent is its supervisor."""
    return psutil.Process(pid).parent().parent()


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def server(tmp_path: Path, marker: Marker) -> dict[str, Any]:
    """A background run that has written a line to each stream and goes on."""
    started: dict[str, Any] = veil_json("start", f"echo out; echo err >&2; sleep {marker}", cwd=tmp_path)
    assert started.keys() == {"id", "pid", "status", "background"}
    assert started["status"] == "running"
    until(lambda: api.logs("cmd1", project=tmp_path).stdout == "out\n")
    until(lambda: api.logs("cmd1", project=tmp_path).stderr == "err\n")
    return started


def test_its_life(tmp_path: Path, server: dict[str, Any], marker: Marker) -> None:
    assert [run["id"] for run in veil_json("ps", cwd=tmp_path)] == ["cmd1"]
    seen = veil_json("logs", "cmd1", cwd=tmp_path)
    assert (seen["status"], seen["stdout"], seen["stderr"]) == ("running", "out", "err")
    assert (seen["stdout_cursor"], seen["stderr_cursor"], seen["stdout_lines"]) == (4, 4, 1)
    assert "stdout" not in veil_json("logs", "cmd1", "--stdout-cursor", "4", cwd=tmp_path)
    assert "stdout" not in veil_json("logs", "cmd1", "--stream", "stderr", cwd=tmp_path)
    assert veil("detail", "cmd1", "--selector", "stdout", cwd=tmp_path).stdout == b"out\n"
    owner = owner_of(server["pid"])
    killed = veil_json("kill", cwd=tmp_path)
    assert killed == {"id": "cmd1", "status": "killed", "signal": "SIGTERM", "exit": 143}
    assert not marker.alive()
    assert veil_json("kill", "cmd1", cwd=tmp_path) == {
        "id": "cmd1",
        "status": "killed",
        "already_exited": True,
        "exit": 143,
    }
    seen = veil_json("logs", "cmd1", cwd=tmp_path)
    assert (seen["status"], seen["exit"], seen["signal"], seen["stdout"]) == ("killed", 143, "SIGTERM", "out")
    assert veil("detail", "cmd1", "--selector", "stderr", cwd=tmp_path).stdout == b"err\n"
    assert veil_json("ps", cwd=tmp_path) == []
    [row] = veil_json("runs", cwd=tmp_path)
    assert (row["status"], row["exit"], row["background"]) == ("killed", 143, True)
    until(lambda: not alive(owner))


def test_people_get_it_told(tmp_path: Path, server: dict[str, Any]) -> None:
    assert veil("ps", cwd=tmp_path).stdout.startswith(b"cmd1 ")
    assert b"--- stdout (1 line)\nout\n--- stderr (1 line)\nerr\n" in veil("logs", "cmd1", cwd=tmp_path).stdout
    for words in ((), ("cmd1",), ("cmd1", "--selector", "full")):
        told = veil("detail", *words, cwd=tmp_path).stdout
        assert told == b"still runs [cmd1]\n--- stdout (1 line)\nout\n--- stderr (1 line)\nerr\n"
    assert veil("kill", cwd=tmp_path).stdout == b"cmd1 killed (SIGTERM), exit 143\n"
    assert veil("kill", "cmd1", cwd=tmp_path).stdout == b"cmd1 had already ended, exit 143\n"
    assert veil("ps", cwd=tmp_path).stdout == b"none\n"


def test_no_helper_is_left_when_the_command_ends(tmp_path: Path, marker: Marker) -> None:
    """bg-06: the process that watched a background task must not outlive it or spin."""
    started = veil_json("start", "while ! test -e go; do sleep 0.05; done; echo done", cwd=tmp_path)
    supervisor = psutil.Process(started["pid"]).parent()
    owner = supervisor.parent()
    # not a second copy of the command: a pattern made for it must not hit whoever holds it
    assert "test -e go" not in " ".join(owner.cmdline() + supervisor.cmdline())
    before = sum(owner.cpu_times()[:2])
    time.sleep(1)
    assert sum(owner.cpu_times()[:2]) - before < 0.5
    (tmp_path / "go").touch()
    until(lambda: not alive(owner) and not alive(supervisor))
    found = veil_json("logs", "cmd1", cwd=tmp_path)
    assert (found["status"], found["exit"], found["stdout"]) == ("exited", 0, "done")
    assert veil_json("run", "cd . && echo 1 | head -1", cwd=tmp_path)["stdout"] == "1"


def test_output_by_cursor_splits_no_character(tmp_path: Path) -> None:
    """bg-03, across processes."""
    started = veil_json(
        "start", r"printf 'a\303'; while ! test -e go; do sleep 0.05; done; printf '\251b\n'", cwd=tmp_path
    )
    name, pieces, cursor = started["id"], [], 0
    until(lambda: api.logs(name, project=tmp_path).stdout_bytes)
    while True:
        logs = api.logs(name, stdout_cursor=cursor, project=tmp_path)
        assert not logs.gap
        assert logs.stdout_cursor == cursor + len(logs.stdout_bytes)
        pieces.append(logs.stdout)
        cursor = logs.stdout_cursor
        (tmp_path / "go").touch()
        if logs.status != "running":
            break
    assert pieces[0] == "a"
    assert "".join(pieces) == "aéb\n"


def test_following(tmp_path: Path) -> None:
    veil_json(
        "start", "echo one; echo bad >&2; while ! test -e go; do sleep 0.05; done; printf two; exit 4", cwd=tmp_path
    )
    with going_on("logs", "cmd1", "--follow", cwd=tmp_path) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == b"one\n"  # while it runs
        (tmp_path / "go").touch()
        out, err = following.communicate(timeout=60)
    assert following.returncode == 0
    assert out == b"two"
    assert err == b"bad\nveil: cmd1 exited, exit 4\n"


def test_what_it_is_given(tmp_path: Path) -> None:
    inner = tmp_path / "it's in'ner"
    inner.mkdir()
    found = veil_json(
        *("start", "--cwd", str(inner), "--env", "ONE=é", "--stdin", "-", "--merge-stderr", "--"),
        *("sh", "-c", 'pwd; echo "$ONE $0 $1" >&2; cat', "a b", "'"),
        cwd=tmp_path,
    )
    until(lambda: api.detail(found["id"], project=tmp_path).record.status != "running")
    assert api.logs(found["id"], project=tmp_path).stdout == f"{inner}\né a b '\n"


def test_what_makes_no_sense_in_the_background(tmp_path: Path) -> None:
    for words in (["--timeout", "5"], ["--expect", "exit=0"], ["--retries", "2"], ["--full"], ["--no-store"]):
        found = veil_json("start", "true", *words, cwd=tmp_path, code=125)
        assert found["error"] == "background_incompatible", found
        assert found["facts"]["options"] == [words[0][2:].replace("-", "_")]
    assert veil_json("start", "true", "--cwd", "/no/such", cwd=tmp_path, code=125)["facts"]["argument"] == "cwd"
    assert veil_json("runs", cwd=tmp_path) == []


def test_a_command_that_cannot_start(tmp_path: Path) -> None:
    done = veil("start", "--", "nosuchprogram-of-mine", "x", cwd=tmp_path)
    assert done.returncode == 127
    assert b"could not start" in done.stdout


def test_no_place_for_the_record(tmp_path: Path, marker: Marker) -> None:
    """A run that nobody could read or end is not left behind."""
    (tmp_path / "file").touch()
    state = {"VEIL_STATE_DIR": str(tmp_path / "file" / "state")}
    found = veil_json("start", f"sleep {marker}", cwd=tmp_path, code=125, env=state)
    assert found["error"] == "store_unavailable"
    marker.until(0)


@pytest.mark.linux
def test_a_killed_owner_takes_the_run_with_it(tmp_path: Path, server: dict[str, Any], marker: Marker) -> None:
    owner = owner_of(server["pid"])
    assert owner.pid != os.getpid()
    owner.kill()
    marker.until(0)
    until(lambda: not alive(owner))
    assert veil_json("ps", cwd=tmp_path) == []
    seen = veil_json("logs", "cmd1", cwd=tmp_path)
    assert (seen["status"], seen["exit"], seen["signal"]) == ("killed", 137, "SIGKILL")
    assert (seen["stdout"], seen["stderr"]) == ("out", "err")
    meta = veil_json("detail", "cmd1", "--selector", "meta", cwd=tmp_path)["meta"]
    assert "died" in meta["notes"]["owner_lost"]
    assert seen["owner_lost"] == meta["notes"]["owner_lost"]
    for command in ("logs", "detail"):
        assert b"owner_lost: the process" in veil(command, "cmd1", cwd=tmp_path).stdout
    assert veil_json("kill", "cmd1", cwd=tmp_path)["already_exited"] is True
    assert veil_json("kill", cwd=tmp_path, code=125)["error"] == "not_found"


_FULL = """
import resource, sys, veil
print(veil.logs("cmd1").status, flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
found = veil.logs("cmd1")
[run], kept = veil.runs(), veil.detail("cmd1")
print(found.status, found.exit, repr(found.stdout), run.exit, kept.record.status, bool(run.record.why_memory))
"""


@pytest.mark.linux
def test_on_a_full_disk_the_end_of_a_lost_run_is_told_all_the_same(
    tmp_path: Path, server: dict[str, Any], marker: Marker
) -> None:
    pipe = subprocess.PIPE
    reader = subprocess.Popen([sys.executable, "-c", _FULL], cwd=tmp_path, env=environment(), stdin=pipe, stdout=pipe)
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"running\n"
    owner = owner_of(server["pid"])
    owner.kill()
    marker.until(0)
    until(lambda: not alive(owner))
    out, _ = reader.communicate(b"\n", timeout=60)
    assert out == b"killed 137 'out\\n' 137 killed True\n"


@pytest.mark.linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_owner_that_is_asked_to_end_ends_the_run_well(
    tmp_path: Path, server: dict[str, Any], marker: Marker, number: signal.Signals
) -> None:
    owner_of(server["pid"]).send_signal(number)
    until(lambda: veil_json("ps", cwd=tmp_path) == [])
    assert not marker.alive()
    record = api.detail("cmd1", project=tmp_path).record
    assert (record.status, record.observation.outcome.signal) == ("killed", number.name)


def test_signals_that_do_not_end_it(tmp_path: Path) -> None:
    """Each request is carried out once, also the same one twice."""
    script = (
        "import signal, time\n"
        "for name in ('SIGHUP', 'SIGUSR1'):\n"
        "    signal.signal(getattr(signal, name), lambda number, frame: print(number, flush=True))\n"
        "print('ready', flush=True)\n"
        "while True:\n    time.sleep(0.05)\n"
    )
    (tmp_path / "script.py").write_text(script)
    veil_json("start", "--", sys.executable, "script.py", cwd=tmp_path)
    until(lambda: api.logs("cmd1", project=tmp_path).stdout == "ready\n")
    for count in (1, 2):
        assert veil_json("kill", "cmd1", "--signal", "USR1", cwd=tmp_path)["status"] == "running"
        until(
            lambda count=count: api.logs("cmd1", project=tmp_path).stdout == "ready\n" + f"{signal.SIGUSR1:d}\n" * count
        )
    assert api.kill("cmd1", "SIGKILL", project=tmp_path).exit == 137


def test_what_ignores_the_signal_is_killed(tmp_path: Path, marker: Marker) -> None:
    veil_json("start", f"trap '' TERM; touch ready; while :; do sleep {marker}; done", cwd=tmp_path)
    wait_for(tmp_path / "ready")
    assert api.kill("cmd1", project=tmp_path).exit == 137
    assert not marker.alive()


def test_a_bad_signal_or_id(tmp_path: Path) -> None:
    assert veil_json("kill", "cmd1", "--signal", "SIGNOPE", cwd=tmp_path, code=125)["facts"]["argument"] == "signal"
    assert veil_json("kill", "cmd1", cwd=tmp_path, code=125)["error"] == "not_found"
    assert veil_json("kill", "../x", cwd=tmp_path, code=125)["error"] == "bad_input"
    assert veil_json("logs", "cmd1", "--stdout-cursor", "-1", cwd=tmp_path, code=125)["error"] in (
        "bad_input",
        "not_found",
    )


def test_the_limit_counts_every_owner_of_the_project(tmp_path: Path, marker: Marker) -> None:
    env = {"VEIL_MAX_BG_PROCS": "2"}
    for _ in range(2):
        veil_json("start", f"sleep {marker}", cwd=tmp_path, env=env)
    refused = veil_json("start", f"sleep {marker}", cwd=tmp_path, env=env, code=125)
    assert refused["error"] == "too_many_background"
    assert sorted(refused["facts"]["alive"]) == ["cmd1", "cmd2"]
    both = veil_json("kill", cwd=tmp_path, code=125)
    assert both["error"] == "not_found"
    assert sorted(both["facts"]["known"]) == ["cmd1", "cmd2"]
    veil_json("kill", "cmd1", cwd=tmp_path)
    veil_json("start", f"sleep {marker}", cwd=tmp_path, env=env)
    for name in ("cmd2", "cmd3"):
        veil_json("kill", name, cwd=tmp_path)
    assert not marker.alive()


def test_a_run_that_another_program_holds_is_listed_but_not_touched(tmp_path: Path, marker: Marker) -> None:
    """``veil.start`` in a program keeps its output in memory; the command line says so instead of guessing."""
    handle = api.start(f"sleep {marker}", project=tmp_path)
    try:
        assert [run["id"] for run in veil_json("ps", cwd=tmp_path)] == [handle.id]
        assert veil_json("logs", handle.id, cwd=tmp_path, code=125)["error"] == "runs_elsewhere"
        assert veil_json("kill", handle.id, cwd=tmp_path, code=125)["error"] == "runs_elsewhere"
    finally:
        handle.kill()
    assert veil_json("logs", handle.id, cwd=tmp_path)["status"] == "killed"


def test_the_log_on_disk_stays_below_its_cap(tmp_path: Path, own_state: Path) -> None:
    """bg-04: a flood in the background does not fill the disk; what was dropped is told by the cursor."""
    cap = 1_000_000
    veil_json("start", "yes 0123456789", "--max-output", str(cap), cwd=tmp_path)
    largest = 0

    def flooded() -> bool:
        nonlocal largest
        sizes = [path.stat().st_size for path in own_state.rglob("*") if path.is_file() and path.exists()]
        largest = max(largest, sum(sizes))
        return api.logs("cmd1", stdout_cursor=1 << 60, project=tmp_path).stdout_lines * 11 > 40 * cap

    until(flooded)
    logs = api.logs("cmd1", stdout_cursor=11, project=tmp_path)
    assert logs.gap
    assert len(logs.stdout_bytes) <= cap
    assert logs.stdout_cursor > 40 * cap
    assert set(logs.stdout.split("\n")[1:-1]) == {"0123456789"}
    assert largest < cap + SLACK
    assert veil_json("kill", "cmd1", cwd=tmp_path)["exit"] == 143
    outcome = api.detail("cmd1", project=tmp_path).record.observation.outcome
    assert outcome.stdout.truncated
    assert outcome.stdout.total_bytes >= logs.stdout_cursor


def test_the_same_id_in_two_projects_of_one_program(tmp_path: Path, marker: Marker) -> None:
    """Every project counts from cmd1: neither run may be taken for the other, or forgotten."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    handles = {
        name: api.start(f"echo {name}; sleep {marker}", cwd=tmp_path / name, project=tmp_path / name)
        for name in ("one", "two")
    }
    assert {handle.id for handle in handles.values()} == {"cmd1"}
    for name in handles:
        until(lambda name=name: api.logs("cmd1", project=tmp_path / name).stdout == f"{name}\n")
    assert api.kill(project=tmp_path / "one").exit == 143
    assert not handles["one"].running()
    assert handles["two"].running()
    assert api.kill("cmd1", project=tmp_path / "one").already_exited
    assert not api.kill("cmd1", project=tmp_path / "two").already_exited
    assert not marker.alive()
