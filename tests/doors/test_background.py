"""Background runs: they outlive the thread that started them, and never the process."""

# over 300 lines because: it is one subject: the life of a background run, from its start to the end of its owner

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from marked import Marker

import veil

ROOT = Path(__file__).parents[2]
LONG = 60.0


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def start(marker: Marker) -> Iterator[Callable[..., veil.Handle]]:
    """``veil.start`` whose runs end with the test, also when it fails."""
    handles: list[veil.Handle] = []

    def begin(*command: str, **options: object) -> veil.Handle:
        handles.append(veil.start(*command, **options))  # type: ignore[arg-type]
        return handles[-1]

    yield begin
    for handle in handles:
        handle.kill("SIGKILL")


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


Start = Callable[..., veil.Handle]


def test_detail_of_a_run_that_goes_on_has_what_it_wrote_and_no_end(start: Start) -> None:
    handle = start("echo one; echo bad >&2; sleep 60")
    handle.wait_for(pattern="bad")
    for found in (veil.detail(handle.id), veil.detail(), handle.detail(), veil.handle_of(handle.id).detail()):
        assert (found.record.status, found.result.stdout, found.result.stderr) == ("running", "one\n", "bad\n")
        assert found.result.ok is False
        assert "still runs" in repr(found.result)
        assert "outcome" not in found.meta
        assert found.to_dict()["status"] == "running"
    assert handle.detail("stdout", match="^o").to_dict()["stdout"]["matches"] == [{"line": 1, "text": "one"}]
    with pytest.raises(veil.BadInput, match="selector"):
        handle.detail("out")  # type: ignore[arg-type]
    handle.kill()
    ended = handle.detail()
    assert (ended.record.status, ended.result.exit, ended.result.stdout) == ("killed", 143, "one\n")
    assert ended == veil.detail(handle.id)


def test_from_start_to_end(start: Start, here: Path) -> None:
    handle = start("echo up; while [ ! -e go ]; do sleep 0.01; done; echo down >&2; exit 3")
    assert (handle.running(), handle.status) == (True, "running")
    assert veil.detail(handle.id).record.status == "running"
    until(lambda: handle.logs().stdout)
    with pytest.raises(TimeoutError):
        handle.wait(0.05)
    (here / "go").touch()
    result = handle.wait(LONG)
    assert (result.exit, result.stdout, result.stderr, handle.status) == (3, "up\n", "down\n", "exited")
    stored = veil.detail(handle.id).record
    assert stored == result.record
    assert stored.background
    logs = veil.logs(handle.id, stderr_cursor=2)
    assert (logs.status, logs.exit, logs.stderr, logs.stdout_lines) == ("exited", 3, "wn\n", 1)
    assert handle.wait() == result


def test_cursors_give_only_what_is_new(start: Start, here: Path) -> None:
    handle = start("for n in 1 2 3; do echo line $n; while [ ! -e go$n ]; do sleep 0.01; done; done")
    told, cursor = "", 0
    for n in (1, 2, 3):
        until(lambda n=n: f"line {n}" in handle.logs().stdout)
        logs = handle.logs(stdout_cursor=cursor)
        assert logs.stdout == f"line {n}\n"
        assert (logs.stdout_cursor, logs.stdout_lines, logs.gap) == (7 * n, n, False)
        assert handle.logs(stdout_cursor=logs.stdout_cursor).stdout == ""
        told, cursor = told + logs.stdout, logs.stdout_cursor
        (here / f"go{n}").touch()
    assert handle.wait(LONG).stdout == told
    assert handle.logs(stream="stderr").stdout_bytes == b""
    for wrong in ({"stdout_cursor": -1}, {"stderr_cursor": True}, {"stream": "out"}, {"stdout_cursor": 1.0}):
        with pytest.raises(veil.BadInput):
            handle.logs(**wrong)  # type: ignore[arg-type]


def test_it_outlives_the_thread_that_started_it(marker: Marker, start: Start) -> None:
    started: list[veil.Handle] = []
    thread = threading.Thread(target=lambda: started.append(start(f"sleep {marker}")))
    thread.start()
    thread.join()
    marker.until(1)
    time.sleep(0.3)
    assert started[0].running()
    assert marker.alive() != {}
    assert started[0].kill().signal == "SIGTERM"
    assert marker.alive() == {}


