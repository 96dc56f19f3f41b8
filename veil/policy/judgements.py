"""The built-in judgements: what about an argv gives reason to ask, and on which of its words that stands.

What tools do is known to the pre-check (``veil.classify``), which is handed in as a function; here it is only told what
follows for a policy. A rule that allows answers the concerns on those words that it names: ``prefix = ["find"]`` says
nothing of ``-delete``, and ``prefix = ["python3"]`` nothing of the code behind ``-c``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from veil.policy.interpreters import code_of, interpreter_of
from veil.policy.launchers import ELEVATING, TRANSPARENT, Seen
from veil.policy.names import listed, names_of, words_in
from veil.policy.options import is_option

#: Tells what an argv may do: one of the pre-check's categories, and why.
Risk = Callable[[tuple[str, ...]], tuple[str, str]]

_HARMLESS = ("read-only", "mutating")
_RANK = {name: n for n, name in enumerate(("read-only", "mutating", "unknown", "complex", "network", "destructive"))}
_KINDS = {"network": "network", "destructive": "destructive", "complex": "opaque"}

#: Programs of which the pre-check knows no more than that they change something, or nothing at all.
_JUDGED = {
    **dict.fromkeys(
        listed(
            "dpkg rpm easy_install mix hex nuget dotnet mvn mvnw gradle gradlew sbt vcpkg conan xbps-install "
            "xbps-remove tlmgr"
        ),
        "packages",
    ),
    **dict.fromkeys(listed("twine wscat curlie hurl restic borg dropbear dbclient"), "network"),
    # what they end or stop is not theirs
    **dict.fromkeys(listed("kill killall pkill skill fuser systemctl service"), "destructive"),
}

#: A word that is more than a name for whoever makes commands of it.
TEXT = re.compile(r"[\s\\'\"`$]")
#: They hand a value to a shell whatever else they do.
_HANDING = listed("rsync scp sftp")
_ASSIGNS = re.compile(r"[A-Za-z_][\w.-]*[:+?!]{0,3}=", re.ASCII)


@dataclass(frozen=True)
class Concern:
    """A reason to ask.

    Attributes:
        at: index of the word of the program's own argv on which it stands. text: that word may be a text that is run.
        hides: a program may be started by it whose name nobody can read.
    """

    kind: str
    at: int
    why: str
    text: bool = True
    hides: bool = False


class Started(Protocol):
    """What the pre-check reads out of an argv and of the texts for a shell in it.

    Attributes:
        programs: each that is started, with its arguments, quotes undone.
        unclear: why these may not be all; ``""`` when they are.
        foreign: some of them run code that is no text of a shell.
        words: of these texts, whatever they are there for.
        moved: the only folder that they change to; ``""`` for none.
    """

    @property
    def programs(self) -> tuple[tuple[str, ...], ...]: ...

    @property
    def unclear(self) -> str: ...

    @property
    def foreign(self) -> bool: ...

    @property
    def words(self) -> tuple[str, ...]: ...

    @property
    def moved(self) -> str: ...


class Tables(NamedTuple):
    """What is known of tools elsewhere. Attributes: packages: names of package managers. starts: reads an argv, or a
    text for a shell."""

    risk: Risk
    packages: frozenset[str]
    starts: Callable[[str | tuple[str, ...]], Started]


def concerns(seen: Seen, tables: Tables, forbidden: frozenset[str]) -> tuple[Concern, ...]:
    """All reasons to ask about one program of which it is sure that it is started.

    Args:
        forbidden: names of programs that something speaks against.
    """
    found: list[Concern] = []
    names, last = seen.program.names, len(seen.argv) - 1
    if seen.program.local:
        found.append(Concern("local", 0, "the commands themselves can change this program"))
    if names & ELEVATING:
        found.append(Concern("elevation", 0, "what it starts has other rights or another place"))
    if seen.unclear is not None:
        found.append(
            Concern(
                "opaque", seen.unclear - seen.at, seen.why, hides=seen.loose and any(map(TEXT.search, seen.argv[1:]))
            )
        )
    if seen.launcher:
        return tuple(found)
    interpreter = interpreter_of(names)
    if interpreter is not None:
        code = code_of(seen.argv, interpreter)
        if code is not None:
            at = min(code.at, last)
            found.append(Concern("interpreters", at, "code that is not judged", hides=bool(code.texts)))
            found += _mentions(seen, forbidden)
        return tuple(found)
    if names & {"make", "gmake"}:
        found += [Concern("opaque", at, "it changes what make runs", hides=True) for at in _remade(seen.argv)]
    category, why = tables.risk(seen.argv)
    package = bool(names & tables.packages)
    known = next((_JUDGED[name] for name in names if name in _JUDGED), None)
    if known is not None and category not in ("read-only", *_KINDS):
        found.append(Concern(known, _first(seen.argv, category, tables.risk), why))
    elif category in _KINDS or (package and category not in _HARMLESS):
        kind = "packages" if package else _KINDS[category]
        found.append(Concern(kind, _first(seen.argv, category, tables.risk), why, hides=kind == "opaque"))
    if category not in _HARMLESS:
        # whoever is not known to leave its words alone may start the program that one of them names
        found += _mentions(seen, forbidden)
    return tuple(found)


def _mentions(seen: Seen, forbidden: frozenset[str]) -> Iterator[Concern]:
    for at, word in enumerate(seen.argv[1:], 1):
        for part in words_in(word):
            if not names_of(part).isdisjoint(forbidden):
                yield Concern("opaque", at, f"it may start {part!r}", text=False)
                break


def _first(argv: Sequence[str], category: str, risk: Risk) -> int:
    """The word with which the argv has become as bad as it is."""
    for length in range(1, len(argv)):
        if _RANK[risk(tuple(argv[:length]))[0]] >= _RANK[category]:
            return length - 1
    return len(argv) - 1


def _remade(argv: Sequence[str]) -> list[int]:
    """Words by which a makefile runs something else than what stands in it: rules in options, variables."""
    return [
        at
        for at, word in enumerate(argv)
        if at and (_ASSIGNS.match(word) or re.match(r"--ev|-[A-Za-df-z]*E", word) or argv[at - 1] in ("-E", "--eval"))
    ]


def texts_of(seen: Seen, found: Sequence[Concern]) -> Iterator[tuple[str, ...]]:
    """Words that may be a program with its arguments, out of the texts that a program is given to run.

    Args:
        found: the concerns about it.
    """
    interpreter = None if seen.launcher else interpreter_of(seen.program.names)
    code = None if interpreter is None else code_of(seen.argv, interpreter)
    texts = () if code is None else code.texts
    if texts and interpreter is not None and interpreter.shell:
        # its options are many and differ: whichever word is the script, it is looked at
        texts = tuple(range(1, len(seen.argv)))
    for at in texts:
        word = seen.argv[at]
        yield words_in(word)
        if is_option(word):
            yield words_in(word[2:])  # glued to its letter
    if code is not None and code.rest:
        yield seen.argv[code.rest :]
    for concern in found:
        if concern.kind == "opaque" and concern.text and 0 < concern.at < len(seen.argv):
            # the value of an option may stand behind it, and a pattern in front of a text
            for word in seen.argv[concern.at :] if concern.hides else seen.argv[concern.at : concern.at + 1]:
                yield words_in(word)
                if "/" in word:
                    yield words_in(word.replace("/", " "))


def handed_on(seen: Seen, found: Sequence[Concern], tables: Tables) -> Iterator[tuple[str, ...]]:
    """The same as a shell would read it, where an option has a value that is run (``--to-command='g"i"t x'``)."""
    hides = any(concern.kind == "opaque" and concern.hides for concern in found)
    if seen.launcher or not (hides or seen.program.names & _HANDING):
        return
    for word in seen.argv[1:]:
        if TEXT.search(word):
            for text in dict.fromkeys((word, word.partition("=")[2], word.rpartition("=")[2], word[2:])):
                yield from tables.starts(text).programs


def is_transparent(seen: Seen) -> bool:
    """A launcher that changes nothing about what it starts, read to the last option."""
    return seen.launcher and seen.unclear is None and bool(seen.program.names & TRANSPARENT)
