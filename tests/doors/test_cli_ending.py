"""Whatever ends ``veil run``, and whatever the command did: nothing of it is alive afterwards."""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest
from command_line import going_on, veil, veil_json, wait_for
from marked import Marker

pytestmark = pytest.mark.linux

#: Leaves its parents, group, session, environment, working directory and every descriptor behind, then tells its pid.
DAEMON = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.chdir("/")
for fd in range(64):
    try:
        os.close(fd)
    except OSError:
        pass
fd = os.open(sys.argv[1] + ".new", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(fd, str(os.getpid()).encode())
os.close(fd)
os.rename(sys.argv[1] + ".new", sys.argv[1])
os.execve("/bin/sleep", ["sleep", sys.argv[2]], {})
"""


@pytest.fixture
def daemon(tmp_path: Path, marker: Marker) -> str:
    """A shell text that starts one and waits until it is there."""
    (tmp_path / "daemon.py").write_text(DAEMON)
    return (
        f"'{sys.executable}' daemon.py '{tmp_path}/pid' {marker}; while ! test -e pid; do sleep 0.02; done; echo there"
    )


@pytest.mark.parametrize("more", [(), ("--no-contain",)], ids=["contained", "adopted"])
def test_a_daemon_that_left_everything_dies_with_the_run(
    tmp_path: Path, daemon: str, marker: Marker, more: tuple[str, ...]
) -> None:
    found = veil_json("run", daemon, *more, cwd=tmp_path)
    assert found["stdout"] == "there"
    assert found["left_running"] == 1
    assert not marker.alive()


def test_it_lives_on_when_that_is_asked(tmp_path: Path, daemon: str, marker: Marker) -> None:
    found = veil_json("run", daemon, "--left-running", "keep", cwd=tmp_path)
    assert found["survivors"] == "kept"
    assert list(marker.alive()) == [int((tmp_path / "pid").read_text())]


@pytest.mark.parametrize("more", [(), ("--no-contain",)], ids=["contained", "adopted"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_whole_tree(
    tmp_path: Path, daemon: str, marker: Marker, number: signal.Signals, more: tuple[str, ...]
) -> None:
    with going_on("run", f"{daemon}; touch ready; sleep {marker}", *more, cwd=tmp_path) as run:
        wait_for(tmp_path / "ready")
        run.send_signal(number)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 128 + number, (out, err)
    assert not marker.alive()
    assert out.startswith(f"ended by {number.name} in ".encode())
    assert b"\nthere\n" in out
    assert err == b""
    assert veil_json("detail", "--selector", "meta", cwd=tmp_path)["meta"]["outcome"]["cancelled"] is True


def test_a_second_signal_waits_no_longer(tmp_path: Path, marker: Marker) -> None:
    command = f"trap '' TERM INT HUP; touch ready; while :; do sleep {marker}; done"
    with going_on("run", command, cwd=tmp_path) as run:
        wait_for(tmp_path / "ready")
        run.send_signal(signal.SIGINT)
        time.sleep(0.3)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 130
    assert not marker.alive()


def test_signals_that_were_ignored_stay_ignored(tmp_path: Path) -> None:
    """As under ``nohup``."""
    command = "touch ready; while ! test -e go; do sleep 0.05; done; echo went on"
    ignore = functools.partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    with going_on("run", command, cwd=tmp_path, preexec_fn=ignore) as run:
        wait_for(tmp_path / "ready")
        run.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        (tmp_path / "go").touch()
        out, _ = run.communicate(timeout=60)
    assert run.returncode == 0
    assert b"went on" in out


@pytest.mark.parametrize("whole_group", [False, True], ids=["itself", "its group"])
def test_killing_veil_kills_the_run(tmp_path: Path, daemon: str, marker: Marker, whole_group: bool) -> None:
    """SIGKILL leaves no time to act: the supervisor of the run does it."""
    with going_on("run", f"{daemon}; touch ready; sleep {marker}", cwd=tmp_path, start_new_session=True) as run:
        wait_for(tmp_path / "ready")
        (os.killpg if whole_group else os.kill)(run.pid, signal.SIGKILL)
        run.wait(60)
        marker.until(0)


def test_killing_the_supervisor_kills_the_run(tmp_path: Path, daemon: str, marker: Marker) -> None:
    """Then what it had adopted comes to veil itself."""
    with going_on("run", f"{daemon}; touch ready; sleep {marker}", cwd=tmp_path) as run:
        wait_for(tmp_path / "ready")
        supervisor, *others = psutil.Process(run.pid).children()
        assert not others
        supervisor.kill()
        out, err = run.communicate(timeout=60)
    assert run.returncode == 137, (out, err)
    assert b"killed by SIGKILL" in out
    assert not marker.alive()


def test_a_left_sleep_does_not_hold_the_call(tmp_path: Path, marker: Marker) -> None:
    done = veil("run", f"sleep {marker} & echo hi", cwd=tmp_path)
    assert done.returncode == 0
    assert b"\nhi\n" in done.stdout
    assert not marker.alive()
