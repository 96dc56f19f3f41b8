"""What an argv starts behind its first program, read as a shell reads it, and whether that can be read at all.

``veil.policy.launchers`` sees launchers, and looks through texts for names as they are written. Here is what a shell
makes of them: ``g\\it`` and ``"gi"t`` are git. What only a shell can tell, when it runs, may be git too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from veil.policy.interpreters import interpreter_of
from veil.policy.judgements import TEXT, Tables
from veil.policy.launchers import Seen
from veil.policy.names import listed
from veil.policy.options import OPEN, is_option
from veil.policy.programs import Lookup, Program

#: Their programs can hand a text to a shell.
_EDITORS = listed("sed gsed awk gawk mawk nawk")
_MADE = re.compile(r"[`$]")
#: Texts behind programs that are not understood which are read.
_MOST = 64


@dataclass(frozen=True)
class Inside:
    """Attributes: programs: what may be started. unclear: why there may be more, or ``""``.
    foreign: some of it runs code that is no text of a shell. words: of the texts, quotes undone.
    maybe: what may be a program in texts that are handed to something else; it can only forbid."""

    programs: tuple[Seen, ...] = ()
    unclear: str = ""
    foreign: bool = False
    words: tuple[str, ...] = ()
    maybe: tuple[Seen, ...] = ()


NOTHING = Inside()


def inside(argv: tuple[str, ...], seen: Sequence[Seen], tables: Tables, lookup: Lookup) -> Inside:
    """Everything that an argv starts beside its first program, quotes undone.

    Args:
        seen: its programs, as launchers show them.
    """
    if len(seen) == 1 and seen[0].unclear is None and not _reads_text(seen[0]):
        return NOTHING
    found = tables.starts(argv)
    programs, unclear, words = list(found.programs), found.unclear, [*found.words]
    texts = list(_texts(seen))
    if len(texts) > _MOST:
        unclear = unclear or f"more than {_MOST} texts"
    maybe: dict[tuple[str, ...], None] = {}
    for text in texts[:_MOST]:
        read = tables.starts(text)
        programs += read.programs
        maybe.update(dict.fromkeys(one[at:] for one in read.programs for at in range(1, min(len(one), _MOST))))
        words += read.words
        if _MADE.search(text):
            unclear = unclear or read.unclear
    known = {argv, *(one.argv for one in seen if one.sure)}
    parts = dict.fromkeys(one for one in programs if one[0] and OPEN not in one[0] and one not in known)
    made: list[Seen] = []
    for one in parts:
        there = [lookup(place) for place in _places(one[0], found.moved)]
        if "/" in one[0] and one[0] not in argv and all(program.path is None for program in there):
            unclear = unclear or f"{one[0]!r} is not there yet: make it in one call, and run it in the next"
        made += [Seen(one, -1, program, sure=False, through=(argv[0],)) for program in there]
    loose = tuple(Seen(one, -1, Program(one[0]), sure=False, through=(argv[0],)) for one in maybe if one[0])
    return Inside(tuple(made), unclear, found.foreign, tuple(words), loose)


def _places(name: str, moved: str) -> tuple[str, ...]:
    """Where a program may be looked for by a text that changes to another folder, before or behind it."""
    relative = "/" in name and not name.startswith("/")
    return (name, f"{moved}/{name}") if moved and relative else (name,)


def is_shell(seen: Seen) -> bool:
    """An interpreter whose code is a text that can be read here."""
    interpreter = interpreter_of(seen.program.names)
    return interpreter is not None and interpreter.shell


def _reads_text(seen: Seen) -> bool:
    editor = not seen.program.names.isdisjoint(_EDITORS)
    return seen.launcher or editor or is_shell(seen) or bool(seen.program.interpreter)


def _texts(seen: Sequence[Seen]) -> Iterator[str]:
    """Words behind a program that is not understood, as far as they may be texts that it hands to a shell."""
    for one in seen:
        if not one.loose:
            continue
        for word in one.argv[1:]:
            parts = (word,) if not is_option(word) else (word[2:],)
            for text in dict.fromkeys((*parts, word.partition("=")[2])):
                if TEXT.search(text):
                    yield text
