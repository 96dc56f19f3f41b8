"""Bounded replies for stored output: pages join to the whole, numbers are true, a pattern cannot hang."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.model.errors import BadInput, Refused
from veil.present.paging import Page, boundary, page, page_lines
from veil.present.pattern import compiled, grep

anything = st.one_of(st.binary(max_size=200), st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))


@given(anything, st.integers(4, 30))
def test_pages_join_to_the_whole(data: bytes, limit: int) -> None:
    offset: int | None = 0
    pages = []
    while offset is not None:
        pages.append(page(data, offset=offset, limit=limit))
        offset = pages[-1].next
        assert len(pages[-1].data) <= limit
        assert pages[-1].total == len(data)
    assert b"".join(each.data for each in pages) == data


@given(st.text(max_size=200), st.integers(4, 30))
def test_no_page_ends_inside_a_character(text: str, limit: int) -> None:
    data = text.encode("utf-8", "replace")
    offset: int | None = 0
    joined = ""
    while offset is not None:
        piece = page(data, offset=offset, limit=limit)
        joined += piece.data.decode("utf-8")  # strict
        offset = piece.next
    assert joined == data.decode()


def test_a_page_says_where_it_stands() -> None:
    assert page(b"abcdef", offset=0, limit=4) == Page(b"abcd", 0, 4, 6)
    assert page(b"abcdef", offset=4, limit=4) == Page(b"ef", 4, None, 6)
    assert page(b"abcdef", offset=60) == Page(b"", 60, None, 6)
    assert page(b"", offset=0) == Page(b"", 0, None, 0)
    assert len(page(b"x" * 100_000).data) == 65_536


@pytest.mark.parametrize(
    ("name", "value"), [("offset", -1), ("offset", True), ("offset", 1.5), ("limit", 3), ("limit", "9")]
)
def test_numbers_that_cannot_be_meant_are_refused(name: str, value: object) -> None:
    with pytest.raises(BadInput) as refused:
        page(b"abc", **{name: value})  # type: ignore[arg-type]
    assert refused.value.facts["argument"] == name


def test_lines_by_number() -> None:
    data = b"one\ntwo\nthree\nfour"
    assert page_lines(data, 2, 3).data == b"two\nthree\n"
    assert page_lines(data, 4, 99).data == b"four"
    assert (page_lines(data, 2, 3).first, page_lines(data, 2, 3).last, page_lines(data, 2, 3).total) == (2, 3, 4)
    assert page_lines(data, 9, 12).data == b""
    assert page_lines(data, 9, 12).last == 8
    some = page_lines(data, 1, 4, limit=9)
    assert (some.data, some.last, some.next) == (b"one\ntwo\n", 2, 3)
    for wrong in ((0, 1), (3, 2)):
        with pytest.raises(BadInput):
            page_lines(data, *wrong)


def test_a_line_longer_than_a_reply_says_how_much_is_missing() -> None:
    data = b"x" * 100 + b"\nend\n"
    first = page_lines(data, 1, 2, limit=10)
    assert (first.data, first.last, first.next, first.cut) == (b"x" * 10, 1, 2, 91)


@given(anything, st.integers(4, 40))
def test_pages_of_lines_join_to_the_whole(data: bytes, limit: int) -> None:
    total = data.count(b"\n") + bool(data and not data.endswith(b"\n"))
    if not total:
        return
    joined, cut, at = b"", 0, 1
    lines: list[bytes] = []
    while True:
        piece = page_lines(data, at, total, limit)
        assert len(piece.data) <= limit
        joined += piece.data
        cut += piece.cut
        lines.append(piece.data)
        if piece.next is None:
            break
        at = piece.next
    assert len(joined) + cut == len(data)
    if not cut:
        assert joined == data


@given(st.text(min_size=4, max_size=20), st.integers(4, 60))
def test_a_boundary_is_at_most_a_character_away(text: str, end: int) -> None:
    data = text.encode("utf-8", "replace")
    end = min(end, len(data))
    cut = boundary(data + b"\n", 0, end)
    data[:cut].decode("utf-8")
    assert end - 3 <= cut <= end


def test_matches_carry_true_line_numbers() -> None:
    data = b"alpha\nbeta\ngamma ERROR\r\ndelta\nERROR last"
    found = grep(data, compiled("ERROR$"))
    assert [(match.number, match.text) for match in found.matches] == [(3, "gamma ERROR")]
    found = grep(data, compiled("(?i)error"))
    assert [match.number for match in found.matches] == [3, 5]
    assert (found.total, found.lines, found.next) == (2, 5, None)


def test_matching_text_is_made_harmless_and_capped() -> None:
    found = grep(b"\x1b[31mERROR\x07\n" + b"ERROR" + b"x" * 5000, compiled("ERROR"))
    assert [match.text for match in found.matches] == ["ERROR\\x07", "ERROR" + "x" * 995]
    assert [match.cut for match in found.matches] == [0, 4005]


def test_more_matches_than_fit_page_on() -> None:
    data = b"".join(b"hit %06d\n" % number for number in range(1000))
    at: int | None = 1
    numbers: list[int] = []
    while at is not None:
        found = grep(data, compiled("hit"), first=at, limit=1000)
        assert sum(len(match.text) for match in found.matches) <= 1000
        assert found.total == 1000 - len(numbers)
        numbers += [match.number for match in found.matches]
        at = found.next
    assert numbers == list(range(1, 1001))


@given(st.lists(st.sampled_from(["hit", "miss", "é hit", ""]), max_size=40))
def test_grep_agrees_with_a_plain_search(lines: list[str]) -> None:
    data = "\n".join(lines).encode()
    found = grep(data, compiled("hit"))
    assert [match.number for match in found.matches] == [n for n, line in enumerate(lines, 1) if re.search("hit", line)]


def test_a_pattern_that_explodes_is_stopped() -> None:
    started = time.monotonic()
    with pytest.raises(Refused) as refused:
        grep(b"a" * 200 + b"b\n", compiled("(?:a|aa)+$"), seconds=0.3)
    assert refused.value.code == "pattern_timeout"
    assert time.monotonic() - started < 20


def test_a_pattern_that_explodes_without_a_repeat_is_stopped() -> None:
    with pytest.raises(Refused):
        grep(b"a" * 50, compiled("(a|aa)" * 40 + "x"), seconds=0.3)


def test_the_time_limit_is_for_the_whole_search() -> None:
    """Lines that each take a while, none of them too long by itself."""
    with pytest.raises(Refused):
        grep((b"a" * 18 + b"b\n") * 100_000, compiled("(?:a|aa)+$"), seconds=0.3)
    begun = time.process_time()
    with pytest.raises(Refused):  # also where a few of them are all that is looked at between two other looks
        grep((b"a" * 26 + b"b\n") * 199, compiled("(a|aa)+$"), seconds=0.3)
    assert time.process_time() - begun < 10


def test_a_pattern_that_needs_very_much_memory_is_refused() -> None:
    with pytest.raises(BadInput, match="unroll"):
        compiled("((a{300}){300}){30}")
    with pytest.raises(Refused) as refused:
        grep(b"aaa\n", compiled("(?R)"), seconds=60)
    assert refused.value.code == "pattern_too_large"


@pytest.mark.parametrize("pattern", ["(", "[a-", "*", "(?P<n>x)(?P<n"])
def test_an_invalid_pattern_says_what_is_wrong(pattern: str) -> None:
    with pytest.raises(BadInput, match="regular expression"):
        compiled(pattern)
