"""The condensed view: its rules, and that every number in it is true."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.model.outcome import Stream
from veil.present.condense import View, condense
from veil.present.text import safe_text


def stream(data: bytes) -> Stream:
    return Stream(data, b"", len(data), _count(data))


def _count(data: bytes) -> int:
    return data.count(b"\n") + bool(data and not data.endswith(b"\n"))


def truncated(data: bytes, head: int, tail: int) -> Stream:
    """As capture keeps it: the first and the last bytes."""
    return Stream(data[:head], data[len(data) - tail :], len(data), _count(data))


def numbered(count: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(1, count + 1))


def view(source: Stream, *, failed: bool = False, name: str = "stdout") -> View:
    return condense(source, failed=failed, name=name, id="cmd7")


def test_long_output_says_what_is_hidden_and_how_to_see_it() -> None:
    """Case out-03."""
    seen = view(stream(numbered(5000)))
    lines = seen.text.split("\n")
    assert lines[:20] == [str(number) for number in range(1, 21)]
    assert lines[-20:] == [str(number) for number in range(4981, 5001)]
    assert len(lines) == 41
    assert "4,960 lines hidden" in lines[20]
    assert "veil detail cmd7 --selector stdout" in lines[20]
    assert "--match" in lines[20]
    assert "trouble" not in lines[20]
    assert seen == View(seen.text, 40, 5000, 4960, 0, 'sh_detail {"id": "cmd7", "selector": "stdout"}')


@pytest.mark.parametrize("count", [1, 5, 45])
def test_short_output_is_whole_without_any_notice(count: int) -> None:
    """Case out-03."""
    data = numbered(count)
    assert view(stream(data)) == View(data.decode()[:-1], count, count)


def test_one_line_more_than_short_is_condensed() -> None:
    assert view(stream(numbered(46))).hidden_lines == 6


def test_a_failed_command_shows_more_of_its_stderr() -> None:
    assert view(stream(numbered(60)), failed=True, name="stderr").hidden_lines == 0
    assert view(stream(numbered(60)), failed=True).hidden_lines == 20
    assert view(stream(numbered(60)), name="stderr").hidden_lines == 20
    seen = view(stream(numbered(100)), failed=True, name="stderr")
    assert (seen.shown_lines, seen.hidden_lines) == (60, 40)
    assert seen.text.split("\n")[-40] == "61"


def test_trouble_is_surfaced_with_its_line_number_and_not_crowded_out() -> None:
    """Case out-09."""
    log = [f"step {number}" for number in range(1, 3001)]
    log[1499] = "fatal: bad ref"
    for at in range(100, 1100, 2):
        log[at] = "0 errors"
    seen = view(stream("\n".join(log).encode()))
    assert "\n1500: fatal: bad ref\n" in seen.text
    assert "0 errors" not in seen.text
    assert "1 of the lines between looks like trouble" in seen.text
    assert (seen.shown_lines, seen.hidden_lines, seen.hidden_trouble) == (41, 2959, 1)


def test_trouble_of_one_kind_is_surfaced_once_and_the_rest_counted() -> None:
    log = ["quiet"] * 1000
    for at in range(100, 400):
        log[at] = f"connection {at} timed out"
    log[600] = "Killed"
    seen = view(stream("\n".join(log).encode()))
    assert "\n101: connection 100 timed out [and 299 like it]\n601: Killed\n" in seen.text
    assert "301 of the lines between look like trouble (2 shown here)" in seen.text
    assert (seen.hidden_trouble, seen.hidden_lines) == (301, 1000 - 42)


def test_many_kinds_of_trouble_are_bounded_with_the_first_and_the_last_kept() -> None:
    words = [f"{first}{second}" for first in "abcdefgh" for second in "abcdefgh"]
    log = ["quiet"] * 50 + [f"error: {word}" for word in words] + ["quiet"] * 50
    seen = view(stream("\n".join(log).encode()))
    surfaced = re.findall(r"^\d+: error: (\w+)$", seen.text, re.MULTILINE)
    assert surfaced == words[:15] + words[-5:]
    assert "64 of the lines between look like trouble (20 shown here)" in seen.text


def test_a_long_line_says_how_much_of_it_was_cut() -> None:
    seen = view(stream(b"z" * 300_000 + b"\nafter\n"))
    assert seen.text == "z" * 1000 + " [... 299,000 more characters]\nafter"
    assert seen.hint is not None
    assert (seen.shown_lines, seen.hidden_lines) == (2, 0)
    assert view(stream(b"z" * 1000)).hint is None


def test_a_very_long_line_is_no_hindrance() -> None:
    """Case out-08."""
    seen = view(stream(b"z" * 300_000 + b"\n" + b"after\n"))
    assert seen.text.endswith("after")


def test_the_most_a_view_can_be_is_bounded() -> None:
    log = "\n".join("error: " + chr(97 + at % 26) * 5000 + chr(97 + at // 26 % 26) for at in range(2000)).encode()
    assert len(view(stream(log)).text) < 45 * 1_100 + 20 * 400
    assert len(view(stream(log), failed=True, name="stderr").text) < 60 * 1_100 + 20 * 400


def test_behind_a_gap_lines_keep_their_numbers() -> None:
    log = [f"step {number}" for number in range(1, 10_001)]
    log[99] = "fatal: early"
    log[9899] = "fatal: late"
    data = ("\n".join(log) + "\n").encode()
    source = truncated(data, 2000, 8000)
    seen = view(source)
    assert "\n100: fatal: early\n9900: fatal: late\n" in seen.text
    assert f"{source.dropped:,} bytes of it not kept" in seen.text
    assert seen.text.endswith("\nstep 10000")
    assert (seen.total_lines, seen.shown_lines + seen.hidden_lines) == (10_000, 10_000)


def test_a_gap_between_few_lines_has_its_notice_and_no_hint() -> None:
    data = b"first\n" + b"x" * 5000 + b"\nlast\n"
    seen = view(truncated(data, 10, 10))
    assert seen.text == "first\nxxxx\n[... 4,992 bytes not kept ...]\nxxxx\nlast"
    assert (seen.total_lines, seen.shown_lines, seen.hidden_lines, seen.hint) == (3, 3, 0, None)


def test_a_gap_never_makes_false_characters() -> None:
    data = "é".encode() * 100
    seen = view(Stream(data[:5], data[-5:], len(data), 1))
    assert "\ufffd" not in seen.text
    assert seen.text == "éé\n[... 190 bytes not kept ...]\néé"


def test_binary_output_is_named_and_not_shown() -> None:
    seen = view(stream(b"\x7fELF\0\1\2\n" * 100))
    assert seen.text == "[binary: 800 bytes]"
    assert seen.shown_lines == 0
    assert seen.hint is not None
    gone = view(Stream(b"\0" * 10, b"\1" * 10, 1_000_020, 1))
    assert gone.text == "[binary: 1,000,020 bytes, 1,000,000 of them not kept]"


def test_no_output_is_no_text() -> None:
    assert view(Stream()) == View("", 0, 0)


def test_progress_frames_do_not_count_as_lines() -> None:
    seen = view(stream(b"".join(b"\r%d%%" % number for number in range(101)) + b"\ndone\n"))
    assert seen.text == "100%\ndone"


line = st.one_of(
    st.binary(max_size=8),
    st.sampled_from([b"error: a", b"Killed", b"quiet", b"0 errors", "é".encode(), b"z" * 1500, b"a\rb"]),
)
outputs = st.tuples(st.lists(line, max_size=200), st.booleans()).map(
    lambda made: b"\n".join(made[0]) + (b"\n" if made[1] and made[0] else b"")
)


@given(outputs, st.booleans(), st.sampled_from(["stdout", "stderr"]))
def test_the_numbers_add_up_for_any_output(data: bytes, failed: bool, name: str) -> None:
    source = stream(data)
    seen = view(source, failed=failed, name=name)
    assert seen.shown_lines + seen.hidden_lines == seen.total_lines == source.total_lines
    assert seen.hidden_lines >= 0
    seen.text.encode("utf-8")
    if source.binary:
        return
    if seen.hidden_lines == 0:
        assert " hidden" not in seen.text
        assert "not kept" not in seen.text
    else:
        assert f"{seen.hidden_lines:,} line" in seen.text
    if data:
        shown, written = seen.text.split("\n"), data.removesuffix(b"\n").split(b"\n")
        assert shown[0][:1000] == safe_text(written[0].removesuffix(b"\r"))[:1000]
        assert shown[-1][:1000] == safe_text(written[-1])[:1000]


@given(outputs.filter(lambda data: b"\0" not in data), st.integers(0, 600), st.integers(1, 600))
def test_the_numbers_add_up_behind_a_gap(data: bytes, head: int, tail: int) -> None:
    if head + tail >= len(data):
        return
    source = truncated(data, head, tail)
    seen = view(source)
    assert seen.shown_lines + seen.hidden_lines == seen.total_lines == _count(data)
    assert seen.hidden_lines >= 0
    if not source.binary:
        assert seen.text.count("not kept") == 1
        assert f"{source.dropped:,} byte" in seen.text
    for number in map(int, re.findall(r"^(\d+): Killed$", seen.text, re.MULTILINE)):
        assert data.split(b"\n")[number - 1].endswith(b"Killed")
