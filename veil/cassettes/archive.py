"""The text archive ``NAME.veil.txtar``: named sections of bytes in one file that people review.

It is Go's txtar with three words added to the mark line of a section, each only where losslessness needs it::

    veil cassette 1
    -- 1/stdout --
    hello
    -- 1/stderr no-newline --
    no newline at the end
    -- 1/files/logo.png base64 --
    iVBORw0KGgo=
    -- 1/files/notes.txt escaped --
    \\x2d- this line looks like a mark --
    -- end --

The last line is always ``-- end --``: a file that was cut anywhere is known to be torn.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from veil.cassettes.errors import CassetteDamaged, CassetteVersion
from veil.model.errors import BadInput

#: Version of the whole file: the archive and what stands in its sections.
FORMAT = 1

#: Characters that a reviewer cannot see or that act on a terminal or on the reading order: control characters but tab
#: and newline, bidirectional controls, invisible spaces, separators, surrogates (bytes that are not UTF-8). A fixed
#: list, so that the bytes we write do not depend on the Unicode tables of the Python that writes them.
UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
)

_FIRST = re.compile(rb"veil cassette ([0-9]{1,9})\n")
_MARK = re.compile(rb"^-- (.+) --$", re.MULTILINE)
_END = b"-- end --\n"
_WORDS = ((), ("no-newline",), ("escaped",), ("escaped", "no-newline"), ("base64",))

_UNSEEN_ONE = re.compile(f"[{UNSEEN}]")
#: Bytes by which text is told from binary content: more than a quarter unseen is base64.
_SAMPLE = 65536
_ESCAPE = re.compile(rb"\\(\\|r|x[0-9a-f]{2}|)")
_LINE_LIKE_MARK = re.compile(r"^-(?=- .+ --$)", re.MULTILINE)
_IN_NAME = re.compile(rf"[\s%{UNSEEN}]")
_ESCAPED_BYTES = {b"\\": b"\\", b"r": b"\r", **{b"x%02x" % n: bytes([n]) for n in range(256)}}


@dataclass(frozen=True)
class Section:
    """One named piece of bytes. ``line`` is where its mark stands in the file it was read from (0 when not read)."""

    name: str
    data: bytes
    line: int = field(default=0, compare=False)


def pack(sections: Iterable[Section]) -> bytes:
    """The file as bytes. Raises ``BadInput`` for an empty or doubled name, or the reserved name ``end``."""
    parts = [b"veil cassette %d\n" % FORMAT]
    seen = {"end"}
    for section in sections:
        if not section.name or section.name in seen:
            raise BadInput("section", section.name, "a name that is not empty, not doubled and not 'end'")
        seen.add(section.name)
        body, words = _written(section.data)
        mark = " ".join((quote_name(section.name), *words))
        parts += [b"-- ", mark.encode(), b" --\n", body]
    parts.append(_END)
    return b"".join(parts)


def unpack(blob: bytes, file: str) -> tuple[Section, ...]:
    """The sections of a file. ``file`` is its name for error texts.

    Raises:
        CassetteDamaged: empty, foreign, torn, or with a mark or a body that cannot be read; names the line.
        CassetteVersion: whole, but of another format.
    """
    start = _start(blob, file)
    marks = list(_MARK.finditer(blob, start))
    line = 2
    at = start
    if marks and marks[0].start() != start:
        raise CassetteDamaged(file, 2, "text stands before the first section")
    found: dict[str, Section] = {}
    for mark, following in itertools.pairwise(marks):
        line += blob.count(b"\n", at, mark.start())
        at = mark.start()
        name, words = _read_mark(mark[1], file, line)
        if name in found:
            raise CassetteDamaged(file, line, f"section {name!r} stands twice (a merge that kept both sides?)")
        if name == "end":
            raise CassetteDamaged(file, line, "something stands after the end mark (two files joined?)")
        found[name] = Section(name, _read_body(blob[mark.end() + 1 : following.start()], words, file, line), line)
    if not marks or marks[-1][1] != b"end" or blob[marks[-1].start() :] != _END:
        last = blob.count(b"\n") + (not blob.endswith(b"\n"))
        raise CassetteDamaged(file, last, "the file is torn: its last line must be '-- end --'")
    return tuple(found.values())


def quote_name(name: str) -> str:
    """A section name as it stands in a mark: the unseen, white space and ``%`` become ``%XX`` per UTF-8 byte."""
    return _IN_NAME.sub(lambda m: "".join(f"%{b:02X}" for b in m[0].encode("utf-8", "surrogateescape")), name)


def unquote_name(name: str) -> str:
    """The name that ``quote_name`` wrote. Raises ``ValueError`` for a ``%`` that no two hex digits follow."""
    if re.search(r"%(?![0-9A-F]{2})", name):
        raise ValueError(name)
    raw = re.sub(rb"%([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), name.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def _start(blob: bytes, file: str) -> int:
    """Where the first section must begin."""
    first = _FIRST.match(blob)
    if first is not None:
        if int(first[1]) != FORMAT:
            raise CassetteVersion(file, int(first[1]), FORMAT)
        return first.end()
    if not blob.strip():
        raise CassetteDamaged(file, 1, "the file is empty; a recording without steps still has a header")
    if re.match(rb"veil cassette [0-9]+\r\n", blob):
        raise CassetteDamaged(
            file, 1, "its line ends were turned into CRLF; put '*.veil.txtar -text' into .gitattributes and restore it"
        )
    shown = blob.split(b"\n", 1)[0][:60].decode("utf-8", "backslashreplace")
    raise CassetteDamaged(file, 1, f"not a cassette: expected 'veil cassette {FORMAT}', got {shown!r}")


def _written(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The body that stands for ``data``, ending in a newline unless empty, and the words that say how."""
    sample = data[:_SAMPLE].decode("utf-8", "surrogateescape")
    if len(_UNSEEN_ONE.findall(sample)) * 4 > len(sample) + 32:
        return base64.encodebytes(data), ("base64",)
    text = data.decode("utf-8", "surrogateescape")
    words: tuple[str, ...] = ()
    unseen = sorted(set(_UNSEEN_ONE.findall(text)))
    if unseen or _LINE_LIKE_MARK.search(text):
        text = text.replace("\\", "\\\\")
        for char in unseen:
            text = text.replace(char, _escaped(char))
        text = _LINE_LIKE_MARK.sub(r"\\x2d", text)
        words = ("escaped",)
    if text and not text.endswith("\n"):
        return text.encode() + b"\n", (*words, "no-newline")
    return text.encode(), words


