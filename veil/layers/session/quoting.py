"""What shells print of themselves so that a shell can read it again: split into entries, values decoded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

#: One piece of a word: what is quoted in some way, or one character that is not.
_PIECE = r"""\$'(?:[^'\\]+|\\.)*'|'[^']*'|"(?:[^"\\]+|\\.)*"|\\."""
_ENTRY = re.compile(rf"(?:{_PIECE}|[^\n'\"\\$]+|\$)+", re.DOTALL)
_PIECES = re.compile(rf"{_PIECE}|[^'\"\\$]+|\$", re.DOTALL)
_DOUBLE = re.compile(r'\\([$`"\\\n])')
_ANSI = re.compile(
    rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.)|(.))", re.DOTALL
)
_LETTERS = {b"a": 7, b"b": 8, b"e": 27, b"E": 27, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11}


def entries(text: str) -> Iterator[str]:
    """The lines of ``text``, where a newline within quotes ends none."""
    for found in _ENTRY.finditer(text):
        yield found[0]


def decoded(word: str) -> str:
    """The value of one word as a shell would read it: quotes of all four kinds, joined or not.

    Nothing is expanded: what a shell prints of a value holds no expansion.
    """
    if word[:1] == '"' and word.find('"', 1) == len(word) - 1 and "\\" not in word:  # nearly always
        return word[1:-1]
    return "".join(map(_plain, _PIECES.findall(word)))


def _plain(piece: str) -> str:
    if piece.startswith("$'"):
        return os.fsdecode(_ANSI.sub(_character, os.fsencode(piece[2:-1])))
    if piece.startswith("'"):
        return piece[1:-1]
    if piece.startswith('"'):
        return _DOUBLE.sub(lambda m: "" if m[1] == "\n" else m[1], piece[1:-1])
    if piece.startswith("\\"):
        return "" if piece[1] == "\n" else piece[1]
    return piece


def _character(found: re.Match[bytes]) -> bytes:
    octal, hexadecimal, short, long, control, letter = found.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 255])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    if short is not None or long is not None:
        return chr(int(short or long, 16)).encode("utf-8", "surrogatepass")
    if control is not None:
        return bytes([control[0] & 31])
    return bytes([_LETTERS[letter]]) if letter in _LETTERS else bytes(letter)
