"""A command in namespaces made by Python alone is what it would be without; a broken sandbox is told apart."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from veil.host.confine.base import Allowance, Bounds, Wrapped
from veil.host.confine.namespaces import OwnNamespaces
from veil.model.errors import VeilError
from veil.model.outcome import Outcome

pytestmark = [pytest.mark.linux, pytest.mark.needs("user namespaces")]


# -- the command is what it would be without


@pytest.fixture
def bounds() -> Iterator[Bounds]:
    with tempfile.TemporaryDirectory(prefix="veil-test-", dir="/var/tmp") as made:
        base = Path(made).resolve()
        for name in ("cwd", "temp"):
            (base / name).mkdir()
        yield Bounds(str(base / "cwd"), str(base / "temp"))


@contextlib.contextmanager
def started(argv: list[str], bounds: Bounds, **options: object) -> Iterator[tuple[subprocess.Popen[bytes], Wrapped]]:
    with OwnNamespaces().confine(tuple(argv), bounds) as wrapped:
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": bounds.cwd, "pass_fds": ()} | options
        fds = (*wrapped.pass_fds, *given.pop("pass_fds"))  # type: ignore[misc]
        child = subprocess.Popen(wrapped.argv, pass_fds=fds, **given)  # type: ignore[call-overload]
        try:
            assert wrapped.started is not None
            wrapped.started()
            yield child, wrapped
        finally:
            child.kill()
            child.wait()
            for pipe in (child.stdout, child.stderr):
                if pipe is not None:
                    pipe.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL, signal.SIGINT, signal.SIGUSR1])
def test_a_death_by_signal_is_the_same_death(bounds: Bounds, number: signal.Signals) -> None:
    with started(["/bin/sh", "-c", f"kill -{number.value} $$; sleep 50"], bounds) as (child, _):
        assert child.wait(60) == -number
    assert os.listdir(bounds.cwd) == []


def test_a_signal_is_for_the_command_to_answer(bounds: Bounds) -> None:
    """What holds the command lives through it, whoever it is sent to."""
    text = "trap 'echo bye; exit 3' TERM INT; echo ready; while :; do sleep 0.05; done"
    with OwnNamespaces().confine(("/bin/sh", "-c", text), bounds) as wrapped:
        child = subprocess.Popen(
            wrapped.argv, pass_fds=wrapped.pass_fds, cwd=bounds.cwd, stdout=subprocess.PIPE, start_new_session=True
        )
        assert wrapped.started is not None
        assert child.stdout is not None
        inside = wrapped.started()
        assert inside is not None
        assert child.stdout.readline() == b"ready\n"
        os.killpg(child.pid, signal.SIGTERM)
        for first in inside.pids - {child.pid}:
            for pid in Path(f"/proc/{first}/task/{first}/children").read_text().split():
                os.kill(int(pid), signal.SIGTERM)
        assert child.communicate(timeout=60)[0] == b"bye\n"
        assert child.returncode == 3


def test_a_signal_for_its_whole_group_stays_inside(bounds: Bounds) -> None:
    """A process group knows no namespace: the outer process must not be in the command's."""
    with started(["/bin/sh", "-c", "trap '' TERM; kill -TERM 0; echo alive; exit 4"], bounds) as (child, _):
        assert child.communicate(timeout=60)[0] == b"alive\n"
        assert child.returncode == 4
    with started(["/bin/sh", "-c", "ps -o sid= -p $$; kill -9 0; sleep 50"], bounds) as (child, _):
        assert int(child.communicate(timeout=60)[0]) == 2
        assert child.returncode == -9


