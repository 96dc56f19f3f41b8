"""Background runs that this process owns, and what is said of any of them: handles, logs, what a kill did."""

from __future__ import annotations

import os
import signal as signals
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from veil.asking import number
from veil.elsewhere import not_served
from veil.host.orders import ENDING
from veil.jobs import Job
from veil.model.errors import BadInput
from veil.model.outcome import Outcome, Piece
from veil.model.record import Record
from veil.result import Result

if TYPE_CHECKING:
    from veil.details import Detail, Selector

Status = Literal["running", "exited", "killed"]
StreamName = Literal["stdout", "stderr", "both"]


@dataclass(frozen=True)
class Logs:
    """Output of a background run since a cursor, and how it stands.

    Attributes:
        stdout_bytes, stderr_bytes: new bytes since the cursors asked for; empty for a stream not asked for.
        stdout_cursor, stderr_cursor: pass these back to get only what is new.
        gap: bytes between the cursor asked for and what is shown were dropped at the byte cap.
        stdout_lines, stderr_lines: lines of the whole stream so far.
        exit, signal: ``None`` while it runs.
        owner_lost: that the process that owned the run died, and the run with it, in words; else ``None``.
        full: ``to_dict()`` does not condense.
    """

    id: str
    status: Status
    running_ms: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    stdout_cursor: int
    stderr_cursor: int
    stdout_lines: int
    stderr_lines: int
    gap: bool = False
    exit: int | None = None
    signal: str | None = None
    owner_lost: str | None = None
    full: bool = False

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    def to_dict(self, *, full: bool | None = None) -> dict[str, Any]:
        """The JSON view: condensed text unless ``full`` (default: as the logs were asked for).

        A field is present only when it says something; ``full`` shows at most 64 KB of a stream and sets its cursor
        behind that.
        """
        from veil.present.poll import poll_reply

        return poll_reply(self, full=self.full if full is None else full)


@dataclass(frozen=True)
class Killed:
    """What ``kill`` did. ``already_exited``: it had ended before, nothing was signalled."""

    id: str
    status: Status
    signal: str | None = None
    already_exited: bool = False
    exit: int | None = None

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"id": self.id, "status": self.status}
        if self.already_exited:
            data["already_exited"] = True
        if self.signal is not None:
            data["signal"] = self.signal
        if self.exit is not None:
            data["exit"] = self.exit
        return data