def _escaped(char: str) -> str:
    if char == "\r":
        return "\\r"
    return "".join(f"\\x{b:02x}" for b in char.encode("utf-8", "surrogateescape"))


def _read_mark(inner: bytes, file: str, line: int) -> tuple[str, tuple[str, ...]]:
    try:
        name, *words = inner.decode("utf-8").split(" ")
        plain = unquote_name(name)
    except ValueError:
        raise CassetteDamaged(file, line, f"the name in the mark {inner[:80]!r} cannot be read") from None
    if not name:
        raise CassetteDamaged(file, line, "a mark without a name")
    if tuple(words) not in _WORDS:
        raise CassetteDamaged(file, line, f"the mark says {' '.join(words)!r}; known are no-newline, escaped, base64")
    return plain, tuple(words)


def _read_body(body: bytes, words: tuple[str, ...], file: str, line: int) -> bytes:
    if words == ("base64",):
        try:
            return base64.b64decode(body.replace(b"\n", b""), validate=True)
        except binascii.Error as error:
            raise CassetteDamaged(file, line + 1, f"the base64 of this section cannot be read: {error}") from None
    if "no-newline" in words:
        if not body:
            raise CassetteDamaged(file, line, "marked no-newline, but the section is empty")
        body = body[:-1]
    if "escaped" not in words:
        return body

    def unescaped(found: re.Match[bytes]) -> bytes:
        if not found[1]:
            where = line + 1 + body.count(b"\n", 0, found.start())
            raise CassetteDamaged(file, where, "a backslash that starts no escape (known: \\\\ \\r \\xHH)")
        return _ESCAPED_BYTES[found[1]]

    return _ESCAPE.sub(unescaped, body)
