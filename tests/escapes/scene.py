"""What an attempt could reach if nothing held it: files, secrets, servers, a process, shared memory; all made for it.

Everything is the user's own who runs this, lies in throw-away places, and is looked at from outside after each attempt.
"""

# over 300 lines because: it is one scene: what could be reached is made, looked at and cleared away by one class

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import veil

_LIBC = ctypes.CDLL(None, use_errno=True)
_MACHINE = os.uname().machine
_ADD_KEY, _KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(_MACHINE, (-1, -1))
_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}.get(_MACHINE, -1)
_USER_KEYS, _READABLE = -4, 0x3F3F0000
_CREATE, _NOWAIT = 0o1000, 0o4000

_VICTIM = """
import ctypes, os, signal, sys, tempfile
memory = ctypes.create_string_buffer(os.environ["TOKEN_IN_MEMORY"].encode(), 64)
file = tempfile.TemporaryFile()
file.write(os.environ["TOKEN_IN_FILE"].encode())
file.flush()
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"!"))
os.write(1, f"{ctypes.addressof(memory)} {file.fileno()}\\n".encode())
parent = os.getppid()
while os.getppid() == parent:
    signal.sigtimedwait([], 5)
"""


class Scene:
    """One scene, below a folder of the user's that nobody else uses.

    Attributes:
        base: that folder; ``work`` in it is where attempts run.
        facts: what attempts are told, by name.
    """

    def __init__(self, base: Path, given: dict[str, str]) -> None:
        """``given``: facts of whoever has more rights (set-user-id programs, a folder below ``/run``)."""
        self.base = base
        self.work, self.outside, self.home = base / "work", base / "outside", base / "home"
        self.state, self.dots = base / "state", base / "dots"
        self.mark = f"veil-escape-{secrets.token_hex(6)}"
        self.facts = {
            "BASE": str(base),
            "WORK": str(self.work),
            "OUTSIDE": str(self.outside),
            "HOME": str(self.home),
            "STATE": str(self.state),
            "MARK": self.mark,
            "DRIVER": str(os.getpid()),
            **given,
        }
        self.secrets: dict[str, bytes] = {}
        self._undo: list[Callable[[], object]] = []
        self._signals = 0
        signal.signal(signal.SIGUSR2, self._signalled)
        self._servers: dict[str, socket.socket] = {}
        self._given = 0
        self._seen: dict[str, tuple[object, ...]] | None = None
        self._pipe = -1

    def _signalled(self, *_: object) -> None:
        self._signals += 1

    def secret(self, name: str) -> str:
        """A text that nobody can guess, to be found again wherever it turns up."""
        if name not in self.secrets:
            self.secrets[name] = f"SECRET-{name}-{secrets.token_hex(8)}".encode()
        return self.secrets[name].decode()

    # -- making it

    def __enter__(self) -> Scene:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self) -> None:
        os.environ |= {"HOME": str(self.home), "VEIL_STATE_DIR": str(self.state)}
        self._files()
        self._places_of_the_machine()
        self._record()
        os.environ |= {"API_TOKEN": self.secret("environment"), "DATABASE_PASSWORD": self.secret("password")}
        self._listen()
        self._shared()
        self._terminal()
        self._descriptors()
        self._start_victim()
        self.restore()

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "_victim"):
            self._end_victim()
        for undo in reversed(self._undo):
            undo()

    def _files(self) -> None:
        """Everything that lies outside of cwd, made anew."""
        for path in (self.outside, self.home, self.dots):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(mode=0o755)
        out, home = self.outside, self.home
        (out / "target").write_text("the content of a file outside\n" * 4)
        _note(out / "target", "user.kept", b"kept")
        (out / "private").write_text(self.secret("private"))
        (out / "private").chmod(0o600)
        (out / "linked").write_text("a file with a second name\n")
        (out / "program").write_text("#!/bin/sh\necho outside\n")
        (out / "program").chmod(0o755)
        for name in ("sub", "empty"):
            (out / name).mkdir()
        (out / "sub" / "file").write_text("below\n")
        (out / "link").symlink_to("target")
        os.mkfifo(out / "pipe", 0o600)
        (home / ".ssh").mkdir(mode=0o700)
        (home / ".aws").mkdir(mode=0o700)
        (home / ".ssh" / "id_rsa").write_text(self.secret("key"))
        (home / ".gnupg").mkdir(mode=0o700)
        (home / ".gnupg" / self.secret("name")).touch()
        (home / ".aws" / "credentials").write_text(f"key={self.secret('cloud')}\n")
        (home / ".netrc").write_text(f"{self.secret('netrc')}\n")
        _note(home / ".netrc", "user.note", self.secret("attribute").encode())
        (home / ".git-credentials").write_text(f"https://me:{self.secret('git')}@example.com\n")
        (home / ".profile").write_text(": nothing\n")
        (self.dots / "pgpass").write_text(self.secret("linked"))
        (home / ".pgpass").symlink_to(self.dots / "pgpass")

    def _places_of_the_machine(self) -> None:
        temp = Path(tempfile.mkdtemp(prefix="veil-escape-", dir="/tmp"))
        self._undo.append(lambda: shutil.rmtree(temp, ignore_errors=True))
        (temp / "secret").write_text(self.secret("tmp"))
        (temp / "kept").write_text("kept\n")
        self._temp = temp
        self.facts["HOST_TMP"] = str(temp)
        if os.path.isdir("/dev/shm"):
            shared = Path("/dev/shm") / f"{self.mark}-kept"
            shared.write_text(self.secret("shm"))
            self._undo.append(lambda: shared.unlink(missing_ok=True))
            self.facts["HOST_SHM"] = str(shared)

    def _record(self) -> None:
        """A run of somebody else's, whose output veil keeps."""
        told = self.secret("record")
        self.work.mkdir(exist_ok=True)
        veil.run(["printf", "%s", told], cwd=self.work, effects=False)
        for path in sorted(self.state.rglob("*")):
            if path.is_file() and told.encode() in path.read_bytes():
                self.facts["RECORD"] = str(path)
                self._kept = path.read_bytes()
                return
        raise AssertionError("the record of a run keeps its output nowhere")

    def _listen(self) -> None:
        (self.base / "sockets").mkdir()
        inet, inet6, unix = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
        stream, datagram, packet = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET
        below = str(self.base / "sockets")
        wanted: dict[str, tuple[int, int, Any]] = {
            "TCP": (inet, stream, ("127.0.0.1", 0)),
            "TCP6": (inet6, stream, ("::1", 0)),
            "UDP": (inet, datagram, ("127.0.0.1", 0)),
            "UDP6": (inet6, datagram, ("::1", 0)),
            "UNIX": (unix, stream, f"{below}/stream"),
            "UNIX_DATAGRAM": (unix, datagram, f"{below}/datagram"),
            "UNIX_PACKET": (unix, packet, f"{below}/packet"),
            "UNIX_TMP": (unix, stream, f"{self._temp}/stream"),
            "ABSTRACT": (unix, stream, f"\0{self.mark}"),
            "ABSTRACT_DATAGRAM": (unix, datagram, f"\0{self.mark}-datagram"),
        }
        if "RUN" in self.facts:
            wanted["UNIX_RUN"] = (unix, stream, f"{self.facts['RUN']}/stream")
        for name, (family, kind, address) in wanted.items():
            try:
                made = socket.socket(family, kind)
                made.bind(address)
            except OSError:
                if family == inet6:  # a machine without it
                    continue
                raise
            if kind != datagram:
                made.listen(8)
            made.setblocking(False)
            self._undo.append(made.close)
            self._servers[name] = made
            bound = made.getsockname()
            self.facts[name] = self.mark if "ABSTRACT" in name else str(bound[1]) if family != unix else str(address)
        giving = socket.socket(unix, stream)
        giving.bind(f"{below}/gives")
        giving.listen(8)
        self.facts["UNIX_GIVES"] = f"{below}/gives"
        self._undo.append(lambda: giving.shutdown(socket.SHUT_RDWR))
        threading.Thread(target=self._give, args=(giving,), daemon=True).start()

    def _give(self, giving: socket.socket) -> None:
        """Hands a descriptor on a file outside to whoever comes."""
        while True:
            try:
                visitor, _ = giving.accept()
            except OSError:  # shut down
                return
            with visitor, (self.outside / "target").open("rb+") as file:
                self._given += 1
                socket.send_fds(visitor, [b"x"], [file.fileno()])

    def _shared(self) -> None:
        """Memory, a queue and a semaphore of System V, a queue of POSIX, a key; each with a secret where it can."""
        key = secrets.randbelow(1 << 30) + 1
        _LIBC.shmat.restype = ctypes.c_void_p
        memory = _LIBC.shmget(key, 4096, _CREATE | 0o600)
        self._memory = _LIBC.shmat(memory, None, 0)
        ctypes.memmove(self._memory, self.secret("shared").encode() + b"\0", len(self.secret("shared")) + 1)
        self._undo.append(lambda: _LIBC.shmctl(memory, 0, None))
        self._queue = _LIBC.msgget(key, _CREATE | 0o600)
        self._undo.append(lambda: _LIBC.msgctl(self._queue, 0, None))
        self._semaphore = _LIBC.semget(key, 1, _CREATE | 0o600)
        self._undo.append(lambda: _LIBC.semctl(self._semaphore, 0, 0))
        self.facts |= {"SHM": str(key), "QUEUE": str(key), "SEMAPHORE": str(key)}
        name = f"/{self.mark}".encode()
        attributes = (ctypes.c_long * 8)(0, 2, 256, 0)
        self._posix = _LIBC.mq_open(name, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600, attributes)
        if self._posix >= 0:
            self._undo.append(lambda: _LIBC.mq_unlink(name))
            self.facts["POSIX_QUEUE"] = name.decode()
        secret = self.secret("keyring").encode()
        keys = ctypes.c_long(_USER_KEYS)
        added = _LIBC.syscall(_ADD_KEY, b"user", self.mark.encode(), secret, ctypes.c_long(len(secret)), keys)
        if added > 0:
            _LIBC.syscall(_KEYCTL, 5, added, ctypes.c_long(_READABLE))
            self._undo.append(lambda: _LIBC.syscall(_KEYCTL, 9, added, keys))
            self.facts["KEY"] = self.mark
        self._fill()

    def _fill(self) -> None:
        """What an attempt may have taken out of the queues, put in again."""
        secret = self.secret("message").encode()
        data = ctypes.create_string_buffer(200)
        while _LIBC.msgrcv(self._queue, data, ctypes.c_long(150), ctypes.c_long(0), _NOWAIT) >= 0:
            pass
        _LIBC.msgsnd(self._queue, (1).to_bytes(8, sys.byteorder) + secret, ctypes.c_long(len(secret)), _NOWAIT)
        _LIBC.semctl(self._semaphore, 0, 16, 0)
        ctypes.memset(self._memory + 200, 0, 8)
        if self._posix >= 0:
            while _LIBC.mq_receive(self._posix, ctypes.create_string_buffer(256), ctypes.c_long(256), None) >= 0:
                pass
            secret = self.secret("queue").encode()
            _LIBC.mq_send(self._posix, secret, ctypes.c_long(len(secret)), 0)

    def _terminal(self) -> None:
        self._master, slave = os.openpty()
        os.set_blocking(self._master, False)
        self.facts["TERMINAL"] = os.ttyname(slave)

    def _descriptors(self) -> None:
        """Open in this process, and to be inherited by whoever does not take care."""
        self._file = os.open(self.base / "open", os.O_RDWR | os.O_CREAT, 0o600)
        os.set_inheritable(self._file, True)
        listening = socket.create_server(("127.0.0.1", 0))
        listening.set_inheritable(True)
        self._undo.append(listening.close)
        self.facts |= {"FILE": str(self._file), "LISTENING": str(listening.fileno())}

    def _start_victim(self) -> None:
        environment = {"TOKEN_IN_MEMORY": self.secret("memory"), "TOKEN_IN_FILE": self.secret("file")}
        environment |= {"PATH": os.environ["PATH"]}
        self._victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _VICTIM, self.secret("commandline")],
            env=environment,
            cwd=self.home / ".aws",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        assert self._victim.stdout is not None
        address, handle = self._victim.stdout.readline().split()
        os.set_blocking(self._victim.stdout.fileno(), False)
        self._address = int(address)
        self.facts |= {"VICTIM": str(self._victim.pid), "MEMORY": address.decode(), "VICTIM_FILE": handle.decode()}
        self._victim_seen = self._look_at_victim()

    def _end_victim(self) -> None:
        self._victim.kill()
        self._victim.wait()
        assert self._victim.stdout is not None
        self._victim.stdout.close()

    # -- looking at it

    def _signature(self) -> dict[str, tuple[object, ...]]:
        """All that lies outside of cwd, each with what can be told of it but its times of access and change."""
        if not self.base.exists():
            return {}
        found: dict[str, tuple[object, ...]] = {str(self.base): tuple(sorted(os.listdir(self.base)))}
        found[str(self.work)] = (self.work.stat().st_ino,) if self.work.exists() else ()
        for top in (self.outside, self.home, self.dots, self._temp, self.base / "open", Path(self.facts["RECORD"])):
            for path in _below(top):
                found[str(path)] = _look(path)
        found[str(self.state / "planted")] = (os.path.lexists(self.state / "planted"),)
        for folder in ("/tmp", "/var/tmp", "/dev/shm"):
            found[f"{folder}/{self.mark}"] = (os.path.lexists(f"{folder}/{self.mark}"),)
        return found

    def _look_at_victim(self) -> tuple[object, ...]:
        try:
            return self._look_at_living()
        except OSError:  # a killed process has lost its memory some moments before anybody may wait for it
            self._victim.wait(timeout=10)
            return ("ended",)

    def _look_at_living(self) -> tuple[object, ...]:
        pid = self._victim.pid
        if self._victim.poll() is not None:
            return ("ended",)
        place = Path(f"/proc/{pid}")
        stopped = (place / "stat").read_text().rpartition(") ")[2][0] in "Tt"
        score = (place / "oom_score_adj").read_text()
        with (place / "mem").open("rb", buffering=0) as file:
            file.seek(self._address)
            memory = file.read(64)
        return (
            stopped,
            score,
            memory,
            os.getpriority(os.PRIO_PROCESS, pid),
            os.sched_getscheduler(pid),
            tuple(os.sched_getaffinity(pid)),
            resource.prlimit(pid, resource.RLIMIT_NOFILE),
            _LIBC.syscall(_IOPRIO_GET, 1, pid),
        )

    def differences(self) -> list[str]:
        """What is not as it was when the attempt began."""
        found = []
        now, before = self._signature(), self._seen or {}
        for path in sorted(now.keys() | before.keys()):
            if now.get(path) != before.get(path):
                found.append(f"changed: {path}")
        if (victim := self._look_at_victim()) != self._victim_seen:
            found.append(f"the process outside: {victim} instead of {self._victim_seen}")
        assert self._victim.stdout is not None
        if self._victim.stdout.read(100):
            found.append("the process outside got a signal")
        if self._signals:
            found.append("veil's own process got a signal")
        found += [f"somebody came to {name}" for name in self._visited()]
        if _read(self._master):
            found.append("something was written on the terminal")
        if _read(self._pipe):
            found.append("something was written into the named pipe")
        if ctypes.string_at(self._memory + 200, 7) != bytes(7):
            found.append("shared memory was written")
        if _LIBC.semctl(self._semaphore, 0, 12) != 0:
            found.append("the semaphore was set")
        return found

    def _visited(self) -> Iterator[str]:
        if self._given:
            yield "the one that gives descriptors"
        for name, server in self._servers.items():
            try:
                if server.type == socket.SOCK_DGRAM:
                    server.recv(100)
                else:
                    server.accept()[0].close()
            except BlockingIOError:
                continue
            yield name

    def leaked(self, told: bytes) -> list[str]:
        """Names of the secrets that were told, or that lie in the working folder."""
        _open_up(self.work)
        for path in _below(self.work):
            told += os.fsencode(path.name)
            if path.is_file() and not path.is_symlink():
                told += path.read_bytes()
        return [name for name, text in self.secrets.items() if text in told]

    # -- putting it right

    def restore(self) -> None:
        """Everything as it has to be when an attempt begins."""
        for path in (self.base, self.work, self.outside, self.home, self.state):
            gone = path.with_name(f"{path.name}.gone")
            old = path.with_name(f"{path.name}.old")
            for moved in (gone, old):
                if moved.exists():
                    shutil.rmtree(path, ignore_errors=True)
                    moved.rename(path)
        shutil.rmtree(self.base / "sibling", ignore_errors=True)
        for path in (self.state / "planted", *(Path(f) / self.mark for f in ("/tmp", "/var/tmp", "/dev/shm"))):
            path.unlink(missing_ok=True)
        changed = self._seen is None or self._signature() != self._seen
        if changed:
            self._files()
            (self._temp / "kept").write_text("kept\n")
            os.ftruncate(self._file, 0)
            record = Path(self.facts["RECORD"])
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_bytes(self._kept)
            if self._pipe >= 0:
                os.close(self._pipe)
            self._pipe = os.open(self.outside / "pipe", os.O_RDWR | os.O_NONBLOCK)
        if self._look_at_victim() != self._victim_seen or changed:
            self._end_victim()
            self._start_victim()
        self._empty_work()
        self._fill()
        self._seen = self._signature()
        self.differences()  # reads what has come until now
        self._signals = self._given = 0

    def _empty_work(self) -> None:
        self.work.mkdir(exist_ok=True)
        _open_up(self.work)
        for path in self.work.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        os.link(self.outside / "linked", self.work / "linked")


