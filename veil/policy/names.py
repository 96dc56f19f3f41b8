"""Names of programs made comparable.

What forbids looks at a name loosely (case, look-alike letters, invisible characters, version numbers, any path in
front), what permits looks at it exactly. So whoever spells a name in a new way can only lose by it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

#: Letters of other scripts, folded, by the Latin letter that they read like.
_LOOKALIKES = {
    "a": "\u0430\u03b1\u0251\u1d00",
    "b": "\u0432\u03b2\u0299",
    "c": "\u0441\u1d04",
    "d": "\u0501",
    "e": "\u0435\u03b5\u1d07",
    "g": "\u0581\u0261\u0262",
    "h": "\u043d\u04bb\u0570\u029c",
    "i": "\u0456\u03b9\u0131\u026a",
    "j": "\u0458\u1d0a",
    "k": "\u043a\u03ba\u1d0b",
    "l": "\u04cf\u029f",
    "m": "\u043c\u1d0d",
    "n": "\u0578\u03b7\u0274\u043f",
    "o": "\u043e\u03bf\u1d0f",
    "p": "\u0440\u03c1\u1d18",
    "q": "\u051b",
    "r": "\u0433\u0280",
    "s": "\u0455\ua731",
    "t": "\u0442\u03c4\u1d1b",
    "u": "\u057d\u03c5\u1d1c",
    "v": "\u03bd\u1d20",
    "w": "\u051d\u1d21",
    "x": "\u0445\u03c7",
    "y": "\u0443\u028f",
    "z": "\u1d22",
}
_LATIN = {ord(sign): latin for latin, signs in _LOOKALIKES.items() for sign in signs}
_VERSION = re.compile(r"[-_.]?\d[\d.]*$")
_WORD = re.compile(r"[^\s;|&<>(){}\[\]'\"`$=,:\\!@#*?^]+")


def listed(names: str) -> frozenset[str]:
    """A set of names written as one text."""
    return frozenset(names.split())


def skeleton(text: str) -> str:
    """A text without what a reader does not see: case, look-alike letters, accents, invisible characters."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.casefold())
    seen = "".join(sign for sign in parts if unicodedata.category(sign) not in ("Mn", "Cf", "Cc", "Me"))
    return seen.casefold().translate(_LATIN)


@lru_cache(maxsize=4096)
def names_of(path: str) -> frozenset[str]:
    """Every name that the last part of a path may go by: its skeleton, with and without a version at the end.

    >>> sorted(names_of("/usr/bin/Python3.11"))
    ['python', 'python3', 'python3.11']
    """
    name = skeleton(path.rstrip("/").rpartition("/")[2])
    found = {name}
    shorter = _VERSION.sub("", name)
    if shorter and shorter != name:
        found.add(shorter)
        major = re.match(r"\d+", name[len(shorter) :].lstrip("-_."))
        if major and shorter + major[0]:
            found.add(shorter + major[0])
    return frozenset(found)


def words_in(text: str) -> tuple[str, ...]:
    """The words of a text that may be a script, wherever quotes and separators stand."""
    return tuple(_WORD.findall(text))
