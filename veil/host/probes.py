"""What this machine can do, found out by doing it. Each call looks anew, except at tracing: as a run asks, once."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from veil.host import overlay, programs, strace
from veil.host.confine.backends import BACKENDS
from veil.host.confine.base import Backend, Bounds
from veil.host.processes import LINUX
from veil.host.rooms import Rooms

_SECONDS = 20.0
_FICLONE = 0x40049409
_CLONE_NEWUSER = 0x10000000


@dataclass(frozen=True)
class Probe:
    """One thing that a machine can or cannot do.

    Attributes:
        name: what was asked. ok: whether it works here.
        found: what there is (a version, a number), or why it does not work.
        use: what veil does with it. remedy: how to get it; ``None`` when it is there.
    """

    name: str
    ok: bool
    found: str
    use: str
    remedy: str | None = None

    def to_dict(self) -> dict[str, object]:
        data: dict[str, object] = {"name": self.name, "ok": self.ok, "found": self.found, "use": self.use}
        if self.remedy is not None:
            data["remedy"] = self.remedy
        return data


def probes(state: Path | None, calls: tuple[str, ...]) -> Iterator[Probe]:
    """Everything that matters on this platform.

    Args:
        state: veil's folder, whose file system is asked as well.
        calls: names of the system calls that a trace follows.
    """
    yield _machine()
    yield _probe("bash", lambda: _version("bash", "--version"), "reads command texts (sh otherwise)", "install bash")
    yield _probe("git", lambda: _version("git", "--version"), "tells files changed in git work trees", "install git")
    if LINUX:
        yield from _linux(calls)
    yield from _sandboxes()
    yield _probe("rsync", lambda: _version("rsync", "--version"), "copies trees where nothing clones", "install rsync")
    places = [("temporary folder", Path(tempfile.gettempdir()))]
    if state is not None:
        places.append(("state folder", _standing(state)))
    for what, folder in places:
        yield _probe(
            f"reflink in the {what}",
            lambda folder=folder: _reflink(folder),  # type: ignore[misc]  # mypy cannot infer a lambda's default
            "copies trees without copying data",
            "a file system with clones: Btrfs, XFS or bcachefs on Linux, APFS on macOS",
        )


def _machine() -> Probe:
    found = f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}"
    return Probe("platform", True, found, "Linux has everything; macOS cannot follow a process that leaves its parents")


def _linux(calls: tuple[str, ...]) -> Iterator[Probe]:
    yield _probe("pidfd", _pidfd, "waits for ends and signals without hitting a stranger", "Linux 5.3 or newer")
    yield _probe(
        "user namespaces",
        _user_namespaces,
        "what an unprivileged sandbox is made of",
        "allow them (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), "
        "or in a container: --security-opt seccomp=unconfined",
    )
    yield _probe(
        "strace",
        functools.partial(_traces, calls),
        "traces what a command does",
        "install strace 5.9 or newer, and allow ptrace (in a container: --cap-add SYS_PTRACE)",
    )
    yield _probe(
        "overlay",
        _overlay,
        "previews a command without a copy of its folder",
        f"Linux 5.11 or newer; {_ALLOW}; a folder to write to (state, /var/tmp or /dev/shm) that is no overlay itself",
    )


#: Backends of the sandbox by platform: what each is for, and how to get it.
_ALLOW = "allow user namespaces (above)"
_SANDBOXES = {
    "bubblewrap": (
        True,
        "confines commands",
        f"install bubblewrap or pip install 'pytest-veil[sandbox]', and {_ALLOW}",
    ),
    "namespaces": (True, "confines commands where there is no bubblewrap", _ALLOW),
    "landlock": (True, "confines files where nothing stronger works", "Linux 6.2 with lsm=landlock"),
    "seatbelt": (False, "confines commands", "it is part of macOS; a sandboxed parent process forbids it"),
}


def _sandboxes() -> Iterator[Probe]:
    """Each backend as a run would find it: it confines a trial command, whose write outside has to be denied."""
    for name, make in BACKENDS.items():
        linux, use, remedy = _SANDBOXES.get(name, (LINUX, "confines commands", "see the documentation of this backend"))
        if linux == LINUX:
            backend = make()
            yield _probe(name, functools.partial(_confines, backend), use, remedy)
            without = Bounds("/", "/", network=False)
            yield _probe(
                f"{name} without network", functools.partial(_confines, backend, without), "no network", remedy
            )


def _confines(backend: Backend, bounds: Bounds | None = None) -> str:
    reason = backend.unavailable() or (None if bounds is None else backend.lacks(bounds))
    if reason is not None:
        raise OSError(errno.EPERM, reason)
    program = getattr(backend, "program", None)
    return "a denied write was denied" if program is None else f"a denied write was denied by {program}"


def _traces(calls: tuple[str, ...]) -> str:
    reason = strace.unavailable(calls)
    if reason is not None:
        raise OSError(errno.EPERM, reason)
    return _version("strace", "--version")


def _overlay() -> str:
    reason = OSError(errno.ENOENT, "there is no folder to write to")
    with tempfile.TemporaryDirectory(prefix="veil-probe-") as folder:
        for room in Rooms(None).places(folder):
            try:
                overlay.prepare(folder, room.path)
                overlay.prove("overlay", folder, room.path, ())
                return f"works with writes in {os.path.dirname(os.path.dirname(room.path))}"
            except OSError as error:
                reason = error
            finally:
                room.close()
    raise reason


def _probe(name: str, attempt: Callable[[], str], use: str, remedy: str) -> Probe:
    try:
        return Probe(name, True, attempt(), use)
    except OSError as error:
        why = "not installed" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        return Probe(name, False, why, use, remedy)


def _done(*argv: str) -> str:
    """Runs it; the first line that it wrote. Raises ``OSError`` with its complaint when it fails."""
    program = argv[0] if os.path.isabs(argv[0]) else next(programs.named(argv[0]), None)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "not installed")
    try:
        done = subprocess.run(
            (program, *argv[1:]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, f"{argv[0]} did not end within {_SECONDS:g} s") from None
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().split("\n")
        raise OSError(errno.EPERM, words[-1] or f"{argv[0]} ended with {done.returncode}")
    return done.stdout.split("\n", 1)[0].strip() or "works"


def _version(program: str, option: str) -> str:
    return _done(program, option)


def _pidfd() -> str:
    if not hasattr(os, "pidfd_open"):
        raise OSError(errno.ENOSYS, "this Python was built without it")
    os.close(os.pidfd_open(os.getpid()))
    return "works"


def _user_namespaces() -> str:
    # in a process of its own: a namespace cannot be left again
    program = (
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"sys.exit(os.strerror(ctypes.get_errno()) if libc.unshare({_CLONE_NEWUSER}) else 0)"
    )
    return _done(sys.executable, "-I", "-S", "-c", program)


def _standing(folder: Path) -> Path:
    """The nearest folder on the way up that is there."""
    return next(step for step in (folder, *folder.parents) if step.is_dir())


def _reflink(folder: Path) -> str:
    with tempfile.TemporaryDirectory(prefix=".veil-probe-", dir=folder) as place:
        source, target = Path(place, "source"), Path(place, "target")
        source.write_bytes(b"veil" * 1024)
        if not LINUX:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.clonefile(os.fsencode(source), os.fsencode(target), 0) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        else:
            with source.open("rb") as old, target.open("wb") as new:
                fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        return f"works in {folder}"
