"""Waiting for a sign of life of a background run."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any, Protocol

from veil.asking import number
from veil.model.errors import BadInput, Refused
from veil.model.unrolling import too_large

#: How often the output and the port are looked at (seconds).
_LOOK = 0.02
#: A pattern may take this long in one look (seconds).
_PATTERN_SECONDS = 1.0


class Awaited(Protocol):
    """What is asked of a background run (``veil.background.Handle``)."""

    @property
    def id(self) -> str: ...
    @property
    def replayed(self) -> bool: ...
    def running(self) -> bool: ...
    def wait(self) -> Any: ...
    def logs(self, *, stdout_cursor: int = 0, stderr_cursor: int = 0) -> Any: ...


def wait_for(handle: Awaited, pattern: str | None, port: int | None, timeout: float) -> None:
    """See ``Handle.wait_for``."""
    if (pattern is None) == (port is None):
        raise BadInput("pattern, port", (pattern, port), "one of the two")
    seconds = number("timeout", timeout, 0, 86_400, "seconds from 0 to 86400")
    if port is not None:
        number("port", port, 1, 65_535, "a port from 1 to 65535")
    what = f"pattern {pattern!r}" if pattern is not None else f"port {port}"
    if port is not None and handle.replayed:
        return  # it came when this was recorded, or the recording would not go on
    seen = _Output(handle, pattern) if pattern is not None else None
    deadline = time.monotonic() + seconds
    while True:
        alive = handle.running()
        if seen.matches() if seen is not None else _takes_connections(port or 0):
            return
        if not alive:
            result = handle.wait()
            raise Refused(
                f"{handle.id} ended ({result.ended}, exit {result.exit}) before {what} came",
                code="ended_early",
                id=handle.id,
                exit=result.exit,
            )
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{handle.id}: {what} did not come within {seconds:g} s (it goes on running)")
        time.sleep(_LOOK)


class _Output:
    """Looks for a pattern in what is new; the last unfinished line is looked at again."""

    def __init__(self, handle: Awaited, pattern: str) -> None:
        import regex

        expected = too_large(pattern) if isinstance(pattern, str) else "a regular expression as text"
        if expected is not None:
            raise BadInput("pattern", pattern, expected)
        try:
            self._pattern = regex.compile(pattern, regex.MULTILINE)
        except (regex.error, OverflowError, RecursionError) as error:
            raise BadInput("pattern", pattern, f"a regular expression ({error})") from None
        self._handle = handle
        self._cursors = {"stdout_cursor": 0, "stderr_cursor": 0}
        self._open = {"stdout": "", "stderr": ""}

    def matches(self) -> bool:
        logs = self._handle.logs(**self._cursors)
        self._cursors = {"stdout_cursor": logs.stdout_cursor, "stderr_cursor": logs.stderr_cursor}
        for name, new in (("stdout", logs.stdout), ("stderr", logs.stderr)):
            text = self._open[name] + new
            try:
                if text and self._pattern.search(text, timeout=_PATTERN_SECONDS):
                    return True
            except TimeoutError:
                raise Refused(
                    f"the pattern took longer than {_PATTERN_SECONDS:g} s on this output", code="pattern_timeout"
                ) from None
            self._open[name] = text[text.rfind("\n") + 1 :][-65_536:]
        return False


def _takes_connections(port: int) -> bool:
    for host in ("127.0.0.1", "::1"):
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=0.2):
            return True
    return False
