"""Background runs: a foreground run that has not been waited for, on one thread of its own."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from veil import pipeline
from veil.host.orders import ENDING, Controls, Orders
from veil.kit import Kit
from veil.model.command import Request
from veil.model.errors import NotSingle, Refused, VeilError
from veil.model.outcome import Observation, Outcome, Piece, Stream, read_from
from veil.model.record import Record
from veil.model.verdict import Verdict


class Beside(Protocol):
    """Tells runs in the same tree of a background run until it is closed."""

    def close(self) -> None: ...


class Job:
    """One background run. Every method may be called from any thread."""

    def __init__(
        self,
        kit: Kit,
        request: Request,
        environment: Mapping[str, str],
        mark: Callable[[str], Beside],
        listener: Callable[[str, bytes], None] | None = None,
    ) -> None:
        self._kit = kit
        self._orders = Orders()
        self._mark = mark
        self._controls = Controls(listener=listener, orders=self._orders)
        self._started = threading.Event()
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._begun: pipeline.Begun | None = None
        self._pid: int | None = None
        self._killed: str | None = None
        self.record: Record
        self.began = time.monotonic()
        self.ended = 0.0
        # a daemon thread: the interpreter's end must not wait for a server that never stops; see Jobs.close
        self._thread = threading.Thread(
            target=self._live, args=(request, environment), name="veil-background", daemon=True
        )
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def _live(self, request: Request, environment: Mapping[str, str]) -> None:
        try:
            with_mark = self._mark(request.command.cwd)
            try:
                begun = self._begin(request, environment)
                if begun.running.pid is not None or begun.running.replayed:
                    self._started.set()  # else it could not start, and is over before anybody may look at it
                seen = begun.running.wait()
            finally:
                with_mark.close()
            self.ended = time.monotonic()
            status = "killed" if self._killed is not None else "exited"
            final = pipeline.draft(begun, seen, Verdict(), status)
            store = self._kit.memory if self.record.stored == "memory-only" else self._kit.store
            self.record = store.update(
                replace(final, id=self.record.id, stored=self.record.stored, why_memory=self.record.why_memory)
            )
            self._begun = None  # the record has the output; the rings would be a second copy of it
        except BaseException as error:  # handed to whoever waits; this thread has nobody to raise to
            self._error = error
            self.ended = self.ended or time.monotonic()
            self._broke(error)
        finally:
            self._started.set()
            self._done.set()
            self._orders.close()

    def _begin(self, request: Request, environment: Mapping[str, str]) -> pipeline.Begun:
        begun = pipeline.begin(self._kit, request, environment, self._controls)
        store = self._kit.memory if request.no_store else self._kit.store
        try:
            self.record = store.reserve(pipeline.draft(begun, pipeline.UNENDED, Verdict(), "running"))
        except BaseException:
            self._orders.cancel()
            begun.running.wait()
            raise
        self.began = time.monotonic()
        self._begun, self._pid = begun, begun.running.pid
        return begun

    def _broke(self, error: BaseException) -> None:
        """Whoever reads the record hears of it as well: nothing runs any more that could be waited for."""
        begun, self._begun = self._begun, None
        if begun is None or not isinstance(error, VeilError):
            return
        outcome = Outcome("spawn_failed", 126, spawn_error=str(error), seconds=self.ended - self.began)
        record = replace(self.record, observation=Observation(outcome), status="exited")
        store = self._kit.memory if record.stored == "memory-only" else self._kit.store
        with contextlib.suppress(VeilError):  # the store may be what broke
            self.record = store.update(record)

    @property
    def pid(self) -> int | None:
        return self._pid

    @property
    def replayed(self) -> bool:
        """Nothing really runs."""
        return self._begun is not None and self._begun.running.replayed

    @property
    def alive(self) -> bool:
        return not self._done.is_set()

    def read(self, stream: str, cursor: int) -> Piece:
        """Output from a byte cursor on."""
        begun = self._begun
        if begun is not None:
            return begun.running.read(stream, cursor)
        return read_from(getattr(self.record.observation.outcome, stream), cursor)

    def totals(self, stream: str) -> tuple[int, int]:
        """Bytes and lines so far."""
        begun = self._begun
        if begun is not None:
            return begun.running.totals(stream)
        told: Stream = getattr(self.record.observation.outcome, stream)
        return told.total_bytes, told.total_lines

    def so_far(self) -> Record:
        """Its record: while it runs, with what it has written until now."""
        ended = not self.alive  # asked first: the record is then complete
        record = self.record
        return record if ended else with_streams(record, {name: self._stream(name) for name in ("stdout", "stderr")})

    def _stream(self, name: str) -> Stream:
        first = self.read(name, 0)
        # the first bytes come by themselves when others behind them were dropped, and the newest then at the next look
        later = self.read(name, first.cursor)
        head, tail = first.data, later.data
        if len(head) + len(tail) == later.cursor:  # nothing was dropped
            head, tail = head + tail, b""
        return Stream(head, tail, later.cursor, self.totals(name)[1])

    def kill(self, signum: int = signal.SIGTERM) -> bool:
        """Signal the whole tree; ``False`` when it had already ended. Does not wait."""
        if not self.alive:
            return False
        if signum in ENDING:  # any other leaves a run that ends by itself ``exited``
            self._killed = self._killed or signal.Signals(signum).name
        self._orders.send(signum)
        return True

    def wait(self, timeout: float | None = None) -> Record | None:
        """Its record once it has ended, or ``None`` after ``timeout`` seconds. Raises what went wrong inside veil."""
        if not self._done.wait(timeout):
            return None
        if self._error is not None:
            raise self._error
        return self.record


def with_streams(record: Record, streams: Mapping[str, Stream]) -> Record:
    """The same with other output."""
    outcome = replace(record.observation.outcome, stdout=streams["stdout"], stderr=streams["stderr"])
    return replace(record, observation=replace(record.observation, outcome=outcome))


class Jobs:
    """The background runs that this process owns."""

    def __init__(self) -> None:
        # an id alone is not enough: every project counts from cmd1
        self._jobs: dict[tuple[str, str], Job] = {}
        self._starting = 0
        self._lock = threading.Lock()
        self._hooked = False
        self._owner = os.getpid()

    def start(
        self,
        kit: Kit,
        request: Request,
        environment: Mapping[str, str],
        mark: Callable[[str], Beside],
        listener: Callable[[str, bytes], None] | None = None,
        *,
        place: Callable[[str], str],
    ) -> Job:
        """Begin a background run. ``place``: where the record of an id lies, since every project counts from cmd1.

        Raises:
            Refused: as many are alive as may be (code ``too_many_background``).
        """
        self._forget_inherited()
        with self._lock:
            live = sum(job.alive for job in self._jobs.values()) + self._starting
            if live >= kit.max_background:
                raise Refused(
                    f"{live} background runs are alive, which is the limit; end one, or raise VEIL_MAX_BG_PROCS",
                    code="too_many_background",
                    alive=self._alive(),
                    limit=kit.max_background,
                )
            self._starting += 1
            if not self._hooked:
                atexit.register(self.close)
                self._hooked = True
        try:
            job = Job(kit, request, environment, mark, listener)
        finally:
            with self._lock:
                self._starting -= 1
        with self._lock:
            self._forget_ended()
            self._jobs[place(job.record.id), job.record.id] = job
        return job

    def _forget_inherited(self) -> None:
        """A fork inherits the book but neither the threads nor the children: to it these runs are another's."""
        if os.getpid() != self._owner:
            # a lock that another thread held at the fork stays held for ever
            self._owner, self._lock, self._jobs, self._starting = os.getpid(), threading.Lock(), {}, 0

    def _forget_ended(self) -> None:
        """Jobs that have ended are found in the store; only some of the newest stay here for quick polling."""
        ended = [key for key, job in self._jobs.items() if not job.alive]
        for key in ended[:-32]:
            del self._jobs[key]

    def get(self, id: str, place: str) -> Job | None:
        self._forget_inherited()
        with self._lock:
            return self._jobs.get((place, id))

    def alive(self, place: Callable[[str], str] | None = None) -> list[str]:
        """Ids of the live ones, oldest first; those of one project, or all."""
        self._forget_inherited()
        with self._lock:
            return self._alive(place)

    def _alive(self, place: Callable[[str], str] | None = None) -> list[str]:
        living = [key for key, job in self._jobs.items() if job.alive]
        return [name for at, name in living if place is None or place(name) == at]

    def only(self, place: Callable[[str], str]) -> Job:
        """The one that is alive. Raises ``NotFound`` naming the live ones unless there is exactly one."""
        alive = self.alive(place)
        job = self.get(alive[0], place(alive[0])) if len(alive) == 1 else None
        if job is None:
            raise NotSingle(alive)
        return job

    def close(self) -> None:
        """End all of them and wait until their records are kept."""
        self._forget_inherited()
        with self._lock:
            jobs = [job for job in self._jobs.values() if job.alive]
        for job in jobs:
            job.kill(signal.SIGTERM)
        for job in jobs:
            with contextlib.suppress(VeilError):  # one that broke is over as well, and its record tells of it
                job.wait()
