"""The Python door to background runs: start, logs, kill, wait."""

from __future__ import annotations

import os
import signal as signals
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from veil import elsewhere, wiring
from veil.asking import number
from veil.jobs import Job
from veil.model.errors import BadInput, NotFound, VeilError
from veil.model.outcome import Outcome, Piece, read_from
from veil.model.record import Record
from veil.result import Result

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

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """The JSON view: condensed text unless ``full``. A field is present only when it says something."""
        from veil.present.poll import poll_reply

        return poll_reply(self, full=full)


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
    """A background run that this process owns. Ends with the process, however that ends (macOS: at a normal end)."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __repr__(self) -> str:
        return f"<veil.Handle {self.id} {self.status} pid={self.pid}>"

    @property
    def id(self) -> str:
        return self._job.record.id

    @property
    def pid(self) -> int | None:
        """Process id of the command; ``None`` when it could not start."""
        return self._job.pid

    @property
    def status(self) -> Status:
        if self._job.alive:
            return "running"
        return "killed" if self._job.record.status == "killed" else "exited"

    @property
    def replayed(self) -> bool:
        """It is answered from a recording: nothing really runs, and no port takes connections."""
        return self._job.replayed

    def running(self) -> bool:
        """Whether the command or anything of its tree is still to be waited for."""
        return self._job.alive

    def logs(
        self,
        *,
        stdout_cursor: int = 0,
        stderr_cursor: int = 0,
        stream: StreamName = "both",
    ) -> Logs:
        """Output since the cursors (bytes). A character that is not yet complete waits for its rest."""
        cursors = {"stdout": stdout_cursor, "stderr": stderr_cursor}
        wanted = _wanted(cursors, stream)
        job = self._job
        alive = job.alive  # asked first: what is read after is then complete when it is False
        pieces = {name: job.read(name, at) if name in wanted else Piece(b"", at, False) for name, at in cursors.items()}
        lines = {name: job.totals(name)[1] for name in cursors}
        ended = None if alive else job.record.observation.outcome
        until = time.monotonic() if alive else job.ended
        return _logs(job.record, self.status, round((until - job.began) * 1000), pieces, lines, ended)

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
        self.kill()


#: Signals that are meant to end a program.
ENDING = frozenset((signals.SIGTERM, signals.SIGINT, signals.SIGQUIT, signals.SIGHUP, signals.SIGKILL))


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


def _wanted(cursors: Mapping[str, int], stream: str) -> tuple[str, ...]:
    if stream not in ("stdout", "stderr", "both"):
        raise BadInput("stream", stream, "'stdout', 'stderr' or 'both'")
    for name, at in cursors.items():
        if isinstance(at, bool) or not isinstance(at, int) or at < 0:
            raise BadInput(f"{name}_cursor", at, "a byte cursor that an earlier call gave, 0 for the start")
    return ("stdout", "stderr") if stream == "both" else (stream,)


def _logs(
    record: Record,
    status: Status,
    ms: int,
    pieces: Mapping[str, Piece],
    lines: Mapping[str, int],
    ended: Outcome | None,
) -> Logs:
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
    )


def handle_of(id: str | None = None, *, project: str | os.PathLike[str] | None = None) -> Handle:
    """The handle of a background run of this process; ``None`` means the only live one of the project.

    Raises ``NotFound`` naming the live ones.
    """
    session = wiring.session(dict(os.environ), project)
    if id is None:
        return Handle(wiring.jobs.only(session.place))
    job = session.job(id)
    if job is None:
        raise NotFound(id, wiring.jobs.alive(session.place))
    return Handle(job)


def logs(
    id: str,
    *,
    stdout_cursor: int = 0,
    stderr_cursor: int = 0,
    stream: StreamName = "both",
    project: str | os.PathLike[str] | None = None,
) -> Logs:
    """Output of a background run since the cursors: live, whoever owns it, and from the store afterwards.

    Raises:
        NotFound, BadInput: no such run; text that is no id or no cursor.
        Refused: a process that does not serve it to others owns it (code ``runs_elsewhere``).
    """
    session = wiring.session(dict(os.environ), project)
    job = session.job(id) if isinstance(id, str) else None
    if job is not None:
        return Handle(job).logs(stdout_cursor=stdout_cursor, stderr_cursor=stderr_cursor, stream=stream)
    cursors = {"stdout": stdout_cursor, "stderr": stderr_cursor}
    wanted = _wanted(cursors, stream)
    record = elsewhere.settled(session, session.kit.store.get(id))
    if record.status == "running":
        found = elsewhere.read(session, id, cursors)
        if found is not None:
            pieces = {n: found[n][0] if n in wanted else Piece(b"", at, False) for n, at in cursors.items()}
            lines = {name: found[name][1] for name in cursors}
            return _logs(record, "running", round((time.time() - record.started) * 1000), pieces, lines, None)
        record = elsewhere.settled(session, session.kit.store.get(id))  # it may have ended between the two looks
    return stored_logs(record, cursors, stream)


def stored_logs(record: Record, cursors: Mapping[str, int], stream: str) -> Logs:
    """The same from a record. Raises ``Refused`` (``runs_elsewhere``) while another process owns the run."""
    wanted = _wanted(cursors, stream)
    if record.status == "running":
        raise elsewhere.not_served(record.id)
    outcome = record.observation.outcome
    pieces = {
        name: read_from(getattr(outcome, name), at) if name in wanted else Piece(b"", at, False)
        for name, at in cursors.items()
    }
    lines = {name: getattr(outcome, name).total_lines for name in cursors}
    status: Status = "killed" if record.status == "killed" else "exited"
    return _logs(record, status, round(outcome.seconds * 1000), pieces, lines, outcome)


def kill(
    id: str | None = None,
    signal: str | int = "SIGTERM",
    *,
    project: str | os.PathLike[str] | None = None,
) -> Killed:
    """Signal a background run, whoever owns it; ``None`` means the only live one. Idempotent after its end.

    Returns when it has ended, for signals that are to end it (SIGKILL follows after 2 s).

    Raises:
        NotFound: no such run, or not exactly one live one; names those that are alive.
        Refused: a process that does not serve it to others owns it (code ``runs_elsewhere``).
    """
    signum = signal_number(signal)
    session = wiring.session(dict(os.environ), project)
    job = session.job(id) if isinstance(id, str) else None
    if job is not None:
        return Handle(job).kill(signum)
    if id is None:
        mine, others = wiring.jobs.alive(session.place), elsewhere.alive(session)
        ids = [*mine, *(record.id for record in others)]
        if len(ids) != 1:
            raise NotFound("a single live background run", ids)
        if mine:
            return handle_of(mine[0], project=project).kill(signum)
    record = elsewhere.settled(session, session.kit.store.get(ids[0] if id is None else id))
    if record.status == "running":
        return _kill_elsewhere(session, record, signum)
    status: Status = "killed" if record.status == "killed" else "exited"
    return Killed(record.id, status, already_exited=True, exit=record.observation.outcome.exit)


#: An owner sends at once, ends the rest 2 s later and then keeps the record; longer than this it is stuck (seconds).
_OWNER_PATIENCE = 20.0
_LOOK = 0.05


def _kill_elsewhere(session: wiring.Session, record: Record, signum: int) -> Killed:
    name = signals.Signals(signum).name
    elsewhere.ask(session, record, name)
    deadline = time.monotonic() + _OWNER_PATIENCE
    while time.monotonic() < deadline:
        record = elsewhere.settled(session, session.kit.store.get(record.id))
        if record.status != "running":
            status: Status = "killed" if record.status == "killed" else "exited"
            return Killed(record.id, status, name, exit=record.observation.outcome.exit)
        if signum not in ENDING and not elsewhere.asked(session, record.id):
            return Killed(record.id, "running", name)
        time.sleep(_LOOK)
    raise VeilError(
        f"the process that owns {record.id} did not act within {_OWNER_PATIENCE:g} s", code="owner_stuck", id=record.id
    )
