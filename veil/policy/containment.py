"""Which parts of an argument may be taken for a path. Whether they lead out of the workspace is looked at elsewhere.

A program decides by itself what it opens. So every reading counts that a usual program might make of a word: the whole
word, what is glued to an option letter, what stands after ``=``, ``:``, ``,`` or ``@``, inside quotes or brackets.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from veil.policy.names import skeleton
from veil.policy.options import is_option

#: After one of these a path may begin, and before one it may end.
_SEPARATORS = re.compile(r"[=,:@;|<>\"'(){}\[\]!^+&`%#*?]")
#: An address on the network is no path, unless a folder with the name of its scheme is there (``Candidate.unless``).
#: Any other word and a colon in front of slashes is a host, a label or a mount, and the slashes begin a path.
_ADDRESS = re.compile(
    r"(?:https?|ftps?|sftp|ssh|git|git\+(?:ssh|https?)|svn(?:\+ssh)?|wss?|s3|gs|ldaps?|rsync|redis|amqps?|mqtt|tcp|udp"
    r"|postgres(?:ql)?|mysql|mongodb(?:\+srv)?|oci|docker|npm|urn|mailto|smtps?|imaps?|irc|telnet|nntp)://[^\s,;|<>\"'`]*",
    re.IGNORECASE,
)
#: Of schemes that are not known here a name has to follow, as of a host: ``sqlite:///x`` is a file. Somebody may still
#: take what follows for a path, so it is one where there is such a file.
_OTHER_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9+.-])(?!file:)[A-Za-z][A-Za-z0-9+.-]+://(?=[A-Za-z0-9_\[])[^\s,;|<>\"'`]*", re.IGNORECASE
)
_FILE_ADDRESS = re.compile(r"(?:^|[^A-Za-z0-9_.-])file:|^-[A-Za-z0-9]file:|^-[^-].*file:/", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{\w+[^}]*\}|\w+)/")
_BLANK = re.compile(r"\s(?=\S)")
#: What a script of sed reads or writes stands behind these letters, up to the end of the line: where a command may
#: begin, or among the flags of ``s///``. With ``_TAIL`` it looks like the end of ``s/w/x/`` just as well.
_SED = re.compile(r"(?<![A-Za-z])[gpiIeEmM]*[rRwW][ \t]*")
_TAIL = re.compile(r"/[^/]*/[A-Za-z\d]*$")
#: No path is longer.
_LONGEST = 4096
#: More separators than this, and only neighbouring ones are taken together.
_MANY = 12
#: Up to here a slash behind a dash is taken for the beginning of a path behind bundled letters (``-xvf/etc/x``);
#: further on it is more likely to stand in the middle of one (``-Isrc/lib``), and the disk has to say.
_BUNDLE = 4
#: Letters glued to a short option that are each tried as the beginning of a name.
_GLUED = 64


class Candidate(NamedTuple):
    """A text that may be opened as a path, relative to the directory of the run.

    Attributes:
        only_if_there: it counts only when that path exists (a slash in prose or in the middle of a name).
        or_folder: or when the folder exists that it would be made in, other than the root.
        unless: it counts only when this folder exists (``https:`` in front of an address).
    """

    text: str
    only_if_there: bool = False
    or_folder: bool = False
    unless: str | None = None


def refused(word: str) -> str | None:
    """Why a word is refused whatever is on the disk: the address of a file, a home, a variable in front of a path."""
    if _FILE_ADDRESS.search(word) or (not word.isascii() and _FILE_ADDRESS.search(skeleton(word))):
        return "an address of a local file"
    if "~" in word or "$" in word:
        addresses = [match.span() for match in _ADDRESS.finditer(word)]
        for start, _ in _pieces(word):
            if word.startswith("~", start) and not _within(start, addresses):
                return "a path in a home directory"
            if _VARIABLE.match(word, start):
                return "a path behind a variable, which nothing here expands"
    return None


def candidates(word: str) -> Iterator[Candidate]:
    """Every text in a word that a program may open as a path; each once."""
    seen: set[str] = set()
    addresses = [match.span() for match in _ADDRESS.finditer(word)] if "://" in word else []
    others = [match.span() for match in _OTHER_ADDRESS.finditer(word)] if "://" in word else []
    for start, end in _pieces(word):
        text = word[start:end]
        # an option is no path, unless a file has that very name
        if not text or text in seen or (end - start < len(word) and _plain_option(text)):
            continue
        seen.add(text)
        if _within(start, addresses):
            address = next(span for span in addresses if span[0] <= start < span[1])
            yield Candidate(text, unless=word[address[0] : address[1]].split("/")[0])
        elif any(start < first < end for first, _ in addresses):
            # the address stands behind an option or a name: as a path it would begin with a folder of that name
            yield Candidate(text, unless=text.split("/")[0])
        elif any(start <= first < end for first, _ in others):
            yield Candidate(text, unless=text.split("/")[0])
        elif _within(start, others) and (word.startswith("//", start) or word[start - 1] not in ":,@"):
            yield Candidate(text, only_if_there=True, or_folder=True)
            if text.startswith("//"):
                yield Candidate(text[2:], only_if_there=True, or_folder=True)
        else:
            inner = start > _BUNDLE and word[start] in "/." and word[start - 1].isalnum()
            yield Candidate(text, only_if_there=inner, or_folder=inner and word[start] == "/")
    for match in _BLANK.finditer(word):
        text = re.split(r"[\s\"'`)};|&<>]", word[match.end() : match.end() + _LONGEST], maxsplit=1)[0]
        if text not in seen and len(text) > 1:
            seen.add(text)
            yield Candidate(text, only_if_there=True, or_folder=True)


def of_sed(word: str) -> Iterator[Candidate]:
    """The files that a word names if it is a script of sed."""
    for match in _SED.finditer(word):
        text = word[match.end() : match.end() + _LONGEST].split("\n", 1)[0]
        if text.strip("/") and len(text) < _LONGEST:
            unclear = _TAIL.match(text) is not None
            yield Candidate(text, only_if_there=unclear, or_folder=unclear)


def _within(start: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(first <= start < last for first, last in spans)


def _plain_option(text: str) -> bool:
    return is_option(text) and "/" not in text


def _pieces(word: str) -> Iterator[tuple[int, int]]:
    """The word, its tails and middles between separators, and what may be glued to an option letter, as spans."""
    yield 0, len(word)
    marks = [match.start() for match in _SEPARATORS.finditer(word)]
    starts = [mark + 1 for mark in marks]
    ends = [*marks, len(word)]
    if is_option(word) and word[1] != "-":
        # behind each letter that may be an option, and where the letters end
        letters = re.match(r"-[A-Za-z0-9]*", word)
        end = len(word) if letters is None else letters.end()
        starts += [*range(2, min(end, _GLUED)), *([end] if 2 <= end < len(word) else [])]
    for start in (0, *starts):
        at = bisect_right(ends, start)
        behind = ends[at:] if len(ends) <= _MANY else {*ends[at : at + 1], *ends[-1:]}
        yield from ((start, end) for end in behind if end > start)


_HOME = re.compile(r"\$\{?(?:HOME|OLDPWD)\}?[\"']?/")


def leaving(programs: Iterable[Sequence[str]], words: Iterable[str]) -> tuple[str, str] | None:
    """What of a text for a shell leads to a folder that stands nowhere in it, and why: ``cd`` alone, or a home.

    Args:
        programs: that the text starts, with their arguments. words: that the text itself is one of, as it was given.
    """
    for one in programs:
        if one[0] in ("cd", "pushd") and all(word.startswith("-") for word in one[1:]):
            return " ".join(one), "it leads to a home directory, or to where somebody was before"
    homes = (word for word in words if _HOME.search(word))
    return next(((word, "a path in a home directory") for word in homes), None)
