"""Starting a command under strace, and reading what strace writes while the command runs.

strace is started so that the command stays the direct child of whoever starts it (``-DDD``): its exit code, its signal,
its process group and its resource use are its own. The tracer is a process of a session of its own; it ends when the
last process that it traces has ended. Its log goes through a fifo in a private folder and never to the disk.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import select
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from veil.host import children, processes, programs
from veil.host.processes import TAG_VARIABLE

#: Name of the variable that marks the tracer of a run (value: the tag of the run).
MARK_VARIABLE = "VEIL_TRACER"
#: How long the log may bring nothing after everybody has ended, before the tracer is given up (seconds).
SILENCE = 5.0
#: How often the log is read while the command runs (seconds): seldom, since each look takes time from the command, and
#: often enough that no pipe is full by then, which would stop it. A wide pipe holds what strace writes in 0.1 s.
_LOOK_WIDE, _LOOK_NARROW = 0.02, 0.002
_PROBE_SECONDS = 20.0
_CHUNK, _PIPE_BYTES, _F_SETPIPE_SZ = 1 << 18, 1 << 20, 1031
#: Characters that strace prints of a string that is no path (an argument of a program).
_STRING_CHARACTERS = 200
#: Signals that are told. Whoever dies of one that is not is not seen to die; these kill nobody, and are frequent.
_SIGNALS = "signal=!SIGCHLD,SIGCONT,SIGURG,SIGWINCH"
#: What changes how a program is loaded is for the command, not for strace.
_LOADER = ("LD_", "GLIBC_TUNABLES", "MALLOC_")


class Log:
    """The fifo that a tracer writes to, read by a thread of its own as long as somebody writes.

    Args:
        feed: called on that thread with each piece.
        outside: folder that it must not lie in, if that can be helped.
    """

    def __init__(self, feed: Callable[[bytes], None], outside: str) -> None:
        self._feed = feed
        self._folder = tempfile.mkdtemp(prefix="veil-trace-", dir=place(outside))
        self.path = os.path.join(self._folder, "log")
        self._ended = threading.Event()
        self._stop = False
        self._failed: Exception | None = None
        self._bytes = 0
        self._fd = -1
        try:
            os.mkfifo(self.path, 0o600)
            self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except BaseException:
            self._remove()
            raise
        self._pause = _LOOK_NARROW
        with contextlib.suppress(OSError):  # the user's share of pipe memory is used up: it works narrow, too
            fcntl.fcntl(self._fd, _F_SETPIPE_SZ, _PIPE_BYTES)
            self._pause = _LOOK_WIDE
        self._thread = threading.Thread(target=self._read, name="veil-trace", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # as many threads as this user may have
            self._remove()
            raise OSError(errno.EAGAIN, str(error)) from error

    def _read(self) -> None:
        try:
            self._pump()
        finally:
            self._ended.set()

    def _pump(self) -> None:
        poll = select.poll()
        poll.register(self._fd, 0)  # only the end wakes it: a wake for every line would slow the command down
        while not self._stop:
            over = bool(poll.poll(self._pause * 1000))
            self._take()
            if over:
                return

    def _take(self) -> None:
        while True:
            try:
                data = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                return
            self._bytes += len(data)
            if self._failed is None:
                try:
                    self._feed(data)
                except Exception as error:  # raised again by ``wait``; a log that nobody reads would stop the command
                    self._failed = error

    @property
    def begun(self) -> bool:
        """Whether anything has come at all."""
        return self._bytes > 0

    def wait(self, silence: float = SILENCE) -> bool:
        """Whether the writer has ended, waiting as long as something keeps coming. Raises what ``feed`` raised."""
        before, since = self._bytes, time.monotonic()
        while not self._ended.wait(0.05):
            if self._bytes != before:
                before, since = self._bytes, time.monotonic()
            elif time.monotonic() - since > silence:
                return False
        if self._failed is not None:
            raise self._failed
        return True

    def close(self) -> None:
        """Stop reading and take the folder away. More than once is allowed."""
        self._stop = True
        self._thread.join()
        self._remove()

    def _remove(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(self._folder)


def place(outside: str) -> str | None:
    """A folder for temporary files that does not lie in ``outside``; ``None``: the usual one, wherever it is."""
    within = os.path.realpath(outside)
    for folder in (tempfile.gettempdir(), "/dev/shm", "/run", "/var/tmp"):  # a private folder is made there
        real = os.path.realpath(folder)
        if os.path.commonpath((real, within)) != within and os.access(real, os.W_OK | os.X_OK):
            return folder
    return None


def mark(tag: str) -> str:
    """What stands in the environment of the tracer of a run and in nobody else's."""
    return f"{MARK_VARIABLE}={tag}"


