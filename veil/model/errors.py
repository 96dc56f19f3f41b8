"""What veil raises. A failing command is data and raises nothing; these are refusals and bad input.

Every error has a ``code`` (stable, for programs) and ``facts`` (the values behind it); nobody parses a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class VeilError(Exception):
    """Root of everything that veil raises on purpose.

    Attributes:
        code: stable word for programs, such as ``bad_input``.
        facts: the values that led to it, JSON-ready.
    """

    code = "veil_error"

    def __init__(self, message: str, *, code: str | None = None, **facts: Any) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.facts: dict[str, Any] = facts

    def __reduce__(self) -> tuple[Any, ...]:
        # an exception is pickled as a call with its message alone; pools of processes pass them on in this way
        return _again, (type(self), self.args, self.__dict__)

    def to_dict(self) -> dict[str, Any]:
        """The error as the JSON view shows it: ``{"error": code, "message": ..., "facts": {...}}``."""
        return {"error": self.code, "message": str(self), "facts": dict(self.facts)}


def _again(kind: type[VeilError], args: tuple[Any, ...], state: dict[str, Any]) -> VeilError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class BadInput(VeilError, ValueError):
    """An argument, variable or setting that cannot mean anything. Names what came and what was expected."""

    code = "bad_input"

    def __init__(self, argument: str, got: object, expected: str, **facts: Any) -> None:
        shown = repr(got)
        if len(shown) > 200:
            shown = shown[:197] + "..."
        super().__init__(
            f"{argument}: expected {expected}, got {shown}", argument=argument, got=shown, expected=expected, **facts
        )


class Refused(VeilError):
    """veil will not do what was asked. The message gives the reason and the way out."""

    code = "refused"


class NotFound(VeilError, LookupError):
    """No such record or run. ``facts["known"]`` lists ids that exist (newest first, at most 20)."""

    code = "not_found"

    def __init__(self, what: str, known: Sequence[str] = ()) -> None:
        there = ", ".join(known) if known else "none"
        super().__init__(f"{what} is not known here; these are: {there}", what=what, known=list(known))


class NotSingle(NotFound):
    """No id was given, and not exactly one background run is alive; ``facts["known"]`` lists those that are."""

    def __init__(self, alive: Sequence[str]) -> None:
        said = f"{len(alive)} background runs are alive, so say which: {', '.join(alive)}"
        VeilError.__init__(self, said if alive else "no background run is alive", what="background run", known=[*alive])


class StoreFailed(VeilError):
    """The record store could not be read. (Trouble while writing never raises: the run falls back to memory.)"""

    code = "store_failed"


class CommandFailed(VeilError):
    """Raised only with ``check=True``: the command failed or its expectations did. ``result`` holds all of it."""

    code = "command_failed"

    def __init__(self, message: str, result: Any, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.result = result


def nearest(word: str, known: Mapping[str, object] | Sequence[str]) -> str:
    """`` (did you mean 'x'?)`` for the nearest known name, or the empty string."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
