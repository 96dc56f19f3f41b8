"""Which parts of an argument may be taken for a path. Whether they lead out of the workspace is looked at elsewhere.

A program decides by itself what it opens. So every reading counts that a usual program might make of a word: the whole
word, what is glued to an option letter, what stands after ``=``, ``:``, ``,`` or ``@``, inside quotes or brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from veil.policy.names import skeleton
from veil.policy.options import is_option

#: After one of these a path may begin, and before one it may end.
_SEPARATORS = re.compile(r"[=,:@;|<>\"'(){}\[\]!^+&`%#*?]")
#: A scheme and two slashes: an address and no path (unless a folder of that name is there: ``Candidate.unless``).
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FILE_ADDRESS = re.compile(r"(?:^|[^A-Za-z0-9_.-])file:", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{\w+[^}]*\}|\w+)/")
_BLANK = re.compile(r"\s(?=/)")
#: More separators than this, and only neighbouring ones are taken together.
_MANY = 12
#: Letters glued to a short option that are each tried as the beginning of a name.
_GLUED = 64


class Candidate(NamedTuple):
    """A text that may be opened as a path, relative to the directory of the run.

    Attributes:
        only_if_there: it counts only when that path exists (a slash in prose).
        unless: it counts only when this folder exists (``https:`` in front of an address).
    """

    text: str
    only_if_there: bool = False
    unless: str | None = None


def refused(word: str) -> str | None:
    """Why a word is refused whatever is on the disk: the address of a file, a home, a variable in front of a path."""
    if _FILE_ADDRESS.search(word) or (not word.isascii() and _FILE_ADDRESS.search(skeleton(word))):
        return "an address of a local file"
    for text in _pieces(word):
        if text.startswith("~"):
            return "a path in a home directory"
        if _VARIABLE.match(text):
            return "a path behind a variable, which nothing here expands"
    return None


def candidates(word: str) -> Iterator[Candidate]:
    """Every text in a word that a program may open as a path; each once."""
    seen: set[str] = set()
    address = _ADDRESS.search(word)
    for text in _pieces(word):
        if not text or text in seen or _plain_option(text):
            continue
        seen.add(text)
        if address is not None and text in word[address.start() :] and not word.startswith(text + "="):
            scheme = word[address.start() : address.end() - 2]
            yield Candidate(text, unless=scheme)
        else:
            yield Candidate(text)
    for match in _BLANK.finditer(word):
        text = re.split(r"[\s\"'`)};|&<>]", word[match.end() :], maxsplit=1)[0]
        if text not in seen and len(text) > 1:
            seen.add(text)
            yield Candidate(text, only_if_there=True)


def _plain_option(text: str) -> bool:
    return is_option(text) and "/" not in text


def _pieces(word: str) -> Iterator[str]:
    """The word, its tails and middles between separators, and what may be glued to an option letter."""
    yield word
    marks = [match.start() for match in _SEPARATORS.finditer(word)]
    starts = [mark + 1 for mark in marks]
    ends = [*marks, len(word)]
    if is_option(word) and word[1] != "-":
        starts += range(2, min(len(word), _GLUED))
        # further on, a name that begins with a slash or two dots is still one
        starts += [match.start() for match in re.finditer(r"/|\.\.|~", word[_GLUED:])]
    for start in (0, *starts):
        behind = [end for end in ends if end > start]
        for end in behind if len(ends) <= _MANY else {behind[0], behind[-1]} if behind else ():
            yield word[start:end]
