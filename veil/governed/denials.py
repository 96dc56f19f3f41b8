"""A denial is final: the same program and sub-command are denied again, whatever they are wrapped in."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from veil.policy.launchers import TRANSPARENT, Seen
from veil.policy.names import listed, skeleton, words_in
from veil.policy.options import OPEN, is_option
from veil.policy.programs import Program

#: Programs that start others with arguments that they find elsewhere.
_ADDING = listed("xargs gxargs parallel find gfind fd fdfind")
#: Words behind a name in a script that may be its arguments.
_FAR = 64


@dataclass(frozen=True)
class _Denied:
    """What was denied. Attributes: names, digest: of the program. word: its sub-command, or first operand."""

    names: frozenset[str]
    digest: str | None
    word: str | None

    def is_this(self, seen: Seen, adds: bool) -> bool:
        """``adds``: something puts arguments behind a program that are not in the argv."""
        if _hands_on(seen):
            return False  # what it starts is looked at by itself
        same = bool(self.names & seen.program.names) or (self.digest is not None and self.digest == seen.program.digest)
        if not same or self.word is None or (adds and bool(seen.through)):
            return same
        # what is known only at run time may be that word
        beginning = any(word and self.word.startswith(word) for word in _operands(seen)[:1])
        return beginning or self.word in _operands(seen) or any(OPEN in word for word in seen.argv)


def _hands_on(seen: Seen) -> bool:
    """A launcher with something to start. With nothing, or with what is not understood, it is a program itself."""
    return seen.launcher and bool(seen.program.names & TRANSPARENT)


def _operands(seen: Seen) -> list[str]:
    words = [word for word in seen.argv[1:] if not is_option(word)]
    return [skeleton(word.rstrip("/").rpartition("/")[2] or word) for word in words]


def _inside(seen: Seen) -> Iterator[Seen]:
    """What the words of a program may start if they are scripts."""
    for word in seen.argv[1:]:
        words = words_in(word)
        if len(words) > 1:
            for at, name in enumerate(words):
                yield Seen(words[at : at + _FAR], -1, Program(name), sure=False, through=(seen.argv[0],))


class Denials:
    """What was denied in one boundary. Safe to use from several threads."""

    def __init__(self) -> None:
        self._denied: list[_Denied] = []
        self._lock = threading.Lock()

    def add(self, seen: Sequence[Seen]) -> None:
        """Nothing of this is to run any more. Launchers that only hand on are not meant; what they start is."""
        denied = []
        for one in seen:
            # behind a launcher that is not understood, all that it may start is meant
            if not _hands_on(one):
                operands = _operands(one)
                names, digest = one.program.names, one.program.digest
                denied.append(_Denied(names, digest, operands[0] if operands else None))
        with self._lock:
            self._denied += [one for one in denied if one not in self._denied]

    def find(self, seen: Sequence[Seen]) -> str | None:
        """The program of these that was denied before, or ``None``."""
        with self._lock:
            denied = tuple(self._denied)
        if not denied:
            return None
        adds = any(one.program.names & _ADDING for one in seen)
        programs = [part for one in seen for part in (one, *_inside(one))]
        return next((one.argv[0] for one in programs for entry in denied if entry.is_this(one, adds)), None)
