"""Landlock, a filter and no capabilities: what they deny to a command, and what it can still do."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confinements import PLAIN, ROOT, USER, Place, as_user, place_for

from veil.host.confine.ruleset import version

pytestmark = [pytest.mark.linux, pytest.mark.needs("landlock")]


@pytest.fixture(params=[ROOT, USER])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    yield from place_for(request.param)


WRITES = """
import errno, os, sys
out, cwd = sys.argv[1:]
def attempts(base, other):
    yield "create", lambda: os.close(os.open(base + "/new", os.O_CREAT | os.O_WRONLY))
    yield "write", lambda: os.close(os.open(base + "/file", os.O_WRONLY))
    yield "append", lambda: os.close(os.open(base + "/file", os.O_WRONLY | os.O_APPEND))
    yield "truncate", lambda: os.truncate(base + "/file", 0)
    yield "open and truncate", lambda: os.close(os.open(base + "/file", os.O_RDONLY | os.O_TRUNC))
    yield "mkdir", lambda: os.mkdir(base + "/folder2")
    yield "symlink", lambda: os.symlink("x", base + "/symlink")
    yield "fifo", lambda: os.mkfifo(base + "/fifo")
    yield "link", lambda: os.link(base + "/file", base + "/hard")
    yield "rename", lambda: os.rename(base + "/file", base + "/renamed")
    yield "rename here", lambda: os.rename(base + "/second", other + "/stolen")
    yield "rename there", lambda: os.rename(other + "/mine", base + "/planted")
    yield "link there", lambda: os.link(other + "/mine2", base + "/hard2")
    yield "rmdir", lambda: os.rmdir(base + "/folder")
    yield "unlink", lambda: os.unlink(base + "/third")
    yield "through a link", lambda: os.close(os.open(other + "/way", os.O_CREAT | os.O_WRONLY))
    yield "through /proc", lambda: os.close(os.open("/proc/self/root" + base + "/file4", os.O_WRONLY))
for name, attempt in attempts(out, cwd):
    try: attempt()
    except OSError as error: print(name, errno.errorcode[error.errno])
    else: print(name, "done")
"""


def furnish(place: Place) -> None:
    for name in ("file", "second", "third", "file4"):
        (place.outside / name).write_text("outside")
    (place.outside / "folder").mkdir()
    for name in ("mine", "mine2"):
        (place.cwd / name).write_text("inside")
    (place.cwd / "way").symlink_to(place.outside / "arrived")
    place.give(place.base)


def test_nothing_outside_can_be_written(place: Place) -> None:
    furnish(place)
    before = {path: path.stat() for path in place.outside.rglob("*")}
    program = [place.python, "-I", "-S", "-c", WRITES, str(place.outside), str(place.cwd)]
    ended = place.run("landlock", program).runs[0]
    assert (ended.exit, ended.stderr) == (0, "")
    lines = [line.rsplit(" ", 1) for line in ended.stdout.splitlines()]
    assert len(lines) == 17
    assert {answer for _, answer in lines} <= {"EACCES", "EXDEV"}, lines
    assert {path: path.stat() for path in place.outside.rglob("*")} == before


def test_everything_inside_can_be(place: Place) -> None:
    for folder in (place.cwd, place.temp):
        for name in ("file", "second", "third", "file4"):
            (folder / name).write_text("inside")
        (folder / "folder").mkdir()
        (folder / "way").symlink_to(folder / "arrived")
    for name in ("mine", "mine2"):
        (place.temp / name).write_text("inside")
    place.give(place.base)
    program = [place.python, "-I", "-S", "-c", WRITES, str(place.cwd), str(place.temp)]
    ended = place.run("landlock", program).runs[0]
    # "file" has been moved away by the time it is written to by its old name
    assert {line.rsplit(" ", 1)[1] for line in ended.stdout.splitlines()} == {"done"}, ended.stdout


def test_what_is_hidden_cannot_be_opened_by_any_way(place: Place) -> None:
    hidden = place.home / "keys"
    hidden.mkdir()
    (hidden / "id").write_text("TOP SECRET")
    (place.home / "token").write_text("TOP SECRET")
    (place.home / "other").write_text("fine\n")
    (place.home / "way").symlink_to(hidden)
    place.give(place.home)
    home = place.home
    text = f"""cat {home}/other; ls {home}
    cat {home}/keys/id {home}/way/id {home}/token /proc/self/root{home}/keys/id
    cd {home}/keys; cat id; cd - >/dev/null
    ln {home}/token copy; ln {home}/keys/id copy; mv {home}/keys keys; mv {home}/token .
    cp -r {home}/keys k; tar cf t {home}/keys
    exec 3<{home}/token; cat <&3"""
    ended = place.shell("landlock", text, masked_folders=[hidden], masked_files=[home / "token"])
    assert "SECRET" not in ended.stdout + ended.stderr
    # names are seen; that is told
    assert ended.stdout.split() == ["fine", "keys", "other", "token", "way"]
    assert not any(b"SECRET" in path.read_bytes() for path in place.cwd.rglob("*") if path.is_file())
    told = place.run("landlock", ["true"], masked_folders=[hidden]).gaps
    assert any("names, sizes and times can be seen" in gap for gap in told)


def test_devices_give_nothing_away(place: Place) -> None:
    hidden = place.home / "keys"
    hidden.mkdir()
    place.give(place.home)
    text = """echo x >/dev/null && head -c 8 /dev/zero | wc -c && head -c 8 /dev/urandom | wc -c
    for disk in $(ls /dev | grep -E '^(vd|sd|nvme|dm-|loop|mem)'); do
      head -c 1 /dev/$disk 2>/dev/null && echo "read $disk"
    done
    for terminal in /dev/pts/[0-9]*; do
      (echo injected >$terminal) 2>/dev/null && echo "wrote $terminal"
    done; true"""
    ended = place.shell("landlock", text, masked_folders=[hidden])
    assert ended.stdout.split() == ["8", "8"]


STATE = "grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status"


def test_no_power_is_left(place: Place) -> None:
    ended = place.shell("landlock", STATE)
    values = dict(re.findall(r"(\w+):\s+(\w+)", ended.stdout))
    assert values.pop("NoNewPrivs") == "1"
    assert values.pop("Seccomp") == "2"
    assert {int(value, 16) for value in values.values()} == {0}
    assert len(values) == 4


@pytest.mark.needs("root")
@pytest.mark.parametrize("user", [0, 1001])
def test_a_set_uid_program_gives_nothing_back(user: int) -> None:
    for place in place_for(user):
        program = place.base / "grep"
        program.write_bytes(Path("/bin/grep").resolve().read_bytes())
        program.chmod(0o4755)  # of root
        ended = place.shell("landlock", f"{program} -E '^(CapEff|CapPrm|Uid):' /proc/self/status")
        lines = dict(line.split(":", 1) for line in ended.stdout.splitlines())
        assert int(lines["CapEff"], 16) == int(lines["CapPrm"], 16) == 0
        assert set(lines["Uid"].split()) == {str(user)}


NETWORK = """
import socket, sys
udp, path = int(sys.argv[1]), sys.argv[2]
def reach(family, kind, address):
    with socket.socket(family, kind) as s:
        s.connect(address)
        s.send(b"hello")
