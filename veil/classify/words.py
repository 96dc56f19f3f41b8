"""Shell words as the shell would hand them on: quotes undone, braces expanded, run-time parts marked.

A word's text holds marks for what is known only at run time, so that a plain string comparison sees the rest:
``DYNAMIC`` stands for an expansion, ``GLOB`` for an unquoted pattern character.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

DYNAMIC, GLOB = "\0", "\1"
# unquoted braces and commas, until braces are expanded
OPEN, CLOSE, COMMA = "\2", "\3", "\4"


def listed(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


_RESTORE = str.maketrans({OPEN: "{", CLOSE: "}", COMMA: ","})
_SPECIAL = re.compile(r"[\\*?\[{},\0-\4]")
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|([abeEfnrtv\\'\"?]))",
    re.DOTALL,
)
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SEQUENCE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(\.\.-?\d+)?\Z")
EXPANSIONS = frozenset({"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"})
#: More words than this out of one pair of braces are not spelled out.
MOST_BRACES = 256
MOST_OPEN = 32


class Word(NamedTuple):
    """One argument.

    Attributes:
        text: with ``DYNAMIC`` and ``GLOB`` marks.
        start, end: characters in the whole command.
        splits: it may become several words, or none.
    """

    text: str
    start: int = 0
    end: int = 0
    splits: bool = False

    @property
    def literal(self) -> bool:
        """Whether the text is all there is to it."""
        return not self.splits and DYNAMIC not in self.text and GLOB not in self.text

    @property
    def known(self) -> str:
        """The text before anything that is open."""
        for at, character in enumerate(self.text):
            if character in (DYNAMIC, GLOB):
                return self.text[:at]
        return self.text

    def may_be_option(self) -> bool:
        """Whether it can become an option that is not written here."""
        if self.literal:
            return False
        return self.splits or not self.known

    def tail(self, at: int) -> Word:
        """What stands from that character on."""
        return self._replace(text=self.text[at:])


def plain(text: str, start: int = 0, end: int = 0) -> Word:
    """A word of an argv: every character stands for itself. One with NUL cannot be handed on; it stays open."""
    return Word(text, start, end)


def ansi(text: str) -> str:
    """What ``$'...'`` stands for, given what is between the quotes."""

    def one(found: re.Match[str]) -> str:
        hexadecimal = found[1] or found[2] or found[3]
        if hexadecimal:
            number = int(hexadecimal, 16)
            return chr(number) if number < 0x110000 else DYNAMIC
        if found[4]:
            return chr(int(found[4], 8) & 0xFF)
        if found[5]:
            return chr(ord(found[5]) & 0x1F)
        return _LETTERS.get(found[6], found[6])

    # bash ends the string at a NUL
    return _ANSI.sub(one, text)


def unquoted(text: str) -> str:
    """An unquoted stretch: backslashes undone, pattern characters and braces marked."""
    if not _SPECIAL.search(text):
        return text
    out, at = [], 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            following = text[at + 1 : at + 2]
            out.append("" if following == "\n" else following or "\\")
            at += 2
            continue
        out.append(GLOB if character in "*?[" else {"{": OPEN, "}": CLOSE, ",": COMMA}.get(character, character))
        at += 1
    return "".join(out)


_IN_DOUBLE = re.compile(r'\\([$`"\\\n])')


def double_quoted(text: str) -> str:
    """A stretch of a double-quoted string or of a here-document."""
    if "\\" not in text:
        return text
    return _IN_DOUBLE.sub(lambda found: "" if found[1] == "\n" else found[1], text)


class Reader:
    """Reads words out of the tree over ``data`` (UTF-8 bytes of the command)."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def text(self, start: int, end: int) -> str:
        return self.data[start:end].decode("utf-8", "replace")

    def read(self, node: Any) -> tuple[str, bool]:
        """Text with marks (braces not expanded yet) and whether it may split."""
        kind = node.type
        if kind in ("word", "number", "variable_name", "file_descriptor", "test_operator", "extglob_pattern", "regex"):
            if node.child_count == 0:
                return unquoted(self.text(node.start_byte, node.end_byte)), False
            return self._joined(node)
        if kind == "raw_string":
            return self.text(node.start_byte + 1, node.end_byte - 1), False
        if kind == "string":
            return self._string(node)
        if kind == "ansi_c_string":
            return ansi(self.text(node.start_byte + 2, node.end_byte - 1)), False
        if kind in ("concatenation", "command_name", "translated_string", "variable_assignment", "brace_expression"):
            return self._joined(node)
        if kind == "process_substitution":
            return "/dev/fd/" + DYNAMIC, False
        if kind == "arithmetic_expansion":
            return DYNAMIC, False
        if not node.is_named:
            return unquoted(self.text(node.start_byte, node.end_byte)), False
        return DYNAMIC, True

    def _string(self, node: Any) -> tuple[str, bool]:
        out, at, splits = [], node.start_byte + 1, False
        for child in node.children:
            if child.type in EXPANSIONS:
                out.append(double_quoted(self.text(at, child.start_byte)))
                out.append(DYNAMIC)
                # "$@" and "${a[@]}" become several words, quoted or not
                splits = splits or (
                    child.type.endswith("expansion") and b"@" in self.data[child.start_byte : child.end_byte]
                )
                at = child.end_byte
        end = node.end_byte - (1 if self.data[node.end_byte - 1 : node.end_byte] == b'"' else 0)
        out.append(double_quoted(self.text(at, max(end, at))))
        return "".join(out), splits

    def _joined(self, node: Any) -> tuple[str, bool]:
        out, at, splits = [], node.start_byte, False
        children = node.children
        if not children:
            return unquoted(self.text(node.start_byte, node.end_byte)), False
        for number, child in enumerate(children):
            if child.start_byte > at:
                out.append(unquoted(self.text(at, child.start_byte)))
            at = child.end_byte
            following = children[number + 1].type if number + 1 < len(children) else ""
            if child.type == "$" and following == "string":
                continue
            text, may_split = self.read(child)
            out.append(text)
            splits = splits or may_split
        return "".join(out), splits

    def words(self, node: Any, start: int, end: int) -> list[Word]:
        """The words that one argument becomes: one, or several when it has braces."""
        text, splits = self.read(node)
        if OPEN not in text:
            return [Word(text.translate(_RESTORE) if CLOSE in text or COMMA in text else text, start, end, splits)]
        spelled = braces(text) if text.count(OPEN) <= MOST_OPEN else ()
        if not 0 < len(spelled) <= MOST_BRACES:
            return [Word(DYNAMIC, start, end, True)]
        return [Word(one.translate(_RESTORE), start, end, splits) for one in spelled]


def braces(text: str) -> list[str]:
    """Brace expansion over marked text; at most ``MOST_BRACES + 1`` words come back."""
    at = text.find(OPEN)
    while at >= 0:
        parts, end = _alternatives(text, at)
        if parts is not None:
            found = []
            rests = braces(text[end + 1 :])
            for part in parts:
                for one in braces(part):
                    for rest in rests:
                        found.append(text[:at] + one + rest)
                        if len(found) > MOST_BRACES:
                            return found
            return found
        at = text.find(OPEN, at + 1)
    return [text]


def _alternatives(text: str, at: int) -> tuple[list[str] | None, int]:
    """What stands between the braces that open there, and where they close; None when they are no expansion."""
    depth, parts, begin = 0, [], at + 1
    for place in range(at, len(text)):
        character = text[place]
        if character == OPEN:
            depth += 1
        elif character == CLOSE:
            depth -= 1
            if depth == 0:
                parts.append(text[begin:place])
                if len(parts) > 1:
                    return parts, place
                return ([DYNAMIC], place) if _SEQUENCE.match(parts[0]) else (None, place)
        elif character == COMMA and depth == 1:
            parts.append(text[begin:place])
            begin = place + 1
    return None, at