def test_a_path_that_has_become_a_link_grants_nothing(bounds: Bounds) -> None:
    """Somebody puts a link in the place of a folder between the look and the mount."""
    outside = Path(bounds.cwd).parent / "outside"
    outside.mkdir()
    (Path(bounds.cwd) / "sub").symlink_to(outside)
    (outside / "x").mkdir()
    writable = replace(bounds, writable=(f"{bounds.cwd}/sub",))
    for swapped in (writable, replace(bounds, masked_folders=(f"{bounds.cwd}/sub/x",))):
        with pytest.raises(VeilError) as caught:
            settled(["/bin/sh", "-c", "echo x >sub/planted"], swapped)
        assert caught.value.code == "sandbox_broken"
    assert [path.name for path in outside.iterdir()] == ["x"]


def test_what_was_ignored_stays_ignored(bounds: Bounds) -> None:
    text = "import signal; print([signal.getsignal(n).name for n in (1, 2, 13, 15, 25)])"
    inner = [sys.executable, "-I", "-S", "-c", text]
    outer = ["/bin/sh", "-c", 'trap "" HUP INT; exec "$@"', "sh"]
    with OwnNamespaces().confine(tuple(inner), bounds) as wrapped:
        child = subprocess.Popen(
            [*outer, *wrapped.argv], pass_fds=wrapped.pass_fds, cwd=bounds.cwd, stdout=subprocess.PIPE
        )
        assert wrapped.started is not None
        wrapped.started()
        told = child.communicate(timeout=60)[0]
    # Python itself ignores broken pipes and files that are too long, in there as well
    assert told == b"['SIG_IGN', 'SIG_IGN', 'SIG_IGN', 'SIG_DFL', 'SIG_IGN']\n"


def test_the_environment_arrives_as_it_is(bounds: Bounds) -> None:
    """Python's own start adds a locale where there is none."""
    environment = {"A": "b\nc", "EMPTY": "", "PATH": "/usr/bin:/bin", "BYTES": os.fsdecode(b"\xff\xfe")}
    with started(["env", "-0"], bounds, env=environment) as (child, _):
        told = child.communicate(timeout=60)[0].split(b"\0")[:-1]
    assert set(told) == {b"A=b\nc", b"EMPTY=", b"PATH=/usr/bin:/bin", b"BYTES=\xff\xfe"}


def test_words_arrive_as_they_are(bounds: Bounds) -> None:
    words = ["", "a b", "-c", "--", os.fsdecode(b"\xff"), "new\nline", "ü"]
    with started(["printf", "%s\\0", *words], bounds) as (child, _):
        assert child.communicate(timeout=60)[0] == b"".join(os.fsencode(word) + b"\0" for word in words)


def test_what_holds_the_command_counts_for_nothing(bounds: Bounds) -> None:
    """A Python stays around it, which is larger than many a command."""
    little = replace(bounds, allowance=Allowance(memory=7_000_000, processes=2))
    with started(["/bin/sh", "-c", "sleep 0.5; echo done"], little) as (child, wrapped):
        assert child.communicate(timeout=60)[0] == b"done\n"
        assert wrapped.limit is not None
        assert wrapped.limit(Outcome("exited", 0)) is None


def test_only_the_command_holds_its_streams(bounds: Bounds) -> None:
    """Whoever reads sees the end of a stream when the command closes it, not when it ends."""
    with started(["/bin/sh", "-c", "echo last; exec >&- 2>&-; sleep 50"], bounds) as (child, _):
        assert child.stdout is not None
        assert child.stdout.read() == b"last\n"
        assert child.poll() is None


def test_descriptors_that_are_passed_arrive(bounds: Bounds) -> None:
    read, write = os.pipe()
    text = f"import os; os.write({write}, b'through'); print(*os.listdir('/proc/self/fd'))"
    with started([sys.executable, "-I", "-S", "-c", text], bounds, pass_fds=(write,)) as (child, _):
        os.close(write)
        told = child.communicate(timeout=60)[0].split()
    with os.fdopen(read, "rb") as file:
        assert file.read() == b"through"
    # the three streams, the passed one, and the folder itself: nothing of the sandbox's own
    assert len(told) == 5


