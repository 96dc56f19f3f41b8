"""Tells from system calls what a command did."""

from __future__ import annotations

from veil.layers.base import Entered
from veil.model.outcome import Findings
from veil.model.plan import Launch, Place, Plan, Touched

#: Characters of events kept of one attempt, about.
MOST_BYTES = 200_000


class TraceLayer:
    """Grants ``Trace``. Fails open: where nothing can be traced the run goes on without, and says why.

    The one note that it leaves is ``trace``: ``counts`` and ``events`` by kind, ``truncated`` and ``gaps`` when there
    is something to say, or ``unavailable`` alone. With retries it is the note of the last attempt; the paths that it
    puts down for whoever tells the changes (``Launch.touched``) are those of all.

    Args:
        most_bytes: characters of events kept of one attempt, about.
    """

    name = "trace"
    place = Place.TRACE
    needed = False
    supersedes: tuple[type, ...] = ()

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        from veil.layers.tracing import attempt

        if plan.request.left_running == "keep":
            return "what is left running would be traced for as long as it lives"
        return attempt.unavailable()

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        """Yields the command under strace, or as it is when that cannot be."""
        from veil.layers.tracing import attempt

        marks = launch.touched if launch.touched is not None else Touched()
        why = attempt.hindered(launch)
        if why is None:
            try:
                tracing = attempt.Attempt(launch, plan, marks, self.most_bytes)
            except OSError as error:
                why = f"there is no place for its log: {error.strerror}"
        if why is not None:
            marks.complete = False
            yield launch
            return Findings(notes={"trace": {"unavailable": why}})
        try:
            outcome = yield tracing.launch()
            return Findings(notes={"trace": tracing.finish(outcome)})
        finally:
            tracing.close()
