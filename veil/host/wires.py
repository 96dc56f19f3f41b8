"""The pipes of one command: what goes in, what comes out, and what of it is kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select

from veil.host.capture import Ring, Sink
from veil.host.orders import Controls
from veil.host.processes import LINUX
from veil.model.errors import Refused
from veil.model.plan import Launch

_CHUNK = 1 << 18
_F_SETPIPE_SZ = 1031
_PIPE_USUAL = 1 << 16
_PIPE_BYTES = 1 << 20


class Wires:
    """Descriptors, rings and the poll set of one command. Used on one thread, but for the rings.

    Attributes:
        poll: what the pump waits on; it adds descriptors of its own.
        open: whether somebody still holds an output pipe.
    """

    def __init__(self, launch: Launch, controls: Controls) -> None:
        limit, make = launch.limits.stream_bytes, controls.filters
        self.stdout = Ring(limit, make() if make else None)
        self.stderr = Ring(limit, make() if make else None)
        self.poll = select.poll()
        self._listener = controls.listener
        self._merged = launch.merge_stderr
        self._sinks: dict[int, Sink] = {}
        self._widened: set[int] = set()
        self._stdin = -1
        self._unsent = memoryview(launch.stdin or b"")
        self._null = launch.stdin is None
        self._opened: list[int] = []
        self._reads: tuple[int, int] = (-1, -1)

    @property
    def open(self) -> bool:
        return bool(self._sinks)

    def lay(self) -> tuple[int, int, int]:
        """Make the pipes; the command's ends of stdin, stdout and stderr. ``connect`` or ``give_up`` must follow."""
        try:
            return self._lay()
        except OSError as error:
            raise Refused(
                f"no pipes for the command: {error.strerror} (close files, or raise the limit of open files)",
                code="no_descriptors",
                errno=error.errno,
            ) from error

    def _lay(self) -> tuple[int, int, int]:
        out_read, out_write = self._pipe()
        err_read, err_write = (out_read, out_write) if self._merged else self._pipe()
        self._reads = (out_read, err_read)
        if self._null:
            stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            self._opened.append(stdin)
        else:
            stdin, self._stdin = self._pipe()
        return stdin, out_write, err_write

    def _pipe(self) -> tuple[int, int]:
        read, write = os.pipe()
        self._opened += (read, write)
        return read, write

    def give_up(self) -> None:
        """Nothing was started."""
        for fd in self._opened:
            os.close(fd)
        self._opened, self._stdin = [], -1
        self.stdout.finish()
        self.stderr.finish()

    def connect(self) -> None:
        """The command has its ends: let go of them, and wait on ours."""
        out_read, err_read = self._reads
        self._sinks[out_read] = Sink("stdout", self.stdout, self._listener)
        if err_read != out_read:
            self._sinks[err_read] = Sink("stderr", self.stderr, self._listener)
        mine = {*self._sinks, self._stdin}
        for fd in self._opened:
            if fd not in mine:
                os.close(fd)
        self._opened = []
        for fd in self._sinks:
            os.set_blocking(fd, False)
            self.poll.register(fd, select.POLLIN)
        if self._stdin >= 0:
            os.set_blocking(self._stdin, False)
            self.poll.register(self._stdin, select.POLLOUT)

    def serve(self, fd: int) -> bool:
        """Do what a ready descriptor is for; ``False`` when it is none of these."""
        if fd in self._sinks:
            self._read(fd)
        elif fd == self._stdin and fd >= 0:
            self._write()
        else:
            return False
        return True

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if data:
            if len(data) >= _PIPE_USUAL and LINUX and fd not in self._widened:
                # only for those who fill one: a wide pipe costs as much as a twentieth of a short run
                self._widened.add(fd)
                with contextlib.suppress(OSError):  # the user's share of pipe memory is used up: it works narrow, too
                    fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)
            self._sinks[fd].write(data)
            return
        self.poll.unregister(fd)
        self._sinks.pop(fd).close()
        os.close(fd)

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._stdin, self._unsent[:65536]) :] if self._unsent else self._unsent
        except BlockingIOError:
            return
        except BrokenPipeError:  # it ended, or closed its input, without reading all: that is its right
            self._unsent = memoryview(b"")
        if not self._unsent:
            self.poll.unregister(self._stdin)
            os.close(self._stdin)
            self._stdin = -1

    def drain(self) -> None:
        """Take what is still in the pipes, without waiting for anybody."""
        for fd, sink in list(self._sinks.items()):
            budget = _PIPE_BYTES * 2  # a survivor may write on for ever
            with contextlib.suppress(BlockingIOError):
                while budget > 0 and (data := os.read(fd, _CHUNK)):
                    sink.write(data)
                    budget -= len(data)
            sink.close()

    def close(self) -> None:
        """Let go of everything; nothing more comes."""
        for fd in (*self._sinks, self._stdin):
            if fd >= 0:
                os.close(fd)
        self._sinks.clear()
        self._stdin = -1
        self.stdout.finish()
        self.stderr.finish()
