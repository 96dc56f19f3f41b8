"""Who is alive, and signals that never reach somebody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from marked import Marker

from veil.host import processes

TAG = "VEIL_RUN"


def started(*argv: str, tag: str = "", session: bool = True) -> subprocess.Popen[bytes]:
    env = {"PATH": os.environ["PATH"], **({TAG: tag} if tag else {})}
    return subprocess.Popen(argv, env=env, start_new_session=session)


@pytest.fixture
def sleeper(marker: Marker) -> Iterator[subprocess.Popen[bytes]]:
    child = started("sleep", marker.text)
    yield child
    child.kill()
    child.wait()


def seen(pid: int) -> processes.Process:
    found = processes.look(pid)
    assert found is not None
    return found


def test_look_tells_parent_group_session_and_whether_it_is_dead(sleeper: subprocess.Popen[bytes]) -> None:
    found = seen(sleeper.pid)
    assert (found.pid, found.parent) == (sleeper.pid, os.getpid())
    assert (found.group, found.session, found.zombie) == (sleeper.pid, sleeper.pid, False)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert seen(sleeper.pid).zombie
    sleeper.wait()
    assert processes.look(sleeper.pid) is None


@pytest.mark.linux
def test_a_program_name_with_brackets_and_blanks_is_read_right() -> None:
    hostile = (
        "import ctypes, time; ctypes.CDLL(None).prctl(15, b') Z 1 (('); print('named', flush=True); time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", hostile], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        found = seen(child.pid)
        assert (found.parent, found.zombie) == (os.getpid(), False)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_send_reaches_exactly_the_process_that_was_seen(sleeper: subprocess.Popen[bytes]) -> None:
    now = seen(sleeper.pid)
    stranger = now._replace(started=now.started + 1)
    assert processes.send(stranger, signal.SIGKILL) is False, "the same number, but another process"
    time.sleep(0.05)
    assert sleeper.poll() is None
    assert processes.send(now, signal.SIGKILL) is True
    assert sleeper.wait(60) == -signal.SIGKILL
    assert processes.send(now, signal.SIGKILL) is False


def test_identity_is_of_one_process_alone(sleeper: subprocess.Popen[bytes]) -> None:
    first = processes.identity(sleeper.pid)
    assert first == processes.identity(sleeper.pid)
    assert first != ""
    sleeper.kill()
    sleeper.wait()
    assert processes.identity(sleeper.pid) == ""
    assert processes.identity(os.getpid()) not in ("", first)


def test_members_are_group_session_tree_and_carriers_of_the_tag(marker: Marker) -> None:
    tag = f"tag{marker}"
    inner = f"sleep {marker} & (setsid sleep {marker} &) ; env -i setsid sleep {marker} & sleep {marker}"
    leader = started("bash", "-c", inner, tag=tag)
    stranger = started("sleep", marker.text)
    try:
        expected = set(marker.until(6)) - {stranger.pid}
        root = seen(leader.pid)
        deadline = time.monotonic() + 60
        while {process.pid for process in processes.members(root, tag)} != expected:
            assert time.monotonic() < deadline, (processes.members(root, tag), marker.alive())
        # with another start time the leader is somebody else: only those with the tag are left
        gone = root._replace(started=-1.0)
        tagged = {process.pid for process in processes.members(gone, tag)}
        assert tagged <= expected
        assert leader.pid in tagged, "it carries the tag itself"
        assert stranger.pid not in tagged
        assert processes.members(gone, "") == []
        assert os.getpid() not in {process.pid for process in processes.members(seen(os.getpid()), tag)}
        carriers = {process.pid for process in processes.carriers(tag)}
        assert leader.pid in carriers
        assert stranger.pid not in carriers
        spared = processes.members(root, "", spare=(leader.pid,))
        assert leader.pid not in {process.pid for process in spared}
    finally:
        for pid in marker.alive():
            os.kill(pid, signal.SIGKILL)
        leader.wait()
        stranger.wait()


@pytest.mark.linux
def test_born_later_sees_the_younger_ones_that_carry_the_tag(marker: Marker) -> None:
    tag = f"tag{marker}"
    older = started("sleep", marker.text, tag=tag)
    child = started("sleep", marker.text)
    try:
        assert not processes.born_later(child.pid, tag), "the older one is none of its"
        younger = started("sleep", marker.text, tag=tag)
        try:
            assert processes.born_later(child.pid, tag)
            assert not processes.born_later(child.pid, "another tag")
            assert processes.born_later(2**30, tag), "a number that is yet to come: they began anew"
        finally:
            younger.kill()
            younger.wait()
        assert not processes.born_later(child.pid, tag)
    finally:
        for process in (older, child):
            process.kill()
            process.wait()


@pytest.mark.linux
def test_a_subreaper_is_given_the_orphans_and_collects_them_alone() -> None:
    program = """
import os, subprocess, sys, time
from veil.host import orphans, prctl, processes
assert prctl.become_subreaper()
own = orphans.start(lambda: subprocess.Popen(["true"], start_new_session=True))
helper = subprocess.Popen(["false"])
assert orphans.none()
subprocess.run(["sh", "-c", "sleep 0.2 & sleep 0.2 &"], check=True, start_new_session=True)
assert not orphans.none()
def adopted():
    return [p for p in processes.everyone().values() if p.parent == os.getpid() and p.pid not in (own.pid, helper.pid)]
assert len(adopted()) == 2, adopted()
deadline = time.monotonic() + 60
while adopted():
    orphans.collect()
    assert time.monotonic() < deadline
    time.sleep(0.02)
assert orphans.none()
assert own.wait() == 0, "the exit code of a child of its own is left to its owner"
assert helper.wait() == 1, "and that of anything else that it started"
orphans.let_go(own.pid)
assert orphans.none()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