class Handle:
    """A background run that this process owns. Ends with the process, however that ends (macOS: at a normal end).

    In a fork of the process it is another's while it goes on: ``Refused`` (code ``runs_elsewhere``).
    """

    def __init__(self, job: Job) -> None:
        self._made, self._owner = job, os.getpid()

    @property
    def _job(self) -> Job:
        # a fork has neither the thread that sees it through nor its child: whoever waited here would wait for ever
        if self._is_anothers():
            raise not_served(self.id)
        return self._made

    def _is_anothers(self) -> bool:
        return self._owner != os.getpid() and self._made.alive

    def __repr__(self) -> str:
        status = "of another process" if self._is_anothers() else self.status
        return f"<veil.Handle {self.id} {status} pid={self.pid}>"

    @property
    def id(self) -> str:
        return self._made.record.id

    @property
    def pid(self) -> int | None:
        """Process id of the command; ``None`` when it could not start."""
        return self._made.pid

    @property
    def status(self) -> Status:
        if self._job.alive:
            return "running"
        return "killed" if self._job.record.status == "killed" else "exited"

    @property
    def replayed(self) -> bool:
        """It is answered from a recording: nothing really runs, and no port takes connections."""
        return self._made.replayed

    def running(self) -> bool:
        """Whether the command or anything of its tree is still to be waited for."""
        return self._job.alive

    def logs(
        self,
        *,
        stdout_cursor: int = 0,
        stderr_cursor: int = 0,
        stream: StreamName = "both",
        full: bool = False,
    ) -> Logs:
        """Output since the cursors (bytes). A character that is not yet complete waits for its rest.

        Args:
            full: what ``to_dict()`` then shows is not condensed.
        """
        cursors = {"stdout": stdout_cursor, "stderr": stderr_cursor}
        wanted = wanted_streams(cursors, stream)
        job = self._job
        alive = job.alive  # asked first: what is read after is then complete when it is False
        pieces = {name: job.read(name, at) if name in wanted else Piece(b"", at, False) for name, at in cursors.items()}
        lines = {name: job.totals(name)[1] for name in cursors}
        ended = None if alive else job.record.observation.outcome
        until = time.monotonic() if alive else job.ended
        found = logs_of(job.record, self.status, round((until - job.began) * 1000), pieces, lines, ended)
        return replace(found, full=full)

    def detail(self, selector: Selector = "full", match: str | None = None) -> Detail:
        """``veil.detail`` of this run: while it goes on, with what it has written so far."""
        from veil.details import checked

        return checked(self._job.so_far(), selector, match)

    def kill(self, signal: str | int = "SIGTERM", *, wait: bool = True) -> Killed:
        """Signal the whole tree. After SIGTERM (also INT, QUIT, HUP) SIGKILL follows in 2 s when it does not end.

        Args:
            wait: return when it has ended (only for signals that are to end it); ``False`` returns at once.

        Idempotent: after its end this signals nobody and says ``already_exited``.
        """
        signum = signal_number(signal)
        if not self._job.kill(signum):
            self._job.wait()
            return Killed(self.id, self.status, already_exited=True, exit=self._job.record.observation.outcome.exit)
        if wait and signum in ENDING:
            self._job.wait()
        name = signals.Signals(signum).name
        ended = not self._job.alive
        return Killed(self.id, self.status, name, exit=self._job.record.observation.outcome.exit if ended else None)

    def wait(self, timeout: float | None = None) -> Result:
        """Its result, on which anything can be judged.

        Args:
            timeout: seconds; ``None`` waits for ever.

        Raises:
            TimeoutError: it still runs after ``timeout``; it goes on.
        """
        if timeout is not None:
            timeout = number("timeout", timeout, 0, threading_max(), "seconds, 0 or more")
        record = self._job.wait(timeout)
        if record is None:
            raise TimeoutError(f"{self.id} still runs after {timeout} s (it goes on)")
        return Result(record)

    def wait_for(self, *, pattern: str | None = None, port: int | None = None, timeout: float = 30.0) -> Logs:
        """Wait until a line of its output matches a pattern, or until a port of this machine takes connections.

        Args:
            pattern: regular expression, searched in stdout and stderr.
            port: TCP port on 127.0.0.1 or ::1.
            timeout: seconds.

        Returns:
            The logs as they stand then.

        Raises:
            TimeoutError: neither came in time; the run goes on.
            Refused: it ended first (code ``ended_early``).
        """
        from veil.waiting import wait_for

        wait_for(self, pattern, port, timeout)
        return self.logs()

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._is_anothers():
            self.kill()


def threading_max() -> float:
    import threading

    return threading.TIMEOUT_MAX


def signal_number(signal: str | int) -> int:
    """15 for ``"SIGTERM"``, ``"TERM"`` or 15. Raises ``BadInput``."""
    if isinstance(signal, str):
        name = signal.upper()
        found = getattr(signals, name if name.startswith("SIG") else f"SIG{name}", None)
        if isinstance(found, signals.Signals):
            return int(found)
    elif not isinstance(signal, bool) and isinstance(signal, int) and signal in set(signals.Signals):
        return signal
    raise BadInput("signal", signal, "a signal such as 'SIGTERM', 'SIGINT' or 'SIGKILL'")


def wanted_streams(cursors: Mapping[str, int], stream: str) -> tuple[str, ...]:
    """Names of the streams that are asked for. Raises ``BadInput``, also for what is no cursor."""
    if stream not in ("stdout", "stderr", "both"):
        raise BadInput("stream", stream, "'stdout', 'stderr' or 'both'")
    for name, at in cursors.items():
        if isinstance(at, bool) or not isinstance(at, int) or at < 0:
            raise BadInput(f"{name}_cursor", at, "a byte cursor that an earlier call gave, 0 for the start")
    return ("stdout", "stderr") if stream == "both" else (stream,)


def logs_of(
    record: Record,
    status: Status,
    ms: int,
    pieces: Mapping[str, Piece],
    lines: Mapping[str, int],
    ended: Outcome | None,
) -> Logs:
    """The logs from their parts; ``ended`` is ``None`` while it runs."""
    return Logs(
        id=record.id,
        status=status,
        running_ms=ms,
        stdout_bytes=pieces["stdout"].data,
        stderr_bytes=pieces["stderr"].data,
        stdout_cursor=pieces["stdout"].cursor,
        stderr_cursor=pieces["stderr"].cursor,
        stdout_lines=lines["stdout"],
        stderr_lines=lines["stderr"],
        gap=pieces["stdout"].gap or pieces["stderr"].gap,
        exit=None if ended is None else ended.exit,
        signal=None if ended is None else ended.signal,
        owner_lost=record.observation.findings.notes.get("owner_lost"),
    )