@pytest.mark.parametrize(("sent", "exit"), [("SIGTERM", 143), ("INT", 130), (9, 137), (signal.SIGHUP, 129)])
def test_kill_signals_the_whole_tree_once(sent: str | int, exit: int, start: Start, marker: Marker) -> None:
    handle = start(f"sleep {marker} & setsid sleep {marker} & sleep {marker}")
    marker.until(3)
    killed = handle.kill(sent)
    assert (killed.status, killed.exit, killed.already_exited) == ("killed", exit, False)
    assert marker.alive() == {}
    again = handle.kill()
    assert (again.already_exited, again.signal, again.exit) == (True, None, exit)
    assert veil.kill(handle.id).already_exited
    assert veil.detail(handle.id).record.status == "killed"


def test_a_program_that_is_deaf_to_term_is_killed_after_a_grace(start: Start, marker: Marker) -> None:
    handle = start(f"trap '' TERM; echo up; sleep {marker}; sleep {marker}")
    handle.wait_for(pattern="up", timeout=LONG)
    began = time.monotonic()
    assert handle.kill().exit == 137
    assert time.monotonic() - began >= 1.9
    assert marker.alive() == {}


def test_other_signals_do_not_end_it(start: Start) -> None:
    handle = start("trap 'echo got' USR1; echo up; while :; do sleep 0.02; done")
    handle.wait_for(pattern="up", timeout=LONG)
    sent = handle.kill("USR1")
    assert (sent.signal, sent.exit) == ("SIGUSR1", None)
    handle.wait_for(pattern="got", timeout=LONG)
    assert handle.running()
    for wrong in ("SIGNOTHING", 0, 12345, True, None, "SIG_IGN"):
        with pytest.raises(veil.BadInput):
            handle.kill(wrong)  # type: ignore[arg-type]
    assert handle.kill().status == "killed"


def test_no_more_than_so_many_at_once(
    start: Start, marker: Marker, monkeypatch: pytest.MonkeyPatch, own_state: Path
) -> None:
    monkeypatch.setenv("VEIL_MAX_BG_PROCS", "3")
    handles = [start(f"sleep {marker}") for _ in range(3)]
    with pytest.raises(veil.Refused) as caught:
        start(f"sleep {marker}")
    assert caught.value.code == "too_many_background"
    assert set(caught.value.facts["alive"]) == {handle.id for handle in handles}
    handles[1].kill()
    start(f"sleep {marker}")


def test_sixteen_is_the_usual_limit(start: Start, marker: Marker) -> None:
    for _ in range(16):
        start(f"sleep {marker}", effects=False)
    with pytest.raises(veil.Refused, match="16"):
        start("true")
    assert veil.run("true").ok, "a foreground run is none of them"


def test_kill_without_an_id_only_when_there_is_one(start: Start, marker: Marker) -> None:
    with pytest.raises(veil.NotFound):
        veil.kill()
    first, second = start(f"sleep {marker}"), start(f"sleep {marker}")
    with pytest.raises(veil.NotFound) as caught:
        veil.kill()
    assert set(caught.value.facts["known"]) == {first.id, second.id}
    first.kill()
    assert veil.kill().id == second.id
    assert marker.alive() == {}


def test_waiting_for_a_line_a_port_and_an_end_that_comes_first(start: Start, here: Path) -> None:
    server = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); print('port', s.getsockname()[1])\n"
    server += "import sys; sys.stdout.flush(); sys.stdin.read() if 0 else time.sleep(0.3); s.listen(); time.sleep(600)"
    handle = start([sys.executable, "-c", server])
    logs = handle.wait_for(pattern=r"^port \d+$", timeout=LONG)
    port = int(logs.stdout.split()[1])
    handle.wait_for(port=port, timeout=LONG)
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    with pytest.raises(TimeoutError, match="goes on"):
        handle.wait_for(pattern="never", timeout=0.1)
    assert handle.running()
    ended = start("echo said; exit 4")
    with pytest.raises(veil.Refused) as caught:
        ended.wait_for(pattern="never", timeout=LONG)
    assert (caught.value.code, caught.value.facts["exit"]) == ("ended_early", 4)
    assert ended.wait_for(pattern="said").exit == 4, "what it said before it ended counts"
    for wrong in ({}, {"pattern": "a", "port": 1}, {"pattern": "("}, {"port": 0}, {"pattern": "a", "timeout": -1}):
        with pytest.raises(veil.BadInput):
            handle.wait_for(**wrong)  # type: ignore[arg-type]