for name, *target in (
    ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", udp)),
    ("unix", socket.AF_UNIX, socket.SOCK_DGRAM, path),
    ("abstract", socket.AF_UNIX, socket.SOCK_DGRAM, chr(0) + path),
):
    try: reach(*target)
    except OSError: print(name, "no")
    else: print(name, "reached")
try: a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b"x", path)
except OSError: print("pair no")
else: print("pair reached")
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({"network": False}, set(), id="no network"),
        pytest.param({"network": True}, {"udp"}, id="network"),
        pytest.param({"network": False, "sockets": True}, {"unix"}, id="a socket"),
        pytest.param({"network": True, "sockets": True}, {"udp", "unix"}, id="both"),
    ],
)
def test_sockets(place: Place, more: dict[str, Any], expected: set[str]) -> None:
    """sbx-06, sbx-09. With the network on, daemons behind sockets need a grant as well."""
    path = str(place.outside / "socket")
    with contextlib.ExitStack() as stack:
        udp, unix, abstract = (
            stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            for family in (socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX)
        )
        udp.bind(("127.0.0.1", 0))
        unix.bind(path)
        os.chmod(path, 0o666)
        abstract.bind("\0" + path)
        if more.get("sockets"):
            more = {**more, "sockets": [path]}
        program = [place.python, "-I", "-S", "-c", NETWORK, str(udp.getsockname()[1]), path]
        ended = place.run("landlock", program, **more).runs[0]
    assert ended.stderr == ""
    told = dict(line.split() for line in ended.stdout.splitlines())
    reached = {name for name, answer in told.items() if answer == "reached"}
    if version() < 6:
        reached.discard("abstract")  # a named gap
    assert reached == expected | ({"pair"} if more.get("sockets") else set())


@pytest.mark.skipif(version() < 6, reason="needs Landlock ABI 6: signals are a named gap below")
def test_signals_stay_inside(place: Place) -> None:
    bystander = subprocess.Popen(["sleep", "100"], **as_user(place.user))
    try:
        ended = place.shell("landlock", f"kill -9 {bystander.pid}; sleep 50 & kill -9 $!; wait $!; echo $?")
        assert ended.stdout == "137\n"
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_the_memory_and_environment_of_others_stay_theirs(place: Place) -> None:
    """sbx-12."""
    bystander = subprocess.Popen(["sleep", "100"], env={"SECRET_TOKEN": "abc"}, **as_user(place.user))
    try:
        text = f"""cat /proc/$PPID/environ; cd /proc/{bystander.pid}
        cat environ; ls root/ cwd/; readlink exe fd/0; head -c 1 mem"""
        ended = place.shell("landlock", text)
        assert ended.stdout == ""
    finally:
        bystander.kill()
        bystander.wait()


def test_programs_that_share_memory_work(place: Place) -> None:
    # forkserver, the default from Python 3.14 on, makes a unix socket: see the table of what is in the way
    text = """
from multiprocessing import get_context
m = get_context("fork")
m.Lock()
with m.Pool(2) as pool: print(pool.map(abs, [-1, 2]))
"""
    ended = place.run("landlock", [place.python, "-I", "-c", text], network=False).runs[0]
    assert (ended.stdout, ended.exit) == ("[1, 2]\n", 0), ended.stderr


def test_one_within_another(place: Place) -> None:
    text = "from veil.host.confine.landlock import Landlock; print(Landlock().unavailable())"
    ended = place.run("landlock", [place.python, "-B", "-c", text]).runs[0]
    assert (ended.stdout, ended.stderr) == ("None\n", "")


@pytest.mark.needs("user namespaces")
def test_it_confines_where_no_namespace_can_be_made() -> None:
    """sbx-08: what is stronger says why not, and this takes over with all that was asked."""
    for place in place_for(PLAIN):
        forbidding = ("unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"', "sh")
        command = ["/bin/sh", "-c", f"echo x >in; echo x >{place.outside}/out"]
        answer = place.run(None, command, around=forbidding, network=False)
        assert answer.backend == "landlock"
        assert (place.cwd / "in").exists()
        assert not (place.outside / "out").exists()
        assert answer.runs[0].exit != 0