def words(program: str, log: str, calls: Sequence[str], *, namespaces: bool) -> tuple[str, ...]:
    """The words that trace what follows them. ``namespaces``: tell which process a number of a pid namespace means."""
    wanted = "trace=" + ",".join(f"?{name}" for name in calls)  # ?: not every machine has every call
    return (
        *(program, "-DDD", "-f", "--seccomp-bpf", "-q", "-y", "-a", "1", "-s", str(_STRING_CHARACTERS)),
        *("-I", "3", "-e", _SIGNALS, "-e", wanted, "-o", log),
        *(("--pidns-translation",) if namespaces else ()),
    )


def environments(env: Mapping[str, str], tag: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment to start strace with, and its words that give the command ``env`` back.

    The tracer does not carry the tag of the run that it watches: it is not one of the command's processes.
    """
    mine = {name: value for name, value in env.items() if not name.startswith(_LOADER)}
    back: list[str] = []
    for name in env.keys() - mine.keys():
        back += ["-E", f"{name}={env[name]}"]
    chain = env.get(TAG_VARIABLE)
    if chain is not None:
        back += ["-E", f"{TAG_VARIABLE}={chain}"]
        outer = chain.rpartition(":")[0]
        if outer:
            mine[TAG_VARIABLE] = outer
        else:
            del mine[TAG_VARIABLE]
    former = env.get(MARK_VARIABLE)
    back += ["-E", MARK_VARIABLE if former is None else f"{MARK_VARIABLE}={former}"]
    mine[MARK_VARIABLE] = tag
    if "PATH" not in env:
        mine["PATH"] = os.defpath  # where a program is looked for without strace
        back += ["-E", "PATH"]
    return mine, tuple(back)


def executable(name: str, cwd: str, env: Mapping[str, str]) -> bool:
    """Whether there is a program of this name that may be executed, by the rules of ``execvpe``."""
    folders = [""] if "/" in name else env.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(cwd, folder, name)
        try:
            regular = stat.S_ISREG(os.stat(path).st_mode)
        except (OSError, ValueError):
            continue
        if regular and os.access(path, os.X_OK):
            return True
    return False


def end(tag: str) -> None:
    """SIGKILL the tracer of a run that does not end by itself. Only when nobody is left whom it traces: whoever is
    would find that half the system calls are missing."""
    for process in processes.bearers(mark(tag)):
        processes.send(process, signal.SIGKILL)


def collect() -> None:
    """In a process that adopts the orphans of its runs: let go of tracers that have ended."""
    if not children.PlainChild.adopting:
        return
    for process in processes.everyone().values():
        if process.parent == os.getpid() and process.zombie and processes.program(process.pid) == "strace":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def find() -> str | None:
    """The absolute path of strace, when there is one."""
    return next(programs.named("strace"), None)


def unavailable(calls: tuple[str, ...]) -> str | None:
    """Why commands cannot be traced on this machine, found by tracing one with the real words; ``None``: they can."""
    if not processes.LINUX:
        return "tracing needs Linux and strace"
    program = find()
    if program is None:
        return "strace is not installed"
    return _probe(program, calls)


@functools.lru_cache(maxsize=8)
def _probe(program: str, calls: tuple[str, ...]) -> str | None:
    told: list[bytes] = []
    log = Log(told.append, "/nowhere")
    env = {"PATH": os.environ.get("PATH", os.defpath)}
    try:
        argv = [*words(program, log.path, calls, namespaces=True), "--", "/bin/sh", "-c", "exit 7"]
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=env, start_new_session=True, timeout=_PROBE_SECONDS
        )
        whole = log.wait() if done.returncode == 7 else False
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"strace does not work here: {error}"
    finally:
        log.close()
    text = b"".join(told)
    if whole and b"execve(" in text and b"+++ exited with 7 +++" in text:
        return None
    complaint = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
    return f"strace does not work here: {complaint or f'it ended with {done.returncode}'}"
