"""Bounded replies for stored output: pages of bytes, pages of lines. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from veil.model.errors import BadInput

#: Bytes of a reply unless told otherwise; and the least with which any character fits.
DEFAULT_LIMIT, LEAST_LIMIT = 65_536, 4


@dataclass(frozen=True)
class Page:
    """A piece of stored output.

    Attributes:
        data: the bytes themselves; all pages joined are the whole.
        offset: where they start.
        next: offset of the next page; ``None`` when this is the last.
        total: bytes there are in all.
    """

    data: bytes
    offset: int
    next: int | None
    total: int

    @property
    def text(self) -> str:
        """As UTF-8; undecodable bytes become U+FFFD. Texts of pages that follow each other join to the whole text."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Lines:
    """Some lines of stored output.

    Attributes:
        data: the lines with their ends, as many whole lines as fit (of a first line that alone is too long, its start).
        first: number of the first line, from 1.
        last: number of the last line in ``data``; ``first - 1`` when there is none.
        next: number of the next line asked for that did not fit; ``None`` when all of them are here.
        total: lines there are in all.
        cut: bytes left out of the one line that was too long.
    """

    data: bytes
    first: int
    last: int
    next: int | None
    total: int
    cut: int = 0

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


def page(data: bytes, *, offset: int = 0, limit: int = DEFAULT_LIMIT) -> Page:
    """One page of ``data``, at most ``limit`` bytes, never ending inside a UTF-8 character.

    Args:
        offset: 0 or the ``next`` of an earlier page, in bytes; past the end gives an empty last page.
        limit: bytes, 4 or more.

    Raises:
        BadInput: a number that cannot be meant.
    """
    whole_number("offset", offset, 0)
    whole_number("limit", limit, LEAST_LIMIT)
    total = len(data)
    end = min(offset + limit, total)
    if end < total:
        end = boundary(data, offset, end)
    return Page(data[offset:end], offset, end if end < total else None, total)


def page_lines(data: bytes, first: int, last: int, limit: int = DEFAULT_LIMIT) -> Lines:
    """Lines ``first`` to ``last`` (from 1, both included), at most ``limit`` bytes of them.

    Raises:
        BadInput: a number that cannot be meant, or ``last`` before ``first``.
    """
    whole_number("first", first, 1)
    whole_number("last", last, first)
    whole_number("limit", limit, LEAST_LIMIT)
    total = data.count(b"\n") + bool(data and not data.endswith(b"\n"))
    if first > total:
        return Lines(b"", first, first - 1, None, total)
    start = _line_start(data, first)
    end, number = start, first - 1
    while number < min(last, total):
        at = data.find(b"\n", end)
        after = len(data) if at < 0 else at + 1
        if after - start > limit:
            break
        end, number = after, number + 1
    if number >= first:
        return Lines(data[start:end], first, number, number + 1 if number < min(last, total) else None, total)
    at = data.find(b"\n", start)
    after = len(data) if at < 0 else at + 1
    cut_at = boundary(data, start, start + limit)
    return Lines(
        data[start:cut_at], first, first, first + 1 if first < min(last, total) else None, total, after - cut_at
    )


def boundary(data: bytes, start: int, end: int) -> int:
    """The nearest place at or before ``end`` (and behind ``start``) that is not inside a UTF-8 character."""
    for back in range(min(4, end - start)):
        byte = data[end - back]
        if byte & 0xC0 != 0x80:
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            # Continuation bytes that no character asked for are not UTF-8 anyway: any cut among them will do.
            return end - back if length > back else end
    return end


def _line_start(data: bytes, number: int) -> int:
    at = 0
    for _ in range(number - 1):
        at = data.find(b"\n", at) + 1
    return at


def whole_number(argument: str, got: object, least: int) -> None:
    if not isinstance(got, int) or isinstance(got, bool) or got < least:
        raise BadInput(argument, got, f"a whole number, {least} or more")
