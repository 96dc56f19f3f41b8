"""What this machine can do, found out by doing it. Nothing is remembered: each call looks anew."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from veil.host.processes import LINUX

_SECONDS = 20.0
#: From the kernel's headers; the number is the same on every architecture.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_VERSION = 444, 1
_FICLONE = 0x40049409
_CLONE_NEWUSER = 0x10000000
_BWRAP = "--ro-bind / / --dev /dev --proc /proc --unshare-user --unshare-pid --unshare-ipc --unshare-uts"
_BWRAP += " --die-with-parent --new-session"


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


def probes(state: Path | None) -> Iterator[Probe]:
    """Everything that matters on this platform. ``state``: veil's folder, whose file system is asked as well."""
    yield _machine()
    yield _probe("bash", lambda: _version("bash", "--version"), "reads command texts (sh otherwise)", "install bash")
    yield _probe("git", lambda: _version("git", "--version"), "tells files changed in git work trees", "install git")
    if LINUX:
        yield from _linux()
    else:
        yield _probe(
            "sandbox-exec",
            lambda: _done("/usr/bin/sandbox-exec", "-p", "(version 1)(allow default)", "/usr/bin/true"),
            "confines commands",
            "it is part of macOS; a sandboxed parent process forbids it",
        )
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


def _linux() -> Iterator[Probe]:
    yield _probe("pidfd", _pidfd, "waits for ends and signals without hitting a stranger", "Linux 5.3 or newer")
    yield _probe(
        "user namespaces",
        _user_namespaces,
        "what an unprivileged sandbox is made of",
        "allow them (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), "
        "or in a container: --security-opt seccomp=unconfined",
    )
    install = "install bubblewrap, and allow user namespaces"
    yield _probe("bubblewrap", lambda: _bubblewrap(), "confines commands", install)
    yield _probe("bubblewrap without network", lambda: _bubblewrap("--unshare-net"), "confines the network", install)
    yield _probe("Landlock", _landlock, "confines files where nothing stronger works", "Linux 5.13 with lsm=landlock")
    yield _probe(
        "strace",
        lambda: (_done("strace", "-f", "-o", "/dev/null", "true"), _version("strace", "--version"))[1],
        "traces what a command does",
        "install strace, and allow ptrace (in a container: --cap-add SYS_PTRACE)",
    )


def _probe(name: str, attempt: Callable[[], str], use: str, remedy: str) -> Probe:
    try:
        return Probe(name, True, attempt(), use)
    except OSError as error:
        why = "not installed" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        return Probe(name, False, why, use, remedy)


def _done(*argv: str) -> str:
    """Runs it; the first line that it wrote. Raises ``OSError`` with its complaint when it fails."""
    if shutil.which(argv[0]) is None:
        raise FileNotFoundError(errno.ENOENT, "not installed")
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, f"{argv[0]} did not end within {_SECONDS:g} s") from None
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().split("\n")
        raise OSError(errno.EPERM, words[-1] or f"{argv[0]} ended with {done.returncode}")
    return done.stdout.split("\n", 1)[0].strip() or "works"


def _version(program: str, option: str) -> str:
    return _done(program, option)


def _bubblewrap(*more: str) -> str:
    _done("bwrap", *_BWRAP.split(), *more, "true")
    return _version("bwrap", "--version")


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


def _landlock() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_LANDLOCK_VERSION))
    if abi < 0:
        number = ctypes.get_errno()
        raise OSError(number, "not in this kernel" if number == errno.ENOSYS else f"disabled ({os.strerror(number)})")
    return f"ABI {abi}"


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
