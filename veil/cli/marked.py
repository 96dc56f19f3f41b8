"""A block of ours in a text of somebody else's: put there, found again, taken away. Bytes in, bytes out.

What else is in the text stays as it is to the last byte, so that taking the block away gives back what was before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from veil import Refused

_BEGIN, _END = b"<!-- veil:begin", b"<!-- veil:end -->"
_LINE = re.compile(rb"[^\n]*\n|[^\n]+\Z")
_WORDS = re.compile(rb"<!-- veil:begin((?: [a-z]+)*) -->\Z")


@dataclass(frozen=True)
class Block:
    """Where the block stands. ``words``: what was so when it was put there: ``joined`` (the text before ended without a
    newline), ``created`` (there was no file)."""

    start: int
    end: int
    words: frozenset[str]


def find(text: bytes, name: str) -> Block | None:
    """The block in a text. ``name``: of the file, for errors.

    Raises ``Refused`` (``block_damaged``, with the line) when only a part of it is there, or more than one.
    """
    begun: tuple[int, int, frozenset[str]] | None = None
    found: Block | None = None
    for number, line in enumerate(_LINE.finditer(text), 1):
        bare = line[0].strip()
        if bare.startswith(_BEGIN):
            words = _WORDS.match(bare)
            if begun is not None or found is not None or words is None:
                raise _damaged(name, number, "a second beginning" if words else "a beginning that is not ours")
            begun = (line.start(), number, frozenset(words[1].decode().split()))
        elif bare == _END:
            if begun is None:
                raise _damaged(name, number, "an end without a beginning")
            found = Block(begun[0], line.end(), begun[2])
            begun = None
    if begun is not None:
        raise _damaged(name, begun[1], "a beginning without an end")
    return found


def _damaged(name: str, line: int, what: str) -> Refused:
    return Refused(
        f"{name}:{line}: the block of veil init is damaged ({what}); mend its two marks, or take all of it out by hand",
        code="block_damaged",
        file=name,
        line=line,
    )


def put(text: bytes | None, hint: str, name: str) -> bytes:
    """The text with the block, where it stood or at the end. ``None``: there is no file yet."""
    block = None if text is None else find(text, name)
    if text is None:
        return _block(hint, frozenset({"created"}), b"\n")
    if block is not None:
        as_it_is = _ends(text[block.start : block.end])
        return text[: block.start] + _block(hint, block.words, as_it_is) + text[block.end :]
    ends = _ends(text)
    joined = bool(text) and not text.endswith(b"\n")
    before = text + ends * joined + ends * bool(text)
    return before + _block(hint, frozenset({"joined"} if joined else ()), ends)


def taken(text: bytes, name: str) -> bytes | None:
    """The text without the block. ``None``: nothing is left of a file that the block was the beginning of."""
    block = find(text, name)
    if block is None:
        return text
    before, after = text[: block.start], text[block.end :]
    ends = _ends(text[block.start : block.end])
    shorter = before.removesuffix(ends)
    if shorter != before and shorter.endswith(b"\n"):  # the empty line in front of it is ours as well
        before = shorter
        if "joined" in block.words and not after:
            before = before.removesuffix(ends)
    left = before + after
    return None if not left and "created" in block.words else left


def _block(hint: str, words: frozenset[str], ends: bytes) -> bytes:
    begin = " ".join(["<!-- veil:begin", *sorted(words), "-->"]).encode()
    lines = [begin, *hint.strip("\n").encode().split(b"\n"), _END]
    return b"".join(line + ends for line in lines)


def _ends(text: bytes) -> bytes:
    """How most lines of the text end."""
    windows = text.count(b"\r\n")
    return b"\r\n" if windows * 2 > text.count(b"\n") else b"\n"
