"""Text for views: what a terminal would finally show, with nothing in it that acts."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.model.outcome import Stream
from veil.present.text import gap_notice, safe_text

ESC = "\x1b"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("long line\rshort\n", "shortline\n"),  # as on a terminal: what is not painted over stays
        ("100%\r", "100%"),
        ("done\r\r\n", "done\n"),
        (f"working...\r{ESC}[Kdone\n", "done\n"),
        (f"working...{ESC}[2K\rdone\n", "done\n"),
        (f"{ESC}[2K{ESC}[1Gok\n", "ok\n"),
        (f"[    ]\r[{ESC}[2Cx\n", "[  x ]\n"),
        ("abc\x08\x08XY\n", "aXY\n"),
        ("N\x08NA\x08AM\x08ME\x08E\n", "NAME\n"),
        ("_\x08u_\x08n\n", "un\n"),
        ("|\x08/\x08-\x08\\\n", "\\\n"),
        (f"{ESC}[1;31mred{ESC}[0m\n", "red\n"),
        (f"{ESC}[38;2;1;2;3mtrue{ESC}[m\n", "true\n"),
        (f"x{ESC}(B{ESC}[m\n", "x\n"),
        (f"{ESC}]8;;https://example.com{ESC}\\link{ESC}]8;;{ESC}\\\n", "link\n"),
        (f"{ESC}]0;title\x07text\n", "text\n"),
        (f"{ESC}]52;c;ZXZpbA==\x07\n", "\\x1b]52;c;ZXZpbA==\\x07\n"),  # would set the clipboard
        (f"{ESC}[6n\n", "\\x1b[6n\n"),  # would make the terminal type
        (f"{ESC}Pq#0{ESC}\\\n", "\\x1bPq#0\\x1b\\\n"),
        (f"{ESC}c\n", "\\x1bc\n"),
        ("\x9b31m\n", "\\x9b31m\n"),
        ("bell\x07 nul\x00\n", "bell\\x07 nul\\x00\n"),
        ("\u202eevil\u202c \u2066x\u2069\n", "\\u202eevil\\u202c \\u2066x\\u2069\n"),
        ("one\u2028two\n", "one\\u2028two\n"),
        ("a\U000e0041b\n", "a\\U000e0041b\n"),
        ("\udcff\n", "\\udcff\n"),
        ("é 日本 👩‍👩‍👧\n", "é 日本 👩‍👩‍👧\n"),
        (f"{ESC}[{ESC}[1m31mx\n", "x\n"),  # a sequence put together by taking another one out
    ],
)
def test_what_is_shown(raw: str, shown: str) -> None:
    assert safe_text(raw) == shown


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert safe_text(b"caf\xe9\n") == "caf\ufffd\n"


def test_a_truncated_stream_says_what_is_missing() -> None:
    stream = Stream(b"first\nse", b"ond half\n", 1_000_017, 9)
    assert safe_text(stream) == f"first\nse\n{gap_notice(1_000_000)}\nond half\n"
    assert "1,000,000 bytes" in gap_notice(1_000_000)


def test_the_stored_bytes_are_untouched() -> None:
    stream = Stream(b"\x1b[31mred\r\n", b"", 10, 1)
    safe_text(stream)
    assert stream.data == b"\x1b[31mred\r\n"


pieces = st.one_of(
    st.text(max_size=5),
    st.sampled_from(
        ["\x1b", "[", "]", "\x1b[2K", "\x1b[3C", "\x1b[m", "\x1b]8;;x\x07", "\r", "\n", "\r\n", "\x08", "0;", "\u202e"]
    ),
)


@given(st.lists(pieces).map("".join))
def test_nothing_left_can_act(raw: str) -> None:
    shown = safe_text(raw)
    assert all(unicodedata.category(character) not in ("Cc", "Cs") for character in re.sub("[\t\n]", "", shown))
    assert not re.search("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]", shown)
    assert shown.count("\n") == raw.count("\n")
    assert safe_text(shown) == shown
    shown.encode("utf-8")


@given(st.binary())
def test_any_bytes_have_a_text(raw: bytes) -> None:
    assert safe_text(raw).count("\n") == raw.count(b"\n")


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Zs"])))
def test_harmless_text_is_left_alone(raw: str) -> None:
    assert safe_text(raw) == raw


@given(st.lists(st.text(alphabet="abc", max_size=6), min_size=1))
def test_frames_paint_over_each_other_as_on_a_terminal(frames: list[str]) -> None:
    row: list[str] = []
    for frame in frames:
        row[: len(frame)] = frame
    assert safe_text("\r".join(frames)) == "".join(row)


@pytest.mark.parametrize(
    "unit",
    [b"\x1b", b"\x1b[", b"\x1b]0;", b"\x1b[999C", b"\x1b[1K\r", b"\x1b[2Kx", b"\x08", b"a\x08", b"ab\x08\x08", b"\r",
     b"\rx", b"x\x1b[K\x1b[9C", b"\xff", b"\x1b[1", b"\x1b(", "\u202e".encode(), b"\x9b"],
)  # fmt: skip
def test_hostile_bytes_cost_no_more_than_their_length(unit: bytes) -> None:
    """Twenty times the bytes may not cost anything near twenty times squared (a generous bound, on a noisy machine)."""
    small, large = (_seconds(b"x" * size + unit * (size // len(unit))) for size in (20_000, 400_000))
    assert large < max(small * 120, 0.5)


def _seconds(data: bytes) -> float:
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        safe_text(data)
        best = min(best, time.perf_counter() - started)
    return best
