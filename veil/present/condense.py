"""The condensed view of a stream: short output whole, long output as its two ends and what looks like trouble between.

Every number in it is exact: lines carry the numbers they have in what the command wrote, also behind a gap of bytes
that were not kept (those are counted from the end), and a notice stands only where something is really hidden.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from veil.model.outcome import Stream
from veil.present.text import gap_notice, safe_text

#: Lines shown whole; of a longer stream its first and last lines.
WHOLE, HEAD, TAIL = 45, 20, 20
#: For stderr of a failed command: what went wrong stands at its end.
FAILED_WHOLE, FAILED_TAIL = 60, 40
#: Characters of a line, and of a line that was surfaced from between.
LINE, SURFACED_LINE = 1_000, 300
#: Lines surfaced: the first ones (causes come first) and the last.
FIRST_SURFACED, LAST_SURFACED = 15, 5

_digits = re.compile(r"\d+")


@dataclass(frozen=True)
class View:
    """A stream for a context window.

    Attributes:
        text: lines joined by newlines, without one at the end; harmless to terminals.
        shown_lines: lines of the stream that appear in it (a line whose end was cut counts).
        total_lines: lines that the command wrote.
        hidden_lines: lines that do not appear; ``shown_lines + hidden_lines == total_lines``.
        hidden_trouble: how many of the lines between the two ends look like trouble, surfaced or not.
        hint: how the JSON tool is asked for what was left out and is kept; ``None`` when there is no such thing.
    """

    text: str
    shown_lines: int
    total_lines: int
    hidden_lines: int = 0
    hidden_trouble: int = 0
    hint: str | None = None


def condense(stream: Stream, *, failed: bool, name: str, id: str) -> View:
    """The view of one stream.

    Args:
        failed: the command failed; its stderr is then shown at greater length.
        name: ``stdout`` or ``stderr``.
        id: id of the record, for the pointer to the rest.
    """
    if stream.total_bytes == 0:
        return View("", 0, 0)
    if stream.binary:
        return _binary(stream, name, id)
    kept = _Kept(stream)
    whole, tail = (FAILED_WHOLE, FAILED_TAIL) if failed and name == "stderr" else (WHOLE, TAIL)
    if len(kept.lines) <= whole:
        shown = kept.show(0, len(kept.lines))
        between: list[str] = []
        hidden_trouble = 0
        visible = set(kept.numbers)
    else:
        shown, between, hidden_trouble, visible = _ends(kept, len(kept.lines) - tail, name, id)
    hint = _hint(name, id) if between or any(len(line) > LINE for line in kept.lines) else None
    return View(
        text="\n".join(shown),
        shown_lines=len(visible),
        total_lines=kept.total,
        hidden_lines=kept.total - len(visible),
        hidden_trouble=hidden_trouble,
        hint=hint,
    )


class _Kept:
    """The kept lines with their true numbers (from 1). ``gap``: the index before which bytes are missing."""

    def __init__(self, stream: Stream) -> None:
        self.dropped = stream.dropped
        if not stream.truncated:
            self.lines = _lines(stream.data)
            self.gap = -1
            self.total = len(self.lines)
            self.numbers: Sequence[int] = range(1, self.total + 1)
            return
        head, tail = map(_lines, stream.edges)
        self.lines = head + tail
        self.gap = len(head)
        self.total = max(stream.total_lines, len(head), len(tail))
        after = self.total - len(tail)
        self.numbers = [*range(1, len(head) + 1), *range(after + 1, self.total + 1)]

    def show(self, start: int, end: int) -> list[str]:
        """Lines ``start`` to ``end`` as they are shown, with the notice of the gap where it falls between them."""
        if start < self.gap < end or (self.gap in (start, end) and end - start == len(self.lines)):
            before = [_capped(line, LINE) for line in self.lines[start : self.gap]]
            after = [_capped(line, LINE) for line in self.lines[self.gap : end]]
            return [*before, gap_notice(self.dropped), *after]
        return [_capped(line, LINE) for line in self.lines[start:end]]


def _ends(kept: _Kept, end: int, name: str, id: str) -> tuple[list[str], list[str], int, set[int]]:
    """Both ends with the pointer and the surfaced lines between: all of it, the between alone, the count of trouble,
    and the numbers of the lines that appear."""
    from veil.present.signals import find_signals  # short output has no need of it

    middle = kept.lines[HEAD:end]
    found = [HEAD + index for index in find_signals(middle)]
    surfaced = _surfaced(kept, found)
    visible = {*kept.numbers[:HEAD], *kept.numbers[end:], *(number for number, _ in surfaced)}
    hidden = kept.total - len(visible)
    pointer = f"[... {_count(hidden, 'line')} hidden"
    if found:
        pointer += f", {len(found):,} of the lines between {'looks' if len(found) == 1 else 'look'} like trouble"
        pointer += f" ({len(surfaced)} shown here)" if len(surfaced) < len(found) else " (shown here)"
    if HEAD <= kept.gap <= end:
        pointer += f"; {_count(kept.dropped, 'byte')} of it not kept"
    pointer += f"; see them: veil detail {id} --selector {name} [--match REGEX] ...]"
    between = [pointer, *(text for _, text in surfaced)]
    if surfaced:
        between.append("[...]")
    return [*kept.show(0, HEAD), *between, *kept.show(end, len(kept.lines))], between, len(found), visible


def _surfaced(kept: _Kept, found: Sequence[int]) -> list[tuple[int, str]]:
    """Number and text of the lines to surface: the first of each kind (digits apart), and not too many kinds."""
    kinds: dict[str, list[int]] = {}
    for index in found:
        kinds.setdefault(_digits.sub("#", kept.lines[index][:LINE]), []).append(index)
    groups = list(kinds.values())
    if len(groups) > FIRST_SURFACED + LAST_SURFACED:
        groups = groups[:FIRST_SURFACED] + groups[-LAST_SURFACED:]
    shown = []
    for first, *like_it in groups:
        text = f"{kept.numbers[first]}: {_capped(kept.lines[first], SURFACED_LINE)}"
        shown.append((kept.numbers[first], text + (f" [and {len(like_it):,} like it]" if like_it else "")))
    return shown


def _binary(stream: Stream, name: str, id: str) -> View:
    text = f"[binary: {_count(stream.total_bytes, 'byte')}"
    if stream.truncated:
        text += f", {stream.dropped:,} of them not kept"
    return View(text + "]", 0, stream.total_lines, stream.total_lines, 0, _hint(name, id))


def _hint(name: str, id: str) -> str:
    return f'sh_detail {{"id": "{id}", "selector": "{name}"}}'


def _lines(data: bytes) -> list[str]:
    if not data:
        return []
    lines = safe_text(data).split("\n")
    if not lines[-1] and data.endswith(b"\n"):
        lines.pop()
    return lines


def _capped(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    return f"{line[:most]} [... {_count(len(line) - most, 'more character')}]"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
