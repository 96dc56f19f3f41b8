"""From an argument list to a verdict: finds the tool's row and has it judged.

The functions that judge more than a table can say (*deciders*) are given by the caller by name, so that this module
knows none of them.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from veil.classify import tables
from veil.classify.base import COMPLEX, DESTRUCTIVE, NETWORK, RANK, READ, UNKNOWN, Verdict, worst
from veil.classify.options import Arguments, Tool, judge_by, read_row, take_apart
from veil.classify.words import Word, listed

#: Folders whose programs are taken for what their name says.
PLACES = listed(
    "/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /opt/homebrew/bin "
    "/opt/local/bin /snap/bin /run/current-system/sw/bin"
)
_VERSION = re.compile(r"-?\d+(\.\d+)*\Z")
_ODD_NAME = re.compile(r"[^\w.+@%:/\[~,^=-]")
_WORD = re.compile(r"[A-Za-z][\w.-]*")
_PROBES = ("--version", "--help")
#: Deeper than this, one program inside another is not followed.
DEEPEST = 40


class Scripts(Protocol):
    """Judges a text that a shell will run."""

    def __call__(self, text: str, span: tuple[int, int], /) -> Verdict:
        """Verdict of the whole text; ``span`` is where it stands in the command."""


Decider = Callable[["Judge", "tables.Row", str, Sequence[Word]], Verdict]


class Judge:
    """Judges programs.

    Attributes:
        script: judges the text of an inner shell.
        functions: names that the command itself defines; their bodies are judged where they stand.
    """

    def __init__(self, deciders: Mapping[str, Decider], script: Scripts) -> None:
        self.deciders = deciders
        self.script = script
        self.functions: set[str] = set()
        self._away = 0
        self._depth = 0

    def program(self, words: Sequence[Word]) -> Verdict:
        """What running this argument list may do. An empty one does nothing."""
        if not words:
            return Verdict(READ, "runs nothing")
        if self._depth >= DEEPEST:
            return crude(" ".join(word.text for word in words))
        self._depth += 1
        try:
            return self._program(words[0], words[1:])
        finally:
            self._depth -= 1

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """What is judged within runs on another machine or in a container: files there are no files here."""
        self._away += 1
        try:
            yield
        finally:
            self._away -= 1

    def here(self, verdict: Verdict) -> Verdict:
        """The verdict with the effects that it has on this machine."""
        return verdict._replace(effects=()) if self._away else verdict

    def _program(self, head: Word, rest: Sequence[Word]) -> Verdict:
        if not head.literal:
            return Verdict(COMPLEX, "which program runs is known only at run time")
        name = head.text
        if not name.isascii() or not name.isprintable():
            return Verdict(COMPLEX, "the program's name has characters that look like others or are not seen")
        if _ODD_NAME.search(name) and name != "!":
            return Verdict(COMPLEX, "an odd name for a program")
        if "/" in name:
            # a link may make `..` lead elsewhere; the folders of PLACES are not such links
            folder, name = posixpath.split(posixpath.normpath(name))
            if folder not in PLACES:
                return Verdict(UNKNOWN, "a program at a path of its own")
        elif name in self.functions:
            return Verdict(READ, "a function that is judged where it is defined")
        row = find_row(name)
        if row is None:
            return Verdict(UNKNOWN, f"{name} is not known here")
        if len(rest) == 1 and rest[0].literal:
            only = rest[0].text
            if (only in _PROBES and row.get("judge") != "eval") or only in row.get("probe", "").split():
                return Verdict(READ if only == "--help" else row.get("asks", READ), "asks for a version or help")
        return self.by_row(row, name, rest)

    def by_row(self, row: tables.Row, name: str, words: Sequence[Word]) -> Verdict:
        """Judges words (without the name) by one row."""
        decider = row.get("judge")
        if decider is not None:
            return self.deciders[decider](self, row, name, words)
        return by_table(row, words)[0]

    def maker(self, row: tables.Row, words: Sequence[Word]) -> Verdict:
        """The table's own verdict, as part of a decider's."""
        return by_table(row, words)[0]


def crude(text: str) -> Verdict:
    """The verdict of a text that cannot be followed: any word of it may be a program."""
    found = [Verdict(COMPLEX, "too large, too deep or too odd to follow")]
    for name in set(_WORD.findall(text.replace("\\", "").replace("'", "").replace('"', ""))):
        row = tables.every().get(name)
        if row is not None and row.get("category") in (NETWORK, DESTRUCTIVE):
            found.append(
                Verdict(row["category"], f"too much to follow; {name} is among it", (), None, "what cannot be told")
            )
        elif row is not None and row.get("subs"):
            found.append(Verdict(NETWORK, f"too much to follow; {name} is among it"))
    return worst(found)


def find_row(name: str) -> tables.Row | None:
    """The row of a tool; ``python3.12`` and ``gcc-13`` are found by their names without a version."""
    rows = tables.every()
    row = rows.get(name)
    if row is None:
        row = rows.get(_VERSION.sub("", name))
    if row is None and name.partition(".")[0] in ("mkfs", "fsck"):
        row = rows.get(name.partition(".")[0])
    return row


_READ: dict[int, tuple[tables.Row, Tool]] = {}


def tool_of(row: tables.Row) -> Tool:
    """The row, read; once per row. (The row is kept beside it, so that its identity stays its own.)"""
    known = _READ.get(id(row))
    if known is None:
        known = _READ[id(row)] = (row, read_row(row))
    return known[1]


def by_table(row: tables.Row, words: Sequence[Word]) -> tuple[Verdict, Arguments]:
    """The table's verdict, and the argument list taken apart."""
    tool = tool_of(row)
    arguments = take_apart(tool, words)
    return judge_by(tool, arguments), arguments


