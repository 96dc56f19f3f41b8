"""The grammar of bash, as tree-sitter knows it, and where that differs from what bash itself would read.

Both packages are imported when the first command is parsed.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import Any

from veil.model.errors import Refused

#: Characters that are a blank or nothing to one reader and a part of a word to the other.
ODD = re.compile(
    "[\r\v\f\0\x85\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u206f\u3000\ufeff\u00ad\u061c\u180e\ufff9-\ufffb]"
)
#: Longer texts are parsed piece by piece, so that the parser can be stopped.
SHORT = 512
#: Seconds after which the parser is stopped: far more than a text of 100 KB takes that can be parsed at all.
LONGEST = 3.0
#: An unfinished pipeline costs the square of its length, in steps between which the parser cannot be stopped.
MOST_PIPES = 2000
_STRINGS = frozenset(
    ["string", "string_content", "raw_string", "ansi_c_string", "comment", "heredoc_body", "heredoc_content", "regex"]
)
# same length, so that every position stays what it is
_READ_WRITE = re.compile(r"<>")
_HEAD_BRACE = re.compile(r"(?:(?<=^)|(?<=[;&|(\n])|(?<=[;&|(\n] ))\{(?=[^\s{}]*,[^\s{}]*\}(?:[\s;&|)]|$))")
_DESCRIPTOR = re.compile(r"\{[A-Za-z_]\w*\}(?=[<>])")
_SUBSTITUTION = re.compile(rb"(?<!\\)((?:\\\\)*)(`|\$\()|(\\)`")
#: A line that begins with a backslash: the grammar takes the line end for the beginning of a word.
_QUOTED_LINE = re.compile(rb"(?<!\\)(?:\\\\)*\n\\")
_BEYOND_ASCII = re.compile(rb"[\xc2-\xf4][\x80-\xbf]{1,3}")
_TAME = {2: b"\xc3\xa9", 3: b"\xc3\xa9.", 4: b"\xc3\xa9\xc3\xa9"}
_ESCAPED_BLANK = re.compile(rb"\\[ \t\v\f]")
_TOKENS = frozenset({"`", "$(", "$((", "$`"})
_PLAIN_DELIMITER = re.compile(rb"""\\?[A-Za-z0-9_.%+@-]+\Z|'[A-Za-z0-9_.%+@ -]+'\Z|"[A-Za-z0-9_.%+@ -]+"\Z""")


@lru_cache(maxsize=1)
def _language() -> Any:
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError as error:
        raise Refused(
            f"the pre-check reads commands with tree-sitter, and that is not here ({error}): "
            "install tree-sitter and tree-sitter-bash, or pytest-veil once more",
            code="parser_missing",
            missing=error.name,
        ) from error
    return tree_sitter.Language(tree_sitter_bash.language())


def _tame(data: bytes) -> bytes:
    """UTF-8 of the same length in which every character beyond ASCII is one that the grammar can bear.

    Its scanner asks the C library whether any character is a letter or a blank, which glibc looks up in a table of 384
    entries: behind its end there is rubbish, and for the highest characters a crash of the process. To bash they all
    are plain characters of a word.
    """
    if data.isascii():
        return data
    return _BEYOND_ASCII.sub(lambda found: _TAME[len(found[0])], data)


def _tree(data: bytes) -> Any:
    """The tree, or None when the parser would take out of all proportion long."""
    language = _language()  # first: it says what to do when there is no tree_sitter
    import tree_sitter

    parser = tree_sitter.Parser(language)
    data = _tame(data)
    if len(data) <= SHORT:
        return parser.parse(data)
    if data.count(b"|") > MOST_PIPES:
        return None
    left = 500 + len(data) // 16
    until = time.monotonic() + LONGEST

    def stop(_offset: int, _error: bool) -> bool:
        nonlocal left
        left -= 1
        return left < 0 or time.monotonic() > until

    try:
        return parser.parse(lambda offset, _point: data[offset : offset + 65536], progress_callback=stop)
    except ValueError:
        return None


class Source:
    """A command and its tree.

    Attributes:
        text: as given.
        data: as UTF-8 (an unpaired surrogate becomes ``?``).
        root: the tree's root, or None when there is none.
        faults: what bash reads in another way than the grammar, or what neither can read.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode("utf-8", "replace")
        self.faults: list[str] = []
        tree = _tree(self.data)
        if tree is not None and tree.root_node.has_error:
            tree = self._mended(tree)
        if tree is not None and b"\n\\" in self.data:
            tree = self._ended(tree)
        # the nodes keep the tree alive
        self.root: Any = tree.root_node if tree is not None else None
        if self.root is None:
            self.faults.append("a text that is too large or too odd to parse")
        elif self.root.has_error:
            self.faults.append("a syntax error: bash runs what stands before it")
        self._characters()
        sound = self.root is not None and not self.root.has_error
        if sound and (b"`" in self.data or b"$(" in self.data):
            self._substitutions()
        if sound and _ESCAPED_BLANK.search(self.data):
            self._blanks()
        self._offsets: list[int] | None = None

    def _mended(self, tree: Any) -> Any:
        """The tree of a text of the same length in which constructs unknown to the grammar stand as known ones."""
        mended = _READ_WRITE.sub(">>", self.text)
        mended = _HEAD_BRACE.sub("_", mended)
        mended = _DESCRIPTOR.sub(lambda found: " " * (len(found[0]) - 1) + "9", mended)
        if mended != self.text:
            again = _tree(mended.encode("utf-8", "replace"))
            if again is not None and not again.root_node.has_error:
                return again
        return tree

    def _ended(self, tree: Any) -> Any:
        """The tree of a text of the same length in which no line begins with a backslash (``\\rm``: no alias)."""
        ends = [found.end() - 2 for found in _QUOTED_LINE.finditer(self.data)]
        ends = [at for at in ends if self._in_a_word(tree, at)]
        data = bytearray(self.data)
        for at in ends:
            if data[at + 2 : at + 3].isalnum():  # before any other character it means something
                data[at + 1] = ord(" ")
        again = _tree(bytes(data)) if data != self.data else None
        if again is not None and not again.root_node.has_error:
            tree = again
        if any(self._in_a_word(tree, at) for at in ends):
            self.faults.append("a line that begins with a backslash")
        return tree

    def _in_a_word(self, tree: Any, at: int) -> bool:
        return bool(tree.root_node.descendant_for_byte_range(at, at + 1).type == "word")

    def _characters(self) -> None:
        if "\0" in self.text:
            self.faults.append("a NUL, at which a command line ends")
        elif self.root is not None:
            for found in ODD.finditer(self.text):
                at = len(self.text[: found.start()].encode("utf-8", "replace"))
                node = self.root.descendant_for_byte_range(at, at + 1)
                if node is None or node.type not in _STRINGS:
                    self.faults.append("a character that is not seen, or that reads as a blank, outside of quotes")
                    break

    def _blanks(self) -> None:
        """Finds escaped blanks that the grammar passed over; for bash they are words or parts of words."""
        for found in _ESCAPED_BLANK.finditer(self.data):
            node = self.root.descendant_for_byte_range(found.start(), found.start() + 1)
            if node is not None and node.type not in _STRINGS and node.type not in ("word", "extglob_pattern"):
                self.faults.append("an escaped blank that the grammar passes over")
                return

    def _substitutions(self) -> None:
        """Finds substitutions that the grammar took for text."""
        for found in _SUBSTITUTION.finditer(self.data):
            start = found.start(2) if found[2] else found.start(3)
            node = self.root.descendant_for_byte_range(start, start + 1)
            if node is None:
                continue
            if found[3]:
                # an escaped backtick is one again inside of backticks
                inside = node
                while inside is not None and not (
                    inside.type == "command_substitution" and inside.children[0].type == "`"
                ):
                    inside = inside.parent
                if inside is not None and node.type not in ("raw_string", "comment"):
                    self.faults.append("backticks inside of backticks")
                    return
            elif (
                node.type in _TOKENS
                or node.type in ("raw_string", "comment", "ansi_c_string")
                or (node.type == "heredoc_body" and self._quoted_heredoc(node))
                or node.type in ("heredoc_start", "heredoc_end")
            ):
                continue
            else:
                self.faults.append("a substitution where the grammar sees text")
                return

    def _quoted_heredoc(self, node: Any) -> bool:
        parent = node.parent
        start = (
            next((child for child in parent.children if child.type == "heredoc_start"), None)
            if parent is not None
            else None
        )
        return start is not None and self.data[start.start_byte : start.start_byte + 1] in (b"'", b'"', b"\\")

    def at(self, byte: int) -> int:
        """The character at which that byte stands."""
        if len(self.data) == len(self.text):
            return byte
        if self._offsets is None:
            offsets, character = [], -1
            for value in self.data:
                character += (value & 0xC0) != 0x80
                offsets.append(character)
            self._offsets = [*offsets, len(self.text)]
        return self._offsets[byte]

    def span(self, node: Any) -> tuple[int, int]:
        """First character of a node, and the one after its last."""
        return self.at(node.start_byte), self.at(node.end_byte)

    def heredoc_fault(self, node: Any) -> str:
        """Why a here-document may end elsewhere for bash, or nothing."""
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        end = next((child for child in node.children if child.type == "heredoc_end"), None)
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if start is None or end is None:
            return "a here-document without an end"
        delimiter = self.data[start.start_byte : start.end_byte]
        if not _PLAIN_DELIMITER.match(delimiter):
            return "a here-document with an unusual delimiter"
        bare = delimiter.strip(b"'\"").lstrip(b"\\")
        dash = any(child.type == "<<-" for child in node.children)
        first = body.start_byte if body is not None else end.start_byte
        last = self.data.find(b"\n", end.start_byte)
        last = len(self.data) if last < 0 else last
        lines = self.data[first:last].split(b"\n")
        if dash:
            lines = [line.lstrip(b"\t") for line in lines]
        if lines[-1] != bare or bare in lines[:-1]:
            return "a here-document that may end elsewhere"
        return ""


def joined(text: str) -> str:
    """The text without line continuations, if one of them may stand inside a word or begin a line; else the same."""
    if "\\\n" not in text:
        return text
    if re.search(r"\S\\\n\S|(?:^|\n)[ \t]*\\\n", text):
        return text.replace("\\\n", "")
    return text
