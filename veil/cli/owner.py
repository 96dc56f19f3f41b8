"""The process behind ``veil start``: it holds one background run, serves it to other processes, and ends with it.

Started by ``veil.cli.starting``: one JSON order on standard input, one JSON report on standard output.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from veil import Handle, Refused, StoreFailed, VeilError, elsewhere, wiring
from veil.runner import Asked, Runner
from veil.store.live import LiveLog

#: How often requests of other processes are looked for (seconds).
_LOOK = 0.1
#: How often the record is touched, so that it stays fresh and a death can be dated (seconds).
_TOUCH = 15.0
#: Output that waits while the disk refuses it; beyond this the live log is given up (bytes).
_MAX_PENDING = 8_000_000

_asked_to_end: list[int] = []


class Feed:
    """Writes the output of the run to its live log. Called on the pumping thread: a slow disk slows the command, and
    nothing is lost or kept twice in memory."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._pending: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._log: LiveLog | None = None
        self._id = ""
        self.given_up = False

    def open(self, log: LiveLog | None, id: str) -> None:
        """From here on output can be written; ``None``: there is nowhere to write it."""
        self._log, self._id = log, id
        self._ready.set()

    def __call__(self, stream: str, data: bytes) -> None:
        self._ready.wait()
        if self._log is None or self.given_up:
            return
        pending = self._pending[stream]
        pending += data
        try:
            self._log.append(self._id, stream, bytes(pending))
        except StoreFailed:
            # tried again with what comes next; the record at the end does not depend on it
            self.given_up = len(pending) > _MAX_PENDING
        else:
            pending.clear()


def main() -> int:
    """The whole life of an owner."""
    try:
        order: dict[str, Any] = json.load(sys.stdin)
    except ValueError:
        return 125  # whoever ordered died before the order was whole
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _told)
    wiring.own_process()
    try:
        session, handle = _start(order)
    except VeilError as error:
        _report(error.to_dict())
        return 125
    report: dict[str, Any] = {"id": handle.id, "pid": handle.pid, "status": handle.status, "background": True}
    if handle.pid is None:  # it could not start, which is worth telling at once
        report = handle.wait().to_dict()
    _report(report)
    _hold(session, handle)
    if order["options"].get("left_running") != "keep":
        wiring.end_adopted()  # what a lost supervisor had adopted came to this process
    return 0


def _told(number: int, frame: FrameType | None) -> None:
    _asked_to_end.append(number)


def _report(data: dict[str, Any]) -> None:
    """Tell whoever waits, then let go of everything that ties this process to it."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(data) + "\n")
        sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _start(order: dict[str, Any]) -> tuple[wiring.Session, Handle]:
    options: dict[str, Any] = order["options"]
    if isinstance(options.get("stdin"), dict):
        options["stdin"] = base64.b64decode(options["stdin"]["base64"])
    feed = Feed()
    runner = Runner()
    asked = runner.ask(order["command"], {**options, "on_output": feed}, background=True)
    if asked.request.no_store:
        raise Refused(
            "no_store: a background run of the command line is read through the store; leave it out, or use veil.start "
            "in a program",
            code="background_incompatible",
            options=["no_store"],
        )
    try:
        handle = runner.start(order["command"], {**options, "on_output": feed})
    except BaseException:
        feed.open(None, "")
        raise
    try:
        _serve(asked, handle, feed)
    except BaseException:
        feed.open(None, "")
        handle.kill("SIGKILL")
        raise
    return asked.session, handle


def _serve(asked: Asked, handle: Handle, feed: Feed) -> None:
    live = asked.session.live
    if live is None or not handle.id.startswith("cmd"):
        why = asked.session.why or "the disk refuses"
        raise Refused(f"nothing can be kept on disk, so nobody could read this run: {why}", code="store_unavailable")
    elsewhere.announce(asked.session, handle.id, handle.pid, served=True)
    feed.open(live.limited(max(1, asked.request.limits.stream_bytes)), handle.id)


def _hold(session: wiring.Session, handle: Handle) -> None:
    """Until the run ends: carry out what is asked, and stay fresh."""
    assert session.control is not None
    touched = time.monotonic()
    every = min(_TOUCH, session.settings.record_ttl / 4)
    while handle.running():
        with contextlib.suppress(TimeoutError):
            handle.wait(_LOOK)
            break
        if _asked_to_end:
            handle.kill(_asked_to_end.pop(), wait=False)
        with contextlib.suppress(StoreFailed):  # asked again in a moment
            wanted = session.control.take(handle.id)
            if wanted is not None:
                handle.kill(wanted, wait=False)
            if time.monotonic() - touched > every:
                session.control.touch(handle.id)
                touched = time.monotonic()
    if handle.wait().stored == "disk":
        elsewhere.forget(session, handle.id)
    # otherwise the announcement stays: the next who looks sees that the owner is gone, and keeps the live output


if __name__ == "__main__":
    sys.exit(main())
