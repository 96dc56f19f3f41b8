"""Contains, matches and empty, on whole and on truncated streams."""

from __future__ import annotations

import time

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.checks import patterns
from veil.checks.stderr_contains import StderrContains
from veil.checks.stderr_empty import StderrEmpty
from veil.checks.stdout_contains import StdoutContains
from veil.checks.stdout_empty import StdoutEmpty
from veil.checks.stdout_matches import StdoutMatches
from veil.model.errors import BadInput
from veil.model.outcome import Observation, Outcome, Stream


def stream(data: bytes, head: int | None = None, tail: int = 0) -> Stream:
    """What a capture would keep of ``data``: all of it, or ``head`` and ``tail`` bytes."""
    if head is None or head + tail >= len(data):
        return Stream(data, b"", len(data), data.count(b"\n"))
    return Stream(data[:head], data[len(data) - tail :], len(data), data.count(b"\n"))


def seen(out: bytes | Stream = b"", err: bytes | Stream = b"", exit: int = 0) -> Observation:
    both = [part if isinstance(part, Stream) else stream(part) for part in (out, err)]
    return Observation(Outcome("exited", exit, stdout=both[0], stderr=both[1]))


def contains(text: object, out: bytes | Stream) -> str:
    check = StdoutContains()
    return check.judge(check.parse(text), seen(out)).status


def matches(pattern: object, out: bytes | Stream) -> str:
    check = StdoutMatches()
    return check.judge(check.parse(pattern), seen(out)).status


def test_exp_03_only_the_stream_named_is_searched() -> None:
    observation = seen(b"3 failed, 1 passed\n", b"trouble\n", exit=1)
    assert StdoutContains().judge("1 passed", observation).status == "passed"
    assert StdoutContains().judge("trouble", observation).status == "failed"
    assert StderrContains().judge("trouble", observation).status == "passed"


def test_exp_04_a_marker_in_the_dropped_middle_is_undetermined() -> None:
    numbers = b"".join(b"%d\n" % n for n in range(40_000))
    cut = stream(numbers + b"MARK\n" + numbers, 13_000, 52_000)
    assert cut.truncated
    said = StdoutContains().judge("MARK", seen(cut))
    assert said.status == "inconclusive"
    assert str(cut.dropped) in said.message
    assert contains("39999", cut) == "passed"
    assert matches("^MARK$", cut) == "inconclusive"
    assert matches("^39999$", cut) == "passed"
    assert StderrEmpty().judge(True, seen(err=cut)).status == "failed"
    assert StdoutEmpty().judge(True, seen(Stream(b"", b"", 7, 1))).status == "failed"


def test_nothing_is_found_across_the_gap() -> None:
    cut = stream(b"all is OK" + b"x" * 50 + b"AY today is fine", 9, 16)
    assert cut.data == b"all is OKAY today is fine"
    assert contains("OKAY", cut) == "inconclusive"
    assert matches("OKAY", cut) == "inconclusive"


def test_bytes_are_compared() -> None:
    assert contains("né\n", "née né\n".encode()) == "passed"
    assert contains("\udcff", b"a\xffb") == "passed"
    assert contains("\ufffd", b"a\xffb") == "failed"
    assert contains(["a", "b"], b"a") == "failed"
    assert contains(["a", "b"], b"b a") == "passed"


def test_a_miss_points_at_what_came_near() -> None:
    check = StdoutContains()
    said = check.judge("12 tests passed", seen(b"start\n11 tests passed\n\x1b[1mdone\x1b[0m\n"))
    assert said.got == "11 tests passed"
    assert "nearest line: '11 tests passed'" in said.message
    assert "another case" in check.judge("DONE", seen(b"done\n")).message
    assert "line ends" in check.judge("a\nb", seen(b"a\r\nb\r\n")).message
    assert check.judge("x", seen(b"")).message.endswith("stdout is empty")
    assert "3 bytes" in check.judge("x", seen(b"\0\1\2")).message


def test_patterns_are_searched_line_by_line() -> None:
    assert matches("^b$", b"a\nb\nc") == "passed"
    assert matches("a.b", b"a\nb") == "failed"
    assert matches("(?s)a.b", b"a\nb") == "passed"
    assert matches(["a", "^z"], b"a") == "failed"
    assert matches("\ufffd", b"\xff") == "passed"


