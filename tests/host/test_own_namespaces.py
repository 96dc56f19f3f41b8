"""Namespaces made by Python alone: what is denied inside, and what is there all the same."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confinements import PLAIN, ROOT, USER, Place, as_user, place_for

pytestmark = [pytest.mark.linux, pytest.mark.needs("user namespaces")]


@pytest.fixture(params=[ROOT, USER])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    yield from place_for(request.param)


CHANGES = """
import errno, os, sys
out = sys.argv[1]
attempts = {
    "create": lambda: os.close(os.open(out + "/new", os.O_CREAT | os.O_WRONLY)),
    "write": lambda: os.close(os.open(out + "/file", os.O_WRONLY)),
    "truncate": lambda: os.truncate(out + "/file", 0),
    "chmod": lambda: os.chmod(out + "/file", 0o600),
    "chown": lambda: os.chown(out + "/file", os.getuid(), os.getgid()),
    "utime": lambda: os.utime(out + "/file", (1, 1)),
    "setxattr": lambda: os.setxattr(out + "/file", "user.x", b"y"),
    "link": lambda: os.link(out + "/file", out + "/hard"),
    "take": lambda: os.rename(out + "/file", "taken"),
    "plant": lambda: os.rename("mine", out + "/planted"),
    "unlink": lambda: os.unlink(out + "/file"),
    "mkdir": lambda: os.mkdir(out + "/folder"),
    "mknod": lambda: os.mknod(out + "/node", 0o600),
    "/proc/self/root": lambda: os.close(os.open("/proc/self/root" + out + "/file", os.O_WRONLY)),
    "/proc/1/root": lambda: os.close(os.open("/proc/1/root" + out + "/file", os.O_WRONLY)),
    "core_pattern": lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
    "debug": lambda: os.close(os.open("/proc/dynamic_debug/control", os.O_WRONLY)),
    "slabinfo": lambda: os.close(os.open("/proc/slabinfo", os.O_WRONLY)),
    "sysrq": lambda: os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY)),
    "/sys": lambda: os.close(os.open("/sys/kernel/uevent_helper", os.O_WRONLY)),
    "/dev": lambda: os.close(os.open("/dev/planted", os.O_CREAT | os.O_WRONLY)),
    "/run": lambda: os.close(os.open("/run/planted", os.O_CREAT | os.O_WRONLY)),
    "device": lambda: os.mknod("node", 0o20666, os.makedev(1, 3)),
}
for name, attempt in attempts.items():
    try: attempt()
    except OSError as error: print(name, errno.errorcode[error.errno])
    else: print(name, "done")
