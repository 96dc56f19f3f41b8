"""Programs of sed and awk among the words: which files they name, so that a slash in a pattern is not taken for a path.

Only where it is sure that a word is such a program, and all of it can be followed. Else the word is read like any
other, by which ``/x/p`` begins with a slash and leads out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from veil.classify.sed import SedScript
from veil.policy.containment import Candidate, candidates
from veil.policy.launchers import Seen
from veil.policy.names import listed
from veil.policy.options import is_option

SEDS = listed("sed gsed")
AWKS = listed("awk gawk mawk nawk original-awk")
#: Options of sed that take no value, as letters and by name.
_FLAGS = "nErsuzb"
_NAMED = listed(
    "--quiet --silent --regexp-extended --null-data --separate --unbuffered --posix --debug --binary --in-place"
)
_IN_PLACE = re.compile(r"-[nErsuz]*i\S*\Z|--in-place(?:=.*)?\Z", re.DOTALL)
#: Longer ones are read anew each time: they would fill the memory.
_LONG = 4_096
_FIELD = re.compile(r"-F|-v")


class Reading(NamedTuple):
    """Attributes: names: files that a program says it opens, word for word. parts: what else of it may be a path."""

    names: tuple[str, ...] = ()
    parts: tuple[Candidate, ...] = ()


def readings(seen: Sequence[Seen]) -> Mapping[int, Reading]:
    """How such programs are to be read, by the index of their word in the whole argv.

    Args:
        seen: the programs of that argv.
    """
    found: dict[int, Reading] = {}
    for one in seen:
        program = one.program
        if one.sure and one.at >= 0 and program.path is not None and not program.local and "/" not in one.argv[0]:
            for names, read in ((SEDS, _sed), (AWKS, _awk)):
                if one.argv[0] in names:
                    found.update((one.at + at, reading) for at, reading in read(one.argv))
    return found


def _sed(argv: Sequence[str]) -> Iterator[tuple[int, Reading]]:
    scripts = _sed_scripts(argv)
    if not scripts:
        return
    text = "\n".join(text for _, text in scripts)
    names = _kept(text) if len(text) < _LONG else _files(text)
    if names is not None:
        yield from ((at, Reading(names)) for at, _ in scripts)


def _files(text: str) -> tuple[str, ...] | None:
    """The files that a script of sed names; ``None`` when it cannot be followed."""
    readings = [SedScript(text, shield).read() for shield in (True, False)]
    if not all(reading.clear for reading in readings):
        return None
    return tuple(dict.fromkeys(name for reading in readings for name in reading.files))


_kept = lru_cache(maxsize=1024)(_files)


def _sed_scripts(argv: Sequence[str]) -> list[tuple[int, str]]:
    """Words with their part that is a script; empty when that is not sure."""
    scripts: list[tuple[int, str]] = []
    operands: list[int] = []
    at = 1
    while at < len(argv):
        word = argv[at]
        if word == "--":
            operands += range(at + 1, len(argv))
            break
        if not is_option(word):
            operands.append(at)
        elif operands:
            return []  # some seds take it for a file, others for an option
        elif (glued := re.match(rf"-[{_FLAGS}]*e|--expression=", word)) is not None:
            if glued.end() < len(word):
                scripts.append((at, word[glued.end() :]))
            elif at + 1 < len(argv):
                at += 1
                scripts.append((at, argv[at]))
            else:
                return []
        elif not (re.fullmatch(rf"-[{_FLAGS}]+", word) or word in _NAMED or _IN_PLACE.match(word)):
            return []
        at += 1
    if not scripts and operands:
        scripts = [(operands[0], argv[operands[0]])]
    # BSD's -i takes the next word for a suffix, and the script is another one then
    return [] if "-i" in argv and any(not text for _, text in scripts) else scripts


def _awk(argv: Sequence[str]) -> Iterator[tuple[int, Reading]]:
    at, separators = 1, []
    while at < len(argv) and is_option(argv[at]):
        if argv[at] == "--":
            at += 1
            break
        if not _FIELD.match(argv[at]):
            return
        taken = len(argv[at]) == 2  # a letter alone takes the next word
        if argv[at].startswith("-F"):
            separators.append(at + taken)
        at += 1 + taken
    if at < len(argv) and not any(map(is_option, argv[at + 1 :])):
        yield from ((place, Reading()) for place in separators)
        # a file is named by a text in quotes; in front of the first there is none
        _, quote, rest = argv[at].partition('"')
        yield at, Reading(parts=tuple(candidates(quote + rest)) if quote else ())


def needed(words: Sequence[str]) -> bool:
    """Whether there may be such a program among these words."""
    return not (SEDS | AWKS).isdisjoint(words)
