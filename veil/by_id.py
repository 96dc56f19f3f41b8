"""The Python door to background runs by id, whoever owns them: logs and kill."""

from __future__ import annotations

import os
import signal as signals
import time
from collections.abc import Mapping
from dataclasses import replace

from veil import elsewhere, wiring
from veil.background import (
    Handle,
    Killed,
    Logs,
    Status,
    StreamName,
    logs_of,
    signal_number,
    wanted_streams,
)
from veil.host.orders import ENDING
from veil.model.errors import NotFound, NotSingle, VeilError
from veil.model.outcome import Piece, read_from
from veil.model.record import Record


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
    full: bool = False,
    project: str | os.PathLike[str] | None = None,
) -> Logs:
    """Output of a background run since the cursors: live, whoever owns it, and from the store afterwards.

    Args:
        full: what ``to_dict()`` then shows is not condensed.

    Raises:
        NotFound, BadInput: no such run; text that is no id or no cursor.
        Refused: a process that does not serve it to others owns it (code ``runs_elsewhere``).
    """
    found = _logs(id, stdout_cursor, stderr_cursor, stream, project)
    return replace(found, full=full)


def _logs(
    id: str, stdout_cursor: int, stderr_cursor: int, stream: StreamName, project: str | os.PathLike[str] | None
) -> Logs:
    session = wiring.session(dict(os.environ), project)
    job = session.job(id) if isinstance(id, str) else None
    if job is not None:
        return Handle(job).logs(stdout_cursor=stdout_cursor, stderr_cursor=stderr_cursor, stream=stream)
    cursors = {"stdout": stdout_cursor, "stderr": stderr_cursor}
    wanted = wanted_streams(cursors, stream)
    record = elsewhere.settled(session, session.kit.store.get(id))
    if record.status == "running":
        found = elsewhere.read(session, id, cursors)
        if found is not None:
            pieces = {n: found[n][0] if n in wanted else Piece(b"", at, False) for n, at in cursors.items()}
            lines = {name: found[name][1] for name in cursors}
            return logs_of(record, "running", round((time.time() - record.started) * 1000), pieces, lines, None)
        record = elsewhere.settled(session, session.kit.store.get(id))  # it may have ended between the two looks
    return stored_logs(record, cursors, stream)


def stored_logs(record: Record, cursors: Mapping[str, int], stream: str) -> Logs:
    """The same from a record. Raises ``Refused`` (``runs_elsewhere``) while another process owns the run."""
    wanted = wanted_streams(cursors, stream)
    if record.status == "running":
        raise elsewhere.not_served(record.id)
    outcome = record.observation.outcome
    pieces = {
        name: read_from(getattr(outcome, name), at) if name in wanted else Piece(b"", at, False)
        for name, at in cursors.items()
    }
    lines = {name: getattr(outcome, name).total_lines for name in cursors}
    status: Status = "killed" if record.status == "killed" else "exited"
    return logs_of(record, status, round(outcome.seconds * 1000), pieces, lines, outcome)


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
            raise NotSingle(ids)
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
