"""Core files are taken from what Landlock confines, and from nothing else, however many start at once."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from veil.host import restricted
from veil.host.confine import cores

pytestmark = pytest.mark.linux
ROOT = Path(__file__).parents[2]
SHOW = "import resource, sys; sys.stdin.read(); print(*resource.getrlimit(resource.RLIMIT_CORE))"


def limits(process: subprocess.Popen[str]) -> str:
    return process.communicate()[0].strip()


def start() -> subprocess.Popen[str]:
    """A Python that waits until it is spoken to, as Landlock starts its commands."""

    def restrict():  # type: ignore[no-untyped-def]
        cores.give_up()
        return lambda process: cores.take_back(None if process is None else process.pid)

    argv = [sys.executable, "-I", "-S", "-c", SHOW]
    return restricted.start(
        restrict, lambda: subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )


@pytest.fixture
def as_large_as_it_gets() -> object:
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_CORE, before)


def test_those_that_start_at_once_all_lose_them_and_this_process_keeps_them(as_large_as_it_gets: int) -> None:
    found: list[str] = []

    def several() -> None:
        for _ in range(5):
            found.append(limits(start()))

    threads = [threading.Thread(target=several) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["0 0"] * 20
    assert resource.getrlimit(resource.RLIMIT_CORE) == (as_large_as_it_gets, as_large_as_it_gets)


def test_a_start_that_fails_gives_them_back(as_large_as_it_gets: int) -> None:
    def restrict():  # type: ignore[no-untyped-def]
        cores.give_up()
        return lambda process: cores.take_back(None if process is None else process.pid)

    with pytest.raises(FileNotFoundError):
        restricted.start(restrict, lambda: subprocess.Popen(["/nowhere/to/be/found"]))
    assert resource.getrlimit(resource.RLIMIT_CORE) == (as_large_as_it_gets, as_large_as_it_gets)


FORK = """
import os, resource
from veil.host.confine import cores
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
cores.give_up()
pid = os.fork()
if not pid:
    os._exit(0 if resource.getrlimit(resource.RLIMIT_CORE) == (hard, hard) and not cores._starting else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), resource.getrlimit(resource.RLIMIT_CORE)[0])
"""


def test_a_fork_in_the_middle_of_a_start_keeps_them_as_well() -> None:
    """In a process of its own: threads of other tests here may be starting something as well."""
    done = subprocess.run([sys.executable, "-c", FORK], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "0 0\n"
