"""The ways in which a known secret value is written by ordinary programs."""

from __future__ import annotations

import base64
import html
import json
import shlex
import urllib.parse
from collections.abc import Iterator

#: Sets of characters that programs leave alone when they percent-encode: nothing, paths, ``encodeURIComponent``,
#: ``encodeURI``.
_SAFE = ("", "/", "!'()*~", ";,/?:@&=+$!*'()#~")
#: Lines of a long value that are secret by themselves have at least this many bytes.
LINE_BYTES = 16


def spellings(value: bytes) -> Iterator[bytes]:
    """The value without white space around it, and its encodings: percent, base64 and base64url at each of three
    alignments (only the characters that the value alone decides, so padding does not matter), hex, JSON, shell quotes,
    HTML and Python escapes, and the lines of a value of several lines (a key printed with an indent). May repeat
    itself."""
    value = value.strip()
    yield value
    yield from _lines(value)
    yield from _percent(value)
    for offset in range(3):
        core = _base64_core(value, offset)
        yield core
        yield core.translate(bytes.maketrans(b"+/", b"-_"))
    yield value.hex().encode()
    yield value.hex().upper().encode()
    text = value.decode("utf-8", "surrogateescape")
    for spelled in _escaped(text):
        yield spelled.encode("utf-8", "surrogateescape")
    for high in (True, False):
        yield b"".join(_ansi_c(byte, high) for byte in value)


def _lines(value: bytes) -> Iterator[bytes]:
    if b"\n" not in value:
        return
    for line in value.splitlines():
        part = line.strip()
        if len(part) >= LINE_BYTES and b" " not in part and not part.startswith(b"-----"):
            yield part
    yield value.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _percent(value: bytes) -> Iterator[bytes]:
    for safe in _SAFE:
        quoted = urllib.parse.quote_from_bytes(value, safe=safe)
        for spelled in (quoted, quoted.replace("%20", "+")):
            yield spelled.encode()
            yield _lower_hex(spelled).encode()


def _lower_hex(quoted: str) -> str:
    first, *rest = quoted.split("%")
    return "%".join([first, *(part[:2].lower() + part[2:] for part in rest)])


def _base64_core(value: bytes, offset: int) -> bytes:
    """Characters that ``value`` alone decides when it starts at byte ``offset`` of a group of three."""
    encoded = base64.b64encode(b"\0" * offset + value)
    first = -(-offset * 8 // 6)
    return encoded[first : (offset + len(value)) * 8 // 6]


def _escaped(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        quoted = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield quoted
        yield quoted.replace("/", "\\/")
        yield json.dumps(quoted, ensure_ascii=ascii_only)[1:-1]  # JSON inside JSON
    yield shlex.quote(text)
    yield text.replace("'", "'\\''")
    # what ``printf %q`` and ``set -x`` print, and the inside of double quotes
    yield "".join("\\" + sign if sign in " \t!\"#$&'()*,;<>?[\\]^`{|}~" else sign for sign in text)
    yield "".join("\\" + sign if sign in '"$`\\' else sign for sign in text)
    yield html.escape(text)
    yield html.escape(text, quote=False)
    yield repr(text)[1:-1]


def _ansi_c(byte: int, high: bool) -> bytes:
    """A byte as bash writes it inside ``$'...'``; ``high``: bytes above ASCII in octal, as it does outside UTF-8."""
    named = b"\a\b\t\n\v\f\r".find(byte)
    if named >= 0:
        return b"\\" + b"abtnvfr"[named : named + 1]
    if byte in b"'\\":
        return bytes((0x5C, byte))
    if byte == 0x1B:
        return b"\\E"
    if byte < 0x20 or byte == 0x7F or (high and byte > 0x7F):
        return b"\\%03o" % byte
    return bytes((byte,))
