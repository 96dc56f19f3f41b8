"""Which lines of a log look like trouble.

A grammar of how tools report, in three steps: a line that tells of something else (a passed test, a commit subject, a
compile command, a listing) is silent; what only *names* trouble (identifiers, paths, counts of zero, "error handling",
quoted data) is masked; what is left is read for labels, outcome marks, counts, exit statuses, exception names, the
wordings of errno and signals, and words of failure. The vocabulary is in ``idioms``, the shapes are in ``shapes``.
"""

from __future__ import annotations

from collections.abc import Sequence

from veil.present import shapes

#: Characters of a line that are read; trouble starts a line, it does not hide in the middle of a minified one.
READ = 1_000


def is_trouble(line: str) -> bool:
    """Whether a line (without its newline, made harmless by ``safe_text``) reads like a report of trouble."""
    line = line[:READ]
    # Nearly all lines of nearly all logs end here: one search for fragments that every report has at least one of.
    lowered = line.lower()
    if not shapes.GATE.search(lowered) and not shapes.STARTS.match(lowered):
        return False
    found = shapes.PREFIX.match(line)
    bare = line[found.end() :] if found else line
    if shapes.SILENT_ANY.search(line) or shapes.SILENT_START.match(line):
        return False
    if found and shapes.SILENT_START.match(bare):
        return False
    return _reports(line, bare) or _says(line, bare)


def _reports(line: str, bare: str) -> bool:
    """Shapes that only a report has."""
    return bool(
        shapes.REPORT_START.match(bare)
        or shapes.REPORT_ANY.search(line)
        or shapes.BULLET.match(line)
        or (bare is not line and shapes.REPORT_START.match(line))
    )


def _says(line: str, bare: str) -> bool:
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


def find_signals(lines: Sequence[str]) -> list[int]:
    """Indices (from 0, ascending) of the lines that read like trouble."""
    gate, starts = shapes.GATE.search, shapes.STARTS.match
    seen: dict[str, bool] = {}  # logs repeat themselves
    found: list[int] = []
    for number, line in enumerate(lines):
        lowered = line[:READ].lower()
        if not gate(lowered) and not starts(lowered):
            continue
        known = seen.get(line)
        if known is None:
            known = is_trouble(line)
            if len(seen) < 10_000:
                seen[line] = known
        if known:
            found.append(number)
    return found