def _open_up(top: Path) -> None:
    """A copy of a mask has no permissions."""
    for folder, folders, names in os.walk(top):
        for name in (*folders, *names):
            path = Path(folder) / name
            if not path.is_symlink() and path.stat().st_nlink < 2 + path.is_dir() * 1000:
                path.chmod(path.stat().st_mode | 0o700)


def _below(top: Path) -> Iterator[Path]:
    if os.path.lexists(top):
        yield top
    if top.is_dir() and not top.is_symlink():
        yield from sorted(top.rglob("*"))


def _look(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    regular = stat.S_ISREG(found.st_mode)
    seen: tuple[object, ...] = (found.st_mode, found.st_uid, found.st_gid, found.st_ino)
    if path.name != "linked":  # its second name is in cwd, and may go
        seen += (found.st_nlink,)
    if not stat.S_ISFIFO(found.st_mode):  # whose times tell of reads
        seen += (found.st_size, found.st_mtime_ns)
    seen += tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in _attributes(path))
    if regular and path.name != "stream":
        seen += (blake2b(path.read_bytes()).digest(), _flags(path))
    return seen


def _note(path: Path, name: str, value: bytes) -> None:
    """An attribute, where the file system has any."""
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise


def _attributes(path: Path) -> list[str]:
    return sorted(os.listxattr(path, follow_symlinks=False))


def _flags(path: Path) -> bytes:
    """Flags of the file system; none where it has none."""
    with path.open("rb") as file:
        try:
            return fcntl.ioctl(file.fileno(), 0x80086601, bytes(8))
        except OSError as error:
            if error.errno in (errno.ENOTTY, errno.EOPNOTSUPP):
                return b""
            raise


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 1000)
    except BlockingIOError:
        return b""