def test_the_end_of_the_outer_process_is_the_end_of_all(bounds: Bounds) -> None:
    with started(["/bin/sh", "-c", "(setsid sleep 50 &); echo ready; sleep 50"], bounds) as (child, _):
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.kill()
        child.wait()
        ready, _, _ = select.select([child.stdout], [], [], 30)
        assert ready
        assert child.stdout.read() == b""  # everybody who held it is gone


def test_who_is_left_lives_until_somebody_decides(bounds: Bounds) -> None:
    with OwnNamespaces().confine(("/bin/sh", "-c", "sleep 50 >/dev/null 2>&1 & exit 5"), bounds) as wrapped:
        child = subprocess.Popen(wrapped.argv, pass_fds=wrapped.pass_fds, cwd=bounds.cwd)
        assert wrapped.started is not None
        inside = wrapped.started()
        assert child.wait(60) == 5
        assert inside is not None
        assert not inside.empty(0.2)
        first = min(inside.pids, key=lambda pid: pid == child.pid)
        os.kill(first, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while not inside.empty(0.1):
            assert time.monotonic() < deadline


# -- what broke, and what only failed


def settled(argv: list[str], bounds: Bounds) -> Outcome:
    with started(argv, bounds) as (child, wrapped):
        child.communicate(timeout=60)
        code = child.returncode
        assert wrapped.settle is not None
        return wrapped.settle(Outcome("exited" if code >= 0 else "signaled", code if code >= 0 else 128 - code))


@pytest.mark.parametrize("code", [0, 1, 125, 126, 127, 255])
def test_the_code_of_a_command_is_its_own(bounds: Bounds, code: int) -> None:
    outcome = settled(["/bin/sh", "-c", f"exit {code}"], bounds)
    assert (outcome.ended, outcome.exit) == ("exited", code)


@pytest.mark.parametrize(
    ("program", "exit", "error"),
    [
        ("no-such-program", 127, "No such file or directory: no-such-program"),
        ("./plain", 126, "Permission denied: ./plain"),
        ("./gone/x", 127, "No such file or directory: ./gone/x"),
        ("./plain/x", 127, "Not a directory: ./plain/x"),
        ("./text", 126, "Exec format error: ./text"),
    ],
)
def test_a_program_that_cannot_be_started(bounds: Bounds, program: str, exit: int, error: str) -> None:
    Path(bounds.cwd, "plain").write_text("x")
    Path(bounds.cwd, "text").write_text("x")
    Path(bounds.cwd, "text").chmod(0o755)
    outcome = settled([program], bounds)
    assert (outcome.ended, outcome.exit, outcome.spawn_error) == ("spawn_failed", exit, error)


def test_a_sandbox_that_breaks_is_said_to(bounds: Bounds) -> None:
    """What was to be kept has gone between the look and the mount."""
    broken = Bounds(bounds.cwd, bounds.temp, readonly=(f"{bounds.cwd}/gone",))
    with pytest.raises(VeilError) as caught:
        settled(["/bin/sh", "-c", "echo x >ran"], broken)
    assert caught.value.code == "sandbox_broken"
    assert f"{bounds.cwd}/gone" in str(caught.value)
    assert os.listdir(bounds.cwd) == []


def test_a_wrapper_that_dies_before_the_command_is_a_broken_sandbox(bounds: Bounds) -> None:
    with OwnNamespaces().confine(("true",), bounds) as wrapped:
        assert wrapped.started is not None
        assert wrapped.settle is not None
        # without the orders that it needs
        child = subprocess.Popen(wrapped.argv, cwd=bounds.cwd, stderr=subprocess.PIPE, pass_fds=wrapped.pass_fds[:2])
        words = child.communicate(timeout=60)[1]
        assert wrapped.started() is None
        from veil.model.outcome import Stream

        with pytest.raises(VeilError) as caught:
            wrapped.settle(Outcome("exited", child.returncode, stderr=Stream(words, b"", len(words), 1)))
    assert caught.value.code == "sandbox_broken"
    assert "Bad file descriptor" in str(caught.value)