def test_a_pattern_that_never_ends_is_inconclusive() -> None:
    begun = time.monotonic()
    said = StdoutMatches().judge(["(x+x+)+y", "x"], seen(b"x" * 4000))
    assert said.status == "inconclusive"
    assert "time limit" in said.message
    assert time.monotonic() - begun < 60


def test_a_miss_is_certain_whatever_else_was_slow() -> None:
    assert StdoutMatches().judge(["absent", "(x+x+)+y"], seen(b"x" * 4000)).status == "failed"


@pytest.mark.parametrize(("pattern", "position"), [("a(b", 3), ("a**", 2), ("[z", 2), ("*", 0), (r"\p{Foo}", 7)])
def test_an_invalid_pattern_is_refused_with_its_position(pattern: str, position: int) -> None:
    with pytest.raises(BadInput, match=r"expect\.stdout_matches") as caught:
        StdoutMatches().parse(["fine", pattern])
    assert caught.value.facts["got"] == repr(pattern)
    assert abs(caught.value.facts["position"] - position) <= 1


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{1000}){1000}){1000}",
        "(?:a{0,1000}){1000}",
        "([ab]{999}x){999}",
        "a{99999999999999999999}",
        "(a{400}b{400}){400}",
    ],
)
def test_repetitions_that_would_fill_the_memory_are_refused(pattern: str) -> None:
    with pytest.raises(BadInput, match=r"expect\.stdout_matches"):
        StdoutMatches().parse(pattern)


@pytest.mark.parametrize("pattern", ["a{1000}", r"\d{1,3}(\.\d{1,3}){3}", "[{]{2}", "{1", r"\{1000}{1000}", "x{,5}"])
def test_ordinary_repetitions_are_fine(pattern: str) -> None:
    assert StdoutMatches().parse(pattern) == pattern


def test_empty() -> None:
    assert StdoutEmpty().judge(True, seen(b"")).status == "passed"
    assert StdoutEmpty().judge(False, seen(b"")).status == "failed"
    assert StdoutEmpty().judge(False, seen(b"\n")).status == "passed"
    said = StdoutEmpty().judge(True, seen(b"one\ntwo\n"))
    assert (said.status, said.got) == ("failed", "two")


letters = st.text("ab\n", max_size=40).map(str.encode) | st.text("aé€\n", max_size=30).map(str.encode)


@settings(deadline=None)
@given(data=letters, head=st.integers(0, 20), tail=st.integers(0, 20), needle=st.text("abé€\n", min_size=1, max_size=4))
def test_contains_on_a_truncated_stream_is_never_wrong(data: bytes, head: int, tail: int, needle: str) -> None:
    cut = stream(data, head, tail)
    said = contains(needle, cut)
    truth = needle.encode() in data
    assert said == ("passed" if truth else "failed") or (said == "inconclusive" and cut.truncated)


PIECES = r"""
a b . ^ $ \b \n \A \Z [ab] a+ a*? (?=b) (?!b) (?<=a) (?<!a) \s (?:a|b) (?>a+) a++ b{2} \G (?-m:$) (?s:.)
(?s:.*) (?r) (a)?(?(1)b|a) é \X \w+ (?w) (?x) \R a{e<=1} (?:(?s:.*)b|a)
"""


@settings(max_examples=1500, deadline=None)
@given(
    data=st.text("ab \né", min_size=20, max_size=90).map(str.encode),
    head=st.integers(0, 40),
    tail=st.integers(0, 40),
    parts=st.lists(st.sampled_from(PIECES.split()), min_size=1, max_size=4),
)
def test_matches_on_a_truncated_stream_is_never_wrong(data: bytes, head: int, tail: int, parts: list[str]) -> None:
    pattern = "".join(parts)
    cut = stream(data, head, tail)
    found = patterns.find(pattern, cut, time.monotonic() + 30)
    truth = regex.search(pattern, data.decode(), regex.MULTILINE) is not None
    if found == "found":
        assert truth
    elif found == "missing":
        assert not truth
    else:
        assert cut.truncated


@pytest.mark.parametrize("pattern", ["b{2}a", "^ab", "bb$", r"\bb", "a|b"])
def test_matches_clear_of_the_gap_are_found(pattern: str) -> None:
    cut = stream(b"ab\nbba bb\n" * 100, 60, 60)
    assert patterns.find(pattern, cut, time.monotonic() + 30) == "found"
