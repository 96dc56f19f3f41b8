"""Starting from a thread that gave something up: the child does not have it, this program keeps it."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from veil.host import restricted


def no_new_privileges() -> None:
    pr_set_no_new_privs = 38
    assert ctypes.CDLL(None).prctl(pr_set_no_new_privs, 1, 0, 0, 0) == 0


def status(pid: int | str) -> str:
    return next(line for line in Path(f"/proc/{pid}/status").read_text().split("\n") if line.startswith("NoNewPrivs"))


@pytest.mark.linux
def test_the_child_alone_is_restricted() -> None:
    child = restricted.start(no_new_privileges, lambda: subprocess.Popen(["sleep", "60"]))
    try:
        assert status(child.pid).endswith("1")
        assert status("thread-self").endswith("0")
        assert status("self").endswith("0")
        assert subprocess.run(["grep", "NoNewPrivs", "/proc/self/status"], capture_output=True).stdout.endswith(b"0\n")
    finally:
        child.kill()
        child.wait()


def test_nothing_to_give_up_needs_no_thread() -> None:
    assert restricted.start(None, threading.current_thread) is threading.current_thread()
    assert restricted.start(lambda: None, threading.current_thread) is not threading.current_thread()


def test_what_is_raised_is_raised_here_and_nothing_starts() -> None:
    started: list[int] = []

    def refuse() -> None:
        raise OSError(95, "not here")

    with pytest.raises(OSError, match="not here"):
        restricted.start(refuse, lambda: started.append(1))
    assert started == []
    with pytest.raises(FileNotFoundError):
        restricted.start(lambda: None, lambda: subprocess.Popen(["/no/such/program"]))


def test_the_thread_is_gone_afterwards() -> None:
    before = threading.active_count()
    restricted.start(lambda: None, lambda: None)
    assert threading.active_count() == before


def test_an_interrupt_waits_until_it_is_known_what_was_started() -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        time.sleep(0.5)
        begun.append(subprocess.Popen(["sleep", "60"]))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            restricted.start(lambda: None, begin)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert len(begun) == 1
    begun[0].kill()
    begun[0].wait()


def test_limits_belong_to_the_process_and_so_to_no_thread() -> None:
    """Why limits are set on the child from outside: on a thread they would be this program's own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    restricted.start(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard)), lambda: None)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft - 1, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