def test_a_pattern_over_the_border_of_two_pieces(start: Start, here: Path) -> None:
    handle = start("printf 'rea'; while [ ! -e go ]; do sleep 0.01; done; printf 'dy now\\n'; sleep 600")
    until(lambda: handle.logs().stdout)
    with pytest.raises(TimeoutError):
        handle.wait_for(pattern="ready", timeout=0.1)
    (here / "go").touch()
    assert handle.wait_for(pattern="ready now", timeout=LONG).stdout == "ready now\n"


def test_with_ends_it(marker: Marker) -> None:
    with veil.start(f"sleep {marker}") as handle:
        marker.until(1)
    assert handle.status == "killed"
    assert marker.alive() == {}


def test_a_program_that_is_not_there() -> None:
    result = veil.start(["./nothing"]).wait(LONG)
    assert (result.ended, result.exit) == ("spawn_failed", 127)


def test_options_that_need_an_end_are_refused(marker: Marker) -> None:
    with pytest.raises(veil.Refused) as caught:
        veil.start(f"sleep {marker}", timeout=5, expect={"exit": 0})
    assert caught.value.code == "background_incompatible"
    assert set(caught.value.facts["options"]) == {"timeout", "expect"}
    assert marker.alive() == {}


def test_an_error_of_the_listener_ends_it_and_is_raised_to_who_waits(marker: Marker) -> None:
    def listen(name: str, data: bytes) -> None:
        raise ZeroDivisionError

    handle = veil.start(f"echo up; sleep {marker}", on_output=listen)
    with pytest.raises(ZeroDivisionError):
        handle.wait(LONG)
    assert marker.alive() == {}
    assert not handle.running()
    with pytest.raises(ZeroDivisionError):
        handle.kill()


def test_without_the_store(own_state: Path, start: Start) -> None:
    handle = start("echo kept nowhere; exit 2", no_store=True)
    result = handle.wait(LONG)
    assert (result.id[:3], result.stored, result.exit) == ("mem", "memory-only", 2)
    assert veil.detail(result.id).result.stdout == "kept nowhere\n"
    assert not any(b"kept nowhere" in path.read_bytes() for path in own_state.rglob("*") if path.is_file())


OWNER = """
import os, signal, sys, threading, time, veil
marker, how = sys.argv[1:]
handle = veil.start(f"setsid sleep {marker} & sleep {marker}")
if how == "fork":
    pid = os.fork()
    if pid == 0:
        assert veil.run("true").ok
        assert repr(handle) == f"<veil.Handle {handle.id} of another process pid={handle.pid}>"
        for ask in (lambda: veil.kill(handle.id), handle.kill, handle.wait, handle.logs, handle.detail, handle.running):
            try:
                ask()
            except veil.Refused as error:
                assert error.code == "runs_elsewhere"
            else:
                os._exit(3)
        handle.__exit__(None, None, None)
        with veil.start("echo mine; sleep 60") as mine:
            mine.wait_for(pattern="mine")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert handle.running()
print(handle.id, flush=True)
if how == "exception":
    raise SystemError
if how == "wait":
    sys.stdin.read()
"""


def owner(marker: Marker, how: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", OWNER, marker.text, how]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(("how", "code"), [("end", 0), ("exception", 1), ("fork", 0)])
def test_it_ends_with_its_process_and_its_record_is_kept(how: str, code: int, marker: Marker, here: Path) -> None:
    process = owner(marker, how)
    out, err = process.communicate(timeout=LONG * 2)
    assert process.returncode == code, err
    assert marker.alive() == {}
    record = veil.detail(out.strip(), project=here).record
    assert (record.status, record.observation.outcome.signal) == ("killed", "SIGTERM")


@pytest.mark.linux
def test_it_ends_with_its_process_also_when_that_is_killed(marker: Marker) -> None:
    process = owner(marker, "wait")
    assert process.stdout is not None
    process.stdout.readline()
    marker.until(3)
    process.kill()
    process.communicate()
    marker.until(0)
