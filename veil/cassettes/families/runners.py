"""What test runners write around their results. Plain durations (``in 0.01s``) are the business of ``durations``."""

from __future__ import annotations

import re

from veil.cassettes.normalise import Context, Normaliser, erased

# the bar around pytest's summary fills the line, so its length follows that of the duration
_PYTEST_BAR = re.compile(rb"^=+ (?P<said>[^\n]* in )[0-9.]+s(?: \([0-9:]+\))? =+$", re.MULTILINE)


def _pytest_bar(text: bytes, context: Context) -> bytes:
    return _PYTEST_BAR.sub(rb"=== \g<said><duration> ===", text)


FAMILY = (
    Normaliser("pytest_bar", 1, "pytest: the summary bar, as long as its duration lets it", True, ("duration",),
               _pytest_bar),
    erased(
        "pytest_hidden",
        1,
        "pytest --durations: how many were too short to show",
        "count",
        rb"^\((?P<value>[0-9]+) durations < ",
    ),
    erased(
        "jest_times",
        1,
        "jest, mocha, vitest: the Time line, and marks that only slow tests get",
        "duration",
        rb"^Time: +(?P<value>[0-9][^\n]*)$",
        rb"(?P<value> \([0-9]+(?:\.[0-9]+)? ?m?s\))$",
        rb"^ +Duration +(?P<value>[0-9][^\n]*)$",
    ),
    erased("tap_times", 1, "TAP and node --test: duration_ms, time=", "duration",
           rb"\bduration_ms:? (?P<value>[0-9]+(?:\.[0-9]+)?)", rb"# time=(?P<value>[0-9.]+m?s)"),
    erased("go_times", 1, "go test: seconds or (cached) behind a package", "duration",
           rb"^(?:ok|FAIL|---[^\n]*) *\t[^\t\n]+\t(?P<value>[0-9.]+s|\(cached\))"),
)  # fmt: skip
