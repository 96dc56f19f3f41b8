"""Which lines of a log look like trouble.

A grammar of how tools report, in three steps: a line that tells of something else (a passed test, a commit subject, a
compile command, a listing) is silent; what only *names* trouble (identifiers, paths, counts of zero, "error handling",
quoted data) is masked; what is left is read for labels, outcome marks, counts, exit statuses, exception names, the
wordings of errno and signals, and words of failure. The vocabulary is in ``idioms``, the shapes are in ``shapes``,
a first coarse look in ``sieve``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import ModuleType

from veil.present import sieve

#: Characters of a line that are read; trouble starts a line, it does not hide in the middle of a minified one.
READ = 1_000


_digits = re.compile(r"[0-9]+")


def is_trouble(line: str) -> bool:
    """Whether a line (without its newline, made harmless by ``safe_text``) reads like a report of trouble."""
    line = line[:READ]
    return _sieved(line) and _judged(_digits.sub(_shape, line))


def find_signals(lines: Sequence[str]) -> list[int]:
    """Indices (from 0, ascending) of the lines that read like trouble."""
    judged: dict[str, bool] = {}  # logs repeat themselves but for their numbers
    found: list[int] = []
    for index, line in enumerate(lines):
        if not _sieved(line[:READ]):
            continue
        shape = _digits.sub(_shape, line[:READ])
        trouble = judged.get(shape)
        if trouble is None:
            trouble = _judged(shape)
            if len(judged) < 20_000:
                judged[shape] = trouble
        if trouble:
            found.append(index)
    return found


def _sieved(line: str) -> bool:
    """Nearly all lines of nearly all logs end here: every report has one of some fragments in it or at its start."""
    lowered = line.lower()
    return bool(sieve.GATE.search(lowered) or sieve.STARTS.match(lowered))


def _shape(number: re.Match[str]) -> str:
    """All numbers of one length are the same number, but for those that mean something: none, states of HTTP, codes."""
    digits = number.group()
    if not digits.strip("0") or (len(digits) == 3 and digits[0] in "45") or digits[:2] == "00":
        return digits
    return "1" * len(digits)


def _judged(line: str) -> bool:
    from veil.present import shapes

    found = shapes.PREFIX.match(line)
    bare = line[found.end() :] if found else line
    if shapes.SILENT_ANY.search(line) or shapes.SILENT_START.match(line):
        return False
    if found and shapes.SILENT_START.match(bare):
        return False
    return _reports(shapes, line, bare) or _says(shapes, line, bare)


def _reports(shapes: ModuleType, line: str, bare: str) -> bool:
    """Shapes that only a report has."""
    return bool(
        shapes.REPORT_START.match(bare)
        or shapes.REPORT_ANY.search(line)
        or shapes.BULLET.match(line)
        or (bare is not line and shapes.REPORT_START.match(line))
    )


def _says(shapes: ModuleType, line: str, bare: str) -> bool:
    """Labels, counts and wordings in what is left when names, quotations and counts of nothing are taken out."""
    light = shapes.NOT_REPORTED.sub("·", line)
    if shapes.COUNT.search(light) or shapes.PHRASE.search(light.lower()):
        return True
    masked = shapes.NAMES.sub("·", light)
    if shapes.LABEL.search(masked):
        return True
    if not shapes.WORD.search(masked.lower()):
        return False
    return not (shapes.QUIET_ANY.search(line) or shapes.QUIET_START.match(line) or shapes.QUIET_START.match(bare))
