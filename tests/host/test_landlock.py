"""Landlock, a filter and no capabilities: what they deny, what they refuse to promise, and what they leave open."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import errno
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confinements import PLAIN, ROOT, USER, Place, as_user, place_for

from veil.host import prctl, restricted
from veil.host.confine import landlock
from veil.host.confine.base import Allowance, Bounds
from veil.host.confine.landlock import Landlock, gaps_of, too_old
from veil.host.confine.ruleset import Ruleset, version, write_rights
from veil.model.errors import VeilError

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
    text = "import multiprocessing as m\nm.Lock()\nwith m.Pool(2) as pool: print(pool.map(abs, [-1, 2]))"
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


# -- what is refused, and what is told


def test_what_it_cannot_express_is_refused() -> None:
    confine = Landlock()
    plain = Bounds("/work", "/tmp/t", masked_folders=("/home/u/.ssh",), own=("/home/u/.local/state/veil",))
    assert confine.lacks(plain) is None
    refused: list[dict[str, Any]] = [
        {"masked_folders": ("/work/secret",)},
        {"masked_files": ("/work/a/b/.env",)},
        {"own": ("/work",)},
        {"readonly": ("/work/.git/hooks",)},
        {"pinned": ("/work/.git",)},
        {"masked_files": ("/dev/shm/secret",)},
    ]
    for more in refused:
        bounds = Bounds("/work", "/tmp/t", **more)
        reason = confine.lacks(bounds)
        assert reason is not None
        assert next(iter(more.values()))[0] in reason
    assert confine.lacks(Bounds("/work", "/tmp/t", allowance=Allowance(memory=1))) is not None
    # what lies beside is not below
    assert confine.lacks(Bounds("/work", "/tmp/t", masked_folders=("/workshop",), readonly=("/etc",))) is None


@pytest.mark.parametrize("abi", [0, 1, 2])
def test_an_old_kernel_is_refused(abi: int) -> None:
    """sbx-08."""
    reason = too_old(abi)
    assert reason is not None
    assert "Linux 6.2" in reason


def test_why_the_second_version_is_too_old(tmp_path: Path) -> None:
    """Under the rights of ABI 2 a file outside can be emptied; ABI 3 knows a right for that."""
    (tmp_path / "file").write_text("full")

    def emptied(abi: int) -> bool:
        rules = Ruleset(write_rights(abi), network=True, abi=abi)

        def restrict() -> None:
            prctl.no_new_privileges()
            rules.restrict_thread()

        def empty() -> bool:
            try:
                os.truncate(tmp_path / "file", 0)
            except PermissionError:
                return False
            return True

        return restricted.start(restrict, empty)

    assert not emptied(3)
    assert emptied(2)
    assert too_old(3) is None


def test_gaps_shrink_with_every_version() -> None:
    bounds = Bounds("/work", "/tmp/t", network=False, sockets=("/run/x",), masked_folders=("/home",))
    told = [set(gaps_of(abi, bounds)) for abi in (3, 4, 5, 6, 7)]
    assert told[0] == told[1] > told[2] > told[3] == told[4]
    joined = "\n".join(told[4])
    for word in (
        "mode, owner, times",
        "processes outside can be seen",
        "/dev/shm",
        "away from its parents",
        "loopback",
    ):
        assert word in joined
    assert any("signals" in gap for gap in told[2] - told[3])
    assert any("ioctl" in gap for gap in told[1] - told[2])


# -- this process


def start(bounds: Bounds, text: str) -> int:
    with Landlock().confine(("/bin/sh", "-c", text), bounds) as wrapped:
        child = restricted.start(
            wrapped.restrict, lambda: subprocess.Popen(wrapped.argv, cwd=bounds.cwd, stderr=subprocess.DEVNULL)
        )
        return child.wait(60)


@pytest.fixture
def bounds(tmp_path: Path) -> Bounds:
    real = Path(os.path.realpath(tmp_path))
    for name in ("cwd", "temp", "home", "home/keys"):
        (real / name).mkdir()
    (real / "home" / "keys" / "id").write_text("secret")
    return Bounds(str(real / "cwd"), str(real / "temp"), masked_folders=(str(real / "home" / "keys"),))


def test_this_process_stays_free(bounds: Bounds, tmp_path: Path) -> None:
    assert start(bounds, "echo x >../outside") != 0
    (tmp_path / "outside").write_text("x")
    assert Path(bounds.masked_folders[0], "id").read_text() == "secret"
    status = Path("/proc/self/status").read_text()
    assert "NoNewPrivs:\t0" in status
    assert "Seccomp:\t0" in status
    if os.getuid() == 0:
        assert ctypes.CDLL(None).prctl(23, 21, 0, 0, 0) == 1  # PR_CAPBSET_READ


def test_what_comes_and_goes_beside_a_hidden_folder_is_noticed(bounds: Bounds, tmp_path: Path) -> None:
    """Rules are kept between runs: they must never open what was hidden since, nor hide what has come."""
    home = tmp_path / "home"
    (home / "open").mkdir()
    (home / "open" / "file").write_text("x")
    assert start(bounds, "cat ../home/open/file") == 0
    (home / "later").write_text("x")
    assert start(bounds, "cat ../home/later") == 0
    assert start(bounds, "cat ../home/keys/id") != 0
    (home / "open").rename(home / "keys" / "open")
    assert start(bounds, "cat ../home/keys/open/file") != 0
    assert start(bounds, "cat ../home/later && echo x >written") == 0


def test_rules_are_used_again_as_long_as_they_are_right(bounds: Bounds, tmp_path: Path) -> None:
    kept = landlock._Rules(settled=0)
    for _ in range(100):  # others may be at work in the folders above
        first = kept.of(bounds)
        if kept.of(bounds) is first:
            break
    assert kept.of(bounds) is first
    (tmp_path / "home" / "new").write_text("x")
    assert kept.of(bounds) is not first
    hasty = landlock._Rules(settled=3600)
    assert hasty.of(bounds) is not hasty.of(bounds)
    cwd = Path(bounds.cwd)
    cwd.rename(tmp_path / "away")
    cwd.mkdir()
    assert start(bounds, "echo x >here") == 0
    assert start(bounds, "echo x >../away/there") != 0


def test_a_folder_that_is_gone_grants_nothing(bounds: Bounds) -> None:
    os.rmdir(bounds.temp)
    assert start(bounds, "echo x >here") == 0


def test_a_path_that_has_become_a_link_grants_nothing(bounds: Bounds, tmp_path: Path) -> None:
    """Somebody puts a link in the place of a folder between the look and the rules."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "cwd" / "sub").symlink_to(tmp_path / "outside")
    swapped = dataclasses.replace(bounds, writable=(str(tmp_path / "cwd" / "sub"),))
    assert start(swapped, "echo x >sub/planted") != 0
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_restriction_that_fails_is_no_failed_command(bounds: Bounds) -> None:
    """The kernel takes sixteen domains inside one another, and then no more."""

    def nested(depth: int) -> str:
        with Landlock().confine(("true",), bounds) as wrapped:
            assert wrapped.restrict is not None
            for _ in range(depth):
                wrapped.restrict()
        return "all"

    assert restricted.start(lambda: None, lambda: nested(3)) == "all"
    with pytest.raises(VeilError) as caught:
        restricted.start(lambda: None, lambda: nested(20))
    assert caught.value.code == "sandbox_broken"
    assert os.strerror(errno.E2BIG) in str(caught.value)
    assert sys.exc_info() == (None, None, None)
