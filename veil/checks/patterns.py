"""Regular expressions of a caller: refused before the run when they are wrong, and unable to hang it.

The syntax is that of the PyPI package ``regex`` (its default version, close to ``re``). A pattern is *searched*, and
``^`` and ``$`` match at every line (``MULTILINE``); ``.`` does not match a newline unless the pattern says ``(?s)``. A
line that ends in ``\\r\\n`` keeps its ``\\r``: write ``\\r?$`` where that matters.

Two limits keep a pattern harmless: a search has a time limit, and counted repetitions (``{1000}`` inside ``{1000}``),
which the engine unrolls when it compiles, may not add up to more than ``MAX_UNROLLED`` elements.
"""

from __future__ import annotations

import re
import time
from typing import Any, Literal

from veil.model.errors import BadInput
from veil.model.outcome import Stream
from veil.model.unrolling import too_large

#: Seconds that all patterns of one check may take together.
SECONDS = 1.0
#: Characters next to a gap that no match may use: an anchor, a word border or a cut character there would lie.
MARGIN = 8

Found = Literal["found", "missing", "unknown", "slow"]

# What can look at text beyond the end (or before the start) of its match, or can give up a match because of it. With
# these, a match next to a gap does not prove that the whole text matches. Seen as plain text: a false alarm only costs
# certainty on a truncated stream.
_EITHER = r"\(\*|\(\?\(|\(\?[a-zA-Z-]*[rx]|\(\?(?:R|&|P>|[0-9+-])|\{[^}]*<"  # verbs, conditions, calls, fuzzy
_AHEAD = re.compile(r"\(\?[=!>]|[*+?}]\+|" + _EITHER)
_BEHIND = re.compile(r"\(\?<[=!]|\\G|" + _EITHER)


def parsed(argument: str, pattern: str) -> str:
    """The pattern itself when it can be used. Raises ``BadInput`` with ``facts["position"]`` when it cannot."""
    expected = too_large(pattern)
    if expected is not None:
        raise BadInput(argument, pattern, expected)
    import regex

    try:
        _compiled(pattern)
    except regex.error as trouble:
        # the attributes of the error are there at run time; its type stubs do not name them
        where, reason = getattr(trouble, "pos", None) or 0, getattr(trouble, "msg", str(trouble))
        raise BadInput(
            argument, pattern, f"a valid regular expression ({reason} at position {where})", position=where
        ) from None
    except (ValueError, OverflowError, RecursionError, MemoryError, KeyError, IndexError, TypeError) as trouble:
        reason = str(trouble) or type(trouble).__name__
        raise BadInput(argument, pattern, f"a regular expression that can be compiled ({reason})") from None
    return pattern


def find(pattern: str, stream: Stream, until: float) -> Found:
    """Whether the stream that the command wrote matches, as far as the kept bytes can tell.

    ``until``: ``time.monotonic()`` at which to stop. Never raises: trouble of the engine is ``unknown``.
    """
    import regex

    try:
        if not stream.truncated:
            return "found" if _search(pattern, stream.text, 0, until) else "missing"
        head, tail = stream.head.decode("utf-8", "replace"), stream.tail.decode("utf-8", "replace")
        if not _AHEAD.search(pattern):
            match = _search(pattern, head, 0, until)
            if match is not None and match.end() <= len(head) - MARGIN:
                return "found"
        if not _BEHIND.search(pattern) and len(tail) > MARGIN and _search(pattern, tail, MARGIN, until):
            return "found"
    except TimeoutError:
        return "slow"
    except (regex.error, RecursionError, MemoryError):
        return "unknown"
    return "unknown"


def _compiled(pattern: str) -> Any:
    import regex

    return regex.compile(pattern, regex.MULTILINE | regex.VERSION0)


def _search(pattern: str, text: str, start: int, until: float) -> Any:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    # concurrent: other threads go on (they drain pipes) while a search runs
    return _compiled(pattern).search(text, start, timeout=left, concurrent=True)
