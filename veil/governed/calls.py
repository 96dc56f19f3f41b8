"""One call of the tool, understood: every input checked before anything is judged."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from veil.model.errors import BadInput, Refused

#: No call may ask for more characters of a stream than this, whatever the boundary allows.
HARD_CHARS = 10_000_000


@dataclass(frozen=True)
class Bounds:
    """The bounds of a boundary; a call can only ask for less.

    Attributes:
        timeout: seconds of a call that names none. max_timeout: seconds that no call may exceed.
        max_chars: characters of each stream that are given back.
        max_bytes: bytes of each stream; a command that writes more is killed, and its output lost.
        max_persisted: bytes of the whole result as JSON; a larger one is replaced by evidence that it was left out.
    """

    timeout: float = 60.0
    max_timeout: float = 600.0
    max_chars: int = 100_000
    max_bytes: int = 5_000_000
    max_persisted: int = 1_000_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            seconds = name in ("timeout", "max_timeout")
            kind = (int, float) if seconds else int
            low = 0 if name == "max_chars" else 1e-9
            if isinstance(value, bool) or not isinstance(value, kind) or not low <= value < 10**10:
                raise BadInput(f"bounds.{name}", value, "a number greater than 0" if seconds else "a whole number")
        if self.timeout > self.max_timeout:
            raise BadInput("bounds.timeout", self.timeout, f"at most max_timeout ({self.max_timeout:g})")


@dataclass(frozen=True)
class Call:
    """A call that can be judged. Attributes: as in ``Boundary.run``."""

    argv: tuple[str, ...]
    timeout: float
    stdout_chars: int | None
    stderr_chars: int | None


def call_of(argv: object, timeout: object, stdout_chars: object, stderr_chars: object, bounds: Bounds) -> Call:
    """Check the inputs of a call. Raises ``BadInput`` naming the one that cannot mean anything."""
    if isinstance(argv, (str, bytes)) or not isinstance(argv, Sequence) or not argv:
        raise BadInput("argv", argv, "a list of texts that is not empty (there is no shell here)")
    for at, word in enumerate(argv):
        if not isinstance(word, str) or "\0" in word:
            raise BadInput(f"argv[{at}]", word, "text without NUL")
        try:
            word.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise BadInput(f"argv[{at}]", word, "text that can be encoded (it holds a lone surrogate)") from None
    if not argv[0].strip():
        raise BadInput("argv[0]", argv[0], "the name of a program")
    return Call(
        tuple(argv),
        _timeout(timeout, bounds),
        _chars("max_stdout_chars", stdout_chars),
        _chars("max_stderr_chars", stderr_chars),
    )


def _timeout(value: object, bounds: Bounds) -> float:
    if value is None:
        return bounds.timeout
    # every comparison with NaN is false
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= bounds.max_timeout
    if not good or not math.isfinite(value):  # type: ignore[arg-type]
        raise BadInput("timeout_s", value, f"seconds greater than 0, at most {bounds.max_timeout:g}")
    return float(value)  # type: ignore[arg-type]


def _chars(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= HARD_CHARS:
        raise BadInput(name, value, f"a whole number from 0 to {HARD_CHARS}")
    return value


def shown(argv: object) -> Any:
    """An argv as the audit keeps it, whatever came."""
    if isinstance(argv, Sequence) and not isinstance(argv, (str, bytes)):
        return [word if isinstance(word, str) else repr(word) for word in argv]
    return repr(argv)


def note_of(argv: object, cwd: str, policy: str, environment: str) -> dict[str, Any]:
    """What the audit has of every request. Its effect is ``none`` until there is the line of a dispatch."""
    request = "gov-" + os.urandom(6).hex()
    facts = {"id": request, "argv": shown(argv), "cwd": cwd, "policy": policy, "environment": environment}
    return {**facts, "effect": "none"}


def refused(note: Mapping[str, Any], error: BadInput | Refused) -> dict[str, Any]:
    """The note of a request that is refused for this error, which gets the id of the request."""
    error.facts["id"] = note["id"]
    return {**note, "decision": "deny", "code": error.code, "message": str(error)}