def option_verdicts(row: tables.Row, arguments: Arguments, category: str = READ, why: str = "") -> Verdict:
    """What the options lead to when the tool itself does nothing (wrappers, tools with sub-commands)."""
    tool = tool_of(row)
    outer = Tool(category, why, tool.rules, tool.only, tool.style, address=tool.address, risk=tool.risk, lost=tool.lost)
    return judge_by(outer, arguments)


def judge_subs(judge: Judge, row: tables.Row, name: str, words: Sequence[Word]) -> Verdict:
    """A tool with sub-commands: the worst of its global options and of the sub-command's row."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    outer = option_verdicts(row, arguments, READ, row.get("why", "tells"))
    if not arguments.operands:
        return outer.at_least(row.get("bare", UNKNOWN), f"{name} without a sub-command")
    inner = [judge_sub(judge, row, name, arguments.operands)]
    if any(found.rule is None and found.value is None for found in arguments.options) and len(arguments.operands) > 1:
        # an option that is not listed may have taken the first operand as its value
        inner.append(judge_sub(judge, row, name, arguments.operands[1:]))
    verdict = worst(inner)
    return worst([outer, verdict]) if RANK[outer.category] > RANK[verdict.category] else verdict


def judge_sub(judge: Judge, row: tables.Row, name: str, operands: Sequence[Word]) -> Verdict:
    """The sub-command at the head of the operands, by the longest of its names that is listed."""
    if not operands[0].literal:
        return Verdict(COMPLEX, f"which sub-command of {name} runs is known only at run time")
    subs: Mapping[str, Any] = row["subs"]
    first = operands[0].text
    families = [key for key in subs if key.startswith(first + " ")]
    at = 1
    while families and at < len(operands) and operands[at].literal and operands[at].text.startswith("-"):
        at += 1
    if families and at < len(operands):
        if not operands[at].literal:
            return Verdict(COMPLEX, f"which sub-command of {name} {first} runs is known only at run time")
        both = f"{first} {operands[at].text}"
        if both in subs:
            return judge.by_row(subs[both], f"{name} {both}", [*operands[1:at], *operands[at + 1 :]])
        if at > 1:
            # the options before it may have taken it as their value
            behind = [f"{first} {word.text}" for word in operands[at:] if f"{first} {word.text}" in subs]
            if behind:
                return judge.by_row(subs[behind[0]], f"{name} {behind[0]}", operands[1:])
    if first in subs:
        return judge.by_row(subs[first], f"{name} {first}", operands[1:])
    category = row.get("default", UNKNOWN)
    why = row.get("why", "connects") if category == NETWORK else f"{name} {first} is not known here"
    return Verdict(category, why)