"""


def test_nothing_outside_can_be_changed(place: Place) -> None:
    (place.outside / "file").write_text("outside")
    (place.cwd / "mine").write_text("inside")
    place.give(place.base)
    before = {path: path.stat() for path in (place.outside, *place.outside.rglob("*"))}
    program = [place.python, "-I", "-S", "-c", CHANGES, str(place.outside)]
    ended = place.run("namespaces", program).runs[0]
    assert (ended.exit, ended.stderr) == (0, "")
    told = dict(line.rsplit(" ", 1) for line in ended.stdout.splitlines())
    assert len(told) == 23
    assert set(told.values()) <= {"EROFS", "EXDEV", "EACCES", "EPERM", "ENOENT"}, told
    assert {told[name] for name in ("chmod", "utime", "setxattr", "truncate")} == {"EROFS"}
    assert {path: path.stat() for path in before} == before


def test_mounts_stay_whoever_tries(place: Place) -> None:
    """A mask cannot be taken off, and what is read-only cannot be made writable, by root or in further namespaces."""
    (place.cwd / "secret").mkdir()
    (place.cwd / "secret" / "key").write_text("TOP SECRET")
    (place.cwd / "kept").mkdir()
    place.give(place.cwd)
    attack = """umount secret; umount -l secret; mount -o remount,rw,bind kept; mount -o remount,rw,bind /
    mount --bind / kept; mount --bind . kept && cat kept/secret/key; mount -t tmpfs x kept && umount kept
    mkdir -p u w; mount -t overlay x -o lowerdir=.,upperdir=u,workdir=w,userxattr kept && cat kept/secret/key
    rm -rf u w; mv secret moved; mv kept moved; rmdir secret kept
    cat secret/key */key; echo x >kept/file; echo x >../outside/file"""
    text = f'{attack}\nunshare -Urm sh -c "$0"; unshare -Urmpf --mount-proc sh -c "$0"'
    answer = place.run(
        "namespaces",
        ["/bin/sh", "-c", text, attack],
        masked_folders=[place.cwd / "secret"],
        readonly=[place.cwd / "kept"],
    )
    assert "SECRET" not in answer.runs[0].stdout
    assert {path.name for path in place.cwd.iterdir()} == {"secret", "kept"}
    assert list((place.cwd / "kept").iterdir()) == []
    assert list(place.outside.iterdir()) == []
    assert (place.cwd / "secret" / "key").read_text() == "TOP SECRET"


def test_what_is_hidden_in_the_working_folder(place: Place) -> None:
    """sbx-01, sbx-05."""
    (place.cwd / "a" / "b").mkdir(parents=True)
    (place.cwd / "a" / "b" / ".env").write_text("TOP SECRET")
    (place.cwd / "pin").mkdir()
    place.give(place.cwd)
    text = """cat a/b/.env; cat <a/b/.env; echo x >a/b/.env; ln a/b/.env hard
    mv a/b/.env x; rm a/b/.env; cp a/b/.env copy; mv a moved; cat moved/b/.env; cp -r moved/b y; rm -r y
    mv pin gone; touch pin/in; ls -A"""
    hidden = place.cwd / "a" / "b" / ".env"
    ended = place.shell("namespaces", text, masked_files=[hidden], pinned=[place.cwd / "pin"])
    assert "SECRET" not in ended.stdout
    assert (place.cwd / "pin" / "in").exists()
    # the folder above it may move, and the mask moves along
    assert (place.cwd / "moved" / "b" / ".env").read_text() == "TOP SECRET"
    assert ended.stdout.split() == ["moved", "pin"]


def test_nobody_outside_is_there(place: Place) -> None:
    """sbx-12."""
    bystander = subprocess.Popen(["sleep", "100"], env={"SECRET_TOKEN": "abc"}, **as_user(place.user))
    try:
        text = f"""kill -9 {bystander.pid} 2>/dev/null && echo killed; cat /proc/*/environ; echo; kill -9 -1
        kill -9 1; kill -TERM 1; ps -e -o pid= | wc -l; echo alive"""
        ended = place.shell("namespaces", text)
        assert "SECRET_TOKEN" not in ended.stdout
        *others, many, last = ended.stdout.splitlines()
        assert last == "alive"
        assert int(many) <= 5
        assert "killed" not in others
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_no_power_is_left(place: Place) -> None:
    ended = place.shell("namespaces", "cat /proc/self/status /proc/1/status")
    found = re.findall(r"^(Cap\w+|NoNewPrivs|Seccomp):\s+(\w+)$", ended.stdout, re.MULTILINE)
    assert len(found) == 14
    assert {int(value, 16) for name, value in found if name.startswith("Cap")} == {0}
    assert {value for name, value in found if name == "NoNewPrivs"} == {"1"}
    assert {value for name, value in found if name == "Seccomp"} == {"2"}


def test_a_server_and_its_client_may_both_be_inside(place: Place) -> None:
    text = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].sendall(b"x")
print(client.recv(1))
for family, kind in ((1, 1), (1, 2), (16, 3), (17, 3), (40, 1)):
    try: socket.socket(family, kind)
    except OSError as error: print(error.errno)
try: socket.create_connection(("192.0.2.1", 80), 2)
except OSError: print("no way out")
"""
    ended = place.script("namespaces", text, network=False)
    assert ended.stdout.split("\n") == ["b'x'", *["1"] * 5, "no way out", ""], ended.stderr


def test_private_folders(place: Place) -> None:
    text = """ls -A /tmp /dev/shm; ls -A /run | grep -E 'dbus|docker|user|lock'; echo x >/tmp/own; echo x >/dev/shm/own
    cat "$TMPDIR/own"; echo x >/dev/null && test -c /dev/null && ls /dev/pts"""
    ended = place.shell("namespaces", text)
    assert ended.stdout == "/dev/shm:\n\n/tmp:\nx\nptmx\n", ended.stdout
    assert (place.temp / "own").read_text() == "x\n"
    assert not Path("/dev/shm/own").exists()
    assert not Path("/tmp/own").exists()


def test_what_lies_below_a_private_folder_and_is_needed_is_shown(place: Place) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        os.chmod(made, 0o755)
        base = Path(made)
        for name in ("work", "shown", "other"):
            (base / name).mkdir()
            (base / name / "file").write_text(name)
        (base / "script").write_text("echo script")
        place.give(base)
        place.cwd = base / "work"
        text = (
            f"cat {base}/work/file {base}/shown/file; . {base}/script; cat {base}/other/file; echo x >{base}/shown/new"
        )
        ended = place.shell(
            "namespaces",
            f"{text}; echo x >{base}/script; echo x >made",
            shown=[base / "shown"],
            readable=[base / "script"],
        )
        assert ended.stdout == "workshownscript\n"
        assert (base / "work" / "made").exists()
        assert sorted(path.name for path in base.rglob("*") if path.is_file()) == [
            "file",
            "file",
            "file",
            "made",
            "script",
        ]
        assert (base / "script").read_text() == "echo script"


@pytest.mark.needs("root")
def test_a_mount_in_the_working_folder_stays_as_it_is() -> None:
    """What was read-only before does not become writable with the folder that it is mounted in."""
    for place in place_for(0):
        (place.cwd / "ro").mkdir()
        (place.cwd / "rw").mkdir()
        mounting = ("unshare", "-m", "sh", "-c")
        text = f'mount -t tmpfs x {place.cwd}/rw && mount -t tmpfs -o ro x {place.cwd}/ro && exec "$@"'
        command = ["/bin/sh", "-c", "echo x >rw/file && cat rw/file; echo x >ro/file; echo x >file"]
        ended = place.run("namespaces", command, around=(*mounting, text, "sh")).runs[0]
        assert ended.stdout == "x\n"
        assert "Read-only" in ended.stderr
        assert (place.cwd / "file").exists()


@pytest.mark.needs("root")
def test_an_overlay_as_working_folder() -> None:
    """As in a container, whose root is one."""
    for place in place_for(0):
        for name in ("lower", "upper", "work"):
            (place.base / name).mkdir()
        (place.base / "lower" / "old").write_text("old")
        options = ",".join(f"{name}dir={place.base}/{name}" for name in ("lower", "upper", "work"))
        text = f'mount -t overlay x -o {options} {place.cwd} && exec "$@"'
        command = ["/bin/sh", "-c", "cat old; echo new >new; rm old; ls"]
        ended = place.run("namespaces", command, around=("unshare", "-m", "sh", "-c", text, "sh")).runs[0]
        assert ended.stdout == "oldnew\n", ended.stderr


def test_no_namespaces_no_backend() -> None:
    for place in place_for(PLAIN):
        forbidding = ("unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"', "sh")
        code = "from veil.host.confine.namespaces import OwnNamespaces; print(OwnNamespaces().unavailable())"
        done = subprocess.run(
            [*forbidding, place.python, "-B", "-c", code],
            env={"PYTHONPATH": str(place.base / "code"), "PATH": os.environ["PATH"]},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            **as_user(PLAIN),
        )
        assert done.stdout.startswith("new namespaces: "), done.stdout + done.stderr


def test_what_is_hidden_in_proc_is_hidden_in_its_own_as_well(place: Place) -> None:
    ended = place.shell("namespaces", "cat /proc/cpuinfo; cat /proc/meminfo >/dev/null", masked_files=["/proc/cpuinfo"])
    assert (ended.stdout, ended.exit) == ("", 0)
    assert "Permission denied" in ended.stderr


def test_a_granted_socket_is_the_only_one(place: Place) -> None:
    text = """
import socket, sys
for path in sys.argv[1:]:
    try: socket.socket(socket.AF_UNIX).connect(path)
    except OSError as error: print("no")
    else: print("reached")
"""
    with contextlib.ExitStack() as stack:
        paths = [str(place.outside / name) for name in ("granted", "other")]
        for path in paths:
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(path)
            os.chmod(path, 0o666)
            server.listen()
        command = [place.python, "-I", "-S", "-c", text, *paths]
        ended = place.run("namespaces", command, network=False, sockets=paths[:1]).runs[0]
    assert ended.stdout.split() == ["reached", "no"], ended.stderr
