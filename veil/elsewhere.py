"""Background runs across processes: who owns one, what it has written so far, and asking its owner for a signal.

Every background run whose record is on disk is announced in the project's database. One whose owner also *serves* it
(``veil start`` leaves such an owner) can be read and signalled from any process. An owner that died without a word is
told by its identity, and then the record is closed with what is known.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from veil import wiring
from veil.host import locks, processes
from veil.jobs import with_streams
from veil.model.errors import NotFound, Refused, StoreFailed
from veil.model.outcome import Outcome, Piece, Stream
from veil.model.record import Record
from veil.store.live import LiveLog, Running

#: How long a start waits for another start of the same project before it goes ahead (seconds).
_TURN = 5.0
_SERVED, _HELD = "served ", "held "
_NAMES = ("stdout", "stderr")
#: More than any live log keeps of a stream.
_ALL = 1 << 40

Owner = Literal["alive", "dead", "unknown"]


def announce(session: wiring.Session, id: str, child: int | None, *, served: bool) -> None:
    """Let other processes know that this one owns the run. ``served``: and that it writes its live log and carries out
    what is asked. Raises ``StoreFailed`` when the disk refuses."""
    if session.control is not None and id.startswith("cmd"):
        word = _SERVED if served else _HELD
        session.control.announce(id, os.getpid(), child or 0, word + processes.identity(os.getpid()))


def _owner(run: Running | None) -> Owner:
    if run is None:
        return "unknown"
    same = processes.is_same(run.owner, run.identity.partition(" ")[2])
    return "unknown" if same is None else "alive" if same else "dead"


def _served(run: Running | None) -> bool:
    return run is not None and run.identity.startswith(_SERVED)


def _state(session: wiring.Session, id: str) -> Running | None:
    if session.control is None or not id.startswith("cmd"):
        return None
    return session.control.state(id)


def settled(session: wiring.Session, record: Record) -> Record:
    """The record itself, or its end when it says ``running`` but its owner is gone."""
    if record.status != "running" or session.job(record.id) is not None:
        return record
    if _owner(_state(session, record.id)) != "dead":
        return record
    # an owner keeps the final record before it goes: asked again, so that a good end is not taken for a death
    record = session.kit.store.get(record.id)
    return _closed(session, record) if record.status == "running" else record


def _closed(session: wiring.Session, record: Record) -> Record:
    """The end of a run whose owner died: the run's supervisor killed it then, and nobody was left to write it down.

    A disk that refuses does not keep it from being told.
    """
    assert session.live is not None
    assert session.control is not None
    with contextlib.suppress(StoreFailed):
        for name in _NAMES:
            session.live.end(record.id, name)  # nothing is held back any more
    streams = _streams(session.live, record.id)
    seen = session.control.touched(record.id)
    outcome = Outcome(
        ended="signaled",
        exit=137,
        signal="SIGKILL",
        seconds=max(0.0, (seen or record.started) - record.started),
        survivors="none" if processes.LINUX else "unknown",
        stdout=streams["stdout"],
        stderr=streams["stderr"],
    )
    notes = {
        "owner_lost": "the process that owned this run died, and the run was killed with it; "
        "its output is what had been written down, its duration the last sign of life"
    }
    found = replace(record.observation.findings, notes={**record.observation.findings.notes, **notes})
    observation = replace(record.observation, outcome=outcome, findings=found)
    kept = session.kit.store.update(replace(record, observation=observation, status="killed"))
    forget(session, record.id)
    return kept


def forget(session: wiring.Session, id: str) -> None:
    """The final record is kept: its live log and the announcement go. Never raises because of the disk: what stays is
    swept by ``veil gc`` and counts for nothing, since the record says that the run is over."""
    if session.live is not None and session.control is not None:
        with contextlib.suppress(StoreFailed):
            session.live.drop(id)
            session.control.withdraw(id)


def _streams(live: LiveLog, id: str) -> dict[str, Stream]:
    found = {}
    for name in _NAMES:
        part = live.read(id, name, 0, _ALL)
        head, tail = (b"", part.data) if part.gap else (part.data, b"")
        found[name] = Stream(head, tail, part.total_bytes, part.total_lines)
    return found


def current(session: wiring.Session, record: Record) -> Record:
    """``settled``, and while it runs here or under an owner that serves it, with the output so far."""
    record = settled(session, record)
    if record.status != "running":
        return record
    job = session.job(record.id)
    if job is not None:
        return job.so_far()
    if session.live is None or not _served(_state(session, record.id)):
        return record
    try:
        return with_streams(record, _streams(session.live, record.id))
    except NotFound:  # it ended between the two looks
        return session.kit.store.get(record.id)


def read(session: wiring.Session, id: str, cursors: Mapping[str, int]) -> dict[str, tuple[Piece, int]] | None:
    """New output of a served run by stream: the piece, and how many lines there are in all. ``None`` when nobody serves
    this run (any more)."""
    if session.live is None or not _served(_state(session, id)):
        return None
    found = {}
    try:
        for name, cursor in cursors.items():
            part = session.live.read(id, name, cursor, _ALL)
            found[name] = (Piece(part.data, part.next_cursor, part.gap > 0), part.total_lines)
    except NotFound:
        return None
    return found


def ask(session: wiring.Session, record: Record, signal: str) -> None:
    """Ask the owner of a running record to send a signal (its name). Raises ``Refused`` (``runs_elsewhere``)."""
    if session.control is not None and _served(_state(session, record.id)):
        if session.control.request(record.id, signal):
            return
        if session.kit.store.get(record.id).status != "running":
            return  # it ended at this very moment
    raise not_served(record.id)


def asked(session: wiring.Session, id: str) -> bool:
    """Whether a request of anybody still waits to be carried out."""
    run = _state(session, id)
    return run is not None and run.requested is not None


def not_served(id: str) -> Refused:
    """The refusal of what only the owning process can do."""
    return Refused(
        f"{id} belongs to another process, which alone can read and signal it until it ends "
        "(runs of `veil start` can be reached from everywhere)",
        code="runs_elsewhere",
        id=id,
    )


def alive(session: wiring.Session) -> list[Record]:
    """Background runs of the project that other processes own and that go on, newest first."""
    found = []
    for run in [] if session.control is None else session.control.all():
        if run.owner == os.getpid() and session.job(run.id) is not None:
            continue
        try:
            record = settled(session, session.kit.store.get(run.id))
        except NotFound:
            continue
        if record.status == "running":
            found.append(record)
    return found


@contextlib.contextmanager
def turn(session: wiring.Session, limit: int) -> Iterator[None]:
    """Start one more background run inside: one process of the project at a time, so that the limit is exact.

    Raises ``Refused`` (``too_many_background``) when as many are alive as may be, whoever owns them.
    """
    if session.folder is None or session.state is None:
        yield  # nothing on disk: nobody else's runs can be known
        return
    place = locks.enter(session.state / "locks", str(session.folder), _TURN)
    try:
        ids = wiring.jobs.alive(session.place)
        with contextlib.suppress(StoreFailed):  # unreadable: nobody else can be counted
            ids += [record.id for record in alive(session)]
        if len(ids) >= limit:
            raise Refused(
                f"{len(ids)} background runs are alive, which is the limit; end one, or raise VEIL_MAX_BG_PROCS",
                code="too_many_background",
                alive=ids,
                limit=limit,
            )
        yield
    finally:
        place.leave()
