"""The archive keeps any bytes, says so in plain text, and never takes a broken file for an empty one."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.cassettes.archive import FORMAT, Section, pack, quote_name, unpack, unquote_name
from veil.cassettes.errors import CassetteDamaged, CassetteVersion
from veil.model.errors import BadInput

NASTY = st.lists(
    st.sampled_from(
        [b"-- a --", b"-- end --", b"--", b"-- ", b" --", b"-- x", b"\n", b"\r", b"\r\n", b"\\", b"\\x41", b"\0", b"a",
         b"\xff", b"\xc3\xa9", b"\xe2\x80\xae", b"\x1b[31m", b"veil cassette 1\n", b"\t", b" ", b"%", b"\xed\xa0\x80"]
    ),
    max_size=30,
).map(b"".join)  # fmt: skip
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(lambda name: name != "end")


@settings(deadline=None)
@given(st.dictionaries(NAMES, st.one_of(st.binary(max_size=300), NASTY), max_size=5))
def test_any_bytes_come_back_and_the_file_is_stable(content: dict[str, bytes]) -> None:
    sections = tuple(Section(name, data) for name, data in content.items())
    blob = pack(sections)
    assert unpack(blob, "f") == sections
    assert pack(unpack(blob, "f")) == blob
    for line in blob.decode("utf-8").splitlines():  # the file itself is always valid UTF-8 that can be reviewed
        assert "\r" not in line
        assert "\x1b" not in line


@settings(deadline=None)
@given(st.lists(st.tuples(NAMES, NASTY), max_size=3, unique_by=lambda pair: pair[0]), st.data())
def test_every_torn_file_is_an_error(content: list[tuple[str, bytes]], data: st.DataObject) -> None:
    blob = pack(Section(name, body) for name, body in content)
    cut = data.draw(st.integers(0, len(blob) - 1))
    with pytest.raises((CassetteDamaged, CassetteVersion)) as caught:
        unpack(blob[:cut], "x.veil.txtar")
    assert str(caught.value).startswith("x.veil.txtar:")
    assert caught.value.facts["line"] >= 1


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_names_come_back(raw: bytes) -> None:
    name = raw.decode("utf-8", "surrogateescape")
    quoted = quote_name(name)
    assert unquote_name(quoted) == name
    assert not any(c.isspace() and c not in "\u00a0\u1680\u202f\u205f\u3000" for c in quoted if ord(c) < 128)


def test_what_a_reviewer_sees() -> None:
    blob = pack(
        [
            Section("1/stdout", b"hello\nworld\n"),
            Section("1/stderr", b"no newline"),
            Section("1/empty", b""),
            Section("1/files/a b.sql", b"-- users --\nC:\\dir\r\n"),
            Section("1/files/dot", bytes(range(200, 256))),
            Section("1/colour", b"\x1b[31mred\x1b[0m and then some"),
        ]
    )
    assert blob.decode() == (
        "veil cassette 1\n"
        "-- 1/stdout --\nhello\nworld\n"
        "-- 1/stderr no-newline --\nno newline\n"
        "-- 1/empty --\n"
        "-- 1/files/a%20b.sql escaped --\n\\x2d- users --\nC:\\\\dir\\r\n"
        "-- 1/files/dot base64 --\nyMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v8=\n"
        "-- 1/colour escaped no-newline --\n\\x1b[31mred\\x1b[0m and then some\n"
        "-- end --\n"
    )


@pytest.mark.parametrize(
    ("blob", "line", "says"),
    [
        (b"", 1, "empty"),
        (b"\n \n", 1, "empty"),
        (b"{}", 1, "not a cassette"),
        (b"null", 1, "not a cassette"),
        (b'{"interactions": null}', 1, "not a cassette"),
        (b"\x89PNG\r\n", 1, "not a cassette"),
        (b"veil cassette 1\r\n-- end --\r\n", 1, "CRLF"),
        (b"veil cassette 1\n", 1, "torn"),
        (b"veil cassette 1\n-- a --\nx", 3, "torn"),
        (b"veil cassette 1\n-- a --\nx\n-- end --", 4, "torn"),
        (b"veil cassette 1\nwords\n-- end --\n", 2, "before the first section"),
        (b"veil cassette 1\n-- a --\n-- b --\n-- a --\n-- end --\n", 4, "twice"),
        (b"veil cassette 1\n-- end --\nmore\n", 3, "torn"),
        (b"veil cassette 1\n-- end --\n-- a --\n-- end --\n", 2, "after the end"),
        (b"veil cassette 1\n-- a --\n1\n-- b base46 --\n-- end --\n", 4, "base46"),
        (b"veil cassette 1\n-- a base64 --\n!!!\n-- end --\n", 3, "base64"),
        (b"veil cassette 1\n-- a escaped --\nok\n\\q\n-- end --\n", 4, "backslash"),
        (b"veil cassette 1\n-- a no-newline --\n-- end --\n", 2, "empty"),
        (b"veil cassette 1\n-- %zz --\n-- end --\n", 2, "name"),
        (b"veil cassette 1\n-- \xff --\n-- end --\n", 2, "name"),
    ],
)
def test_rr_06_broken_files_are_named_with_file_and_line(blob: bytes, line: int, says: str) -> None:
    with pytest.raises(CassetteDamaged) as caught:
        unpack(blob, "dir/t.veil.txtar")
    assert caught.value.facts["line"] == line
    assert str(caught.value).startswith(f"dir/t.veil.txtar:{line}: ")
    assert says in str(caught.value)
    assert caught.value.code == "cassette_damaged"


def test_an_unknown_format_is_its_own_error() -> None:
    with pytest.raises(CassetteVersion) as caught:
        unpack(b"veil cassette 999\n-- end --\n", "t")
    assert caught.value.facts == {"file": "t", "line": 1, "found": 999, "known": FORMAT}


@pytest.mark.parametrize("names", [["end"], [""], ["a", "a"]])
def test_names_that_could_not_be_read_back_are_refused(names: list[str]) -> None:
    with pytest.raises(BadInput):
        pack(Section(name, b"") for name in names)


@pytest.mark.parametrize(
    "kind",
    [
        b"plain line of text\n",
        b"-- mark --\n",
        b"-- ",
        b"\xff\xfe",
        b"text \\ and \x1b[1mcolour\x1b[0m\r\n",
        b"\\",
        None,
    ],
)
def test_large_content_is_linear(kind: bytes | None) -> None:
    def once(size: int) -> float:
        data = os.urandom(size) if kind is None else (kind * (size // len(kind) + 1))[:size]
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            assert unpack(pack([Section("a", data)]), "f") == (Section("a", data),)
            best = min(best, time.process_time() - start)
        return best

    small, large = once(1_000_000), once(10_000_000)
    assert large < 40 * (small + 0.01), "ten times the bytes must not cost the square of it"
    assert large < 60
