"""sed: its script is read, since it can write files and run programs without any option that says so."""

from __future__ import annotations

import re
from collections.abc import Sequence

from veil.classify.base import COMPLEX, MUTATING, Effect, Verdict, worst
from veil.classify.judging import Judge, by_table
from veil.classify.tables import Row
from veil.classify.words import DYNAMIC, Word

_BRACKET = re.compile(r"\[\^?\]?(?:\[:[a-z]+:\]|\[\.[^\n]*?\.\]|\[=[^\n]*?=\]|[^\]\n])*\]")


def sed_verdicts(text: str) -> list[Verdict]:
    """Verdicts of what a sed script does beyond editing its stream."""
    readings = [SedScript(text, shield).read() for shield in (True, False)]
    found = [verdict for reading in readings for verdict in reading.found]
    if not any(reading.clear for reading in readings):
        found.append(Verdict(COMPLEX, "a sed script that cannot be followed"))
    return found


class _Unclear(Exception):
    """The sed script cannot be followed from here on."""


class SedScript:
    """Follows a sed script command by command. What it cannot follow is an error, never a guess.

    ``shield``: whether a bracket expression hides the delimiter. Some seds think so and some do not: read it both ways.
    ``files``: names that it reads or writes, as they stand there.
    """

    def __init__(self, text: str, shield: bool) -> None:
        self.text = text
        self.shield = shield
        self.at = 0
        self.found: list[Verdict] = []
        self.files: list[str] = []
        self.clear = True

    def read(self) -> SedScript:
        """Follows it to its end; ``found`` are commands that are more than editing, ``clear`` whether it got there."""
        try:
            while self.at < len(self.text):
                self._command()
        except _Unclear:
            self.clear = False
        return self

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self, characters: str) -> None:
        while self._peek() and self._peek() in characters:
            self.at += 1

    def _until(self, delimiter: str) -> str:
        """Up to the next unescaped delimiter, which is passed."""
        begin = self.at
        while self.at < len(self.text):
            character = self.text[self.at]
            if self.shield and character == "[" and delimiter != "[":
                bracket = _BRACKET.match(self.text, self.at)
                if bracket is not None:
                    self.at = bracket.end()
                    continue
            if character == "\\":
                self.at += 2
                continue
            self.at += 1
            if character == delimiter:
                return self.text[begin : self.at - 1]
        raise _Unclear

    def _line(self) -> str:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        line, self.at = self.text[self.at : end], end
        return line

    def _address(self) -> None:
        character = self._peek()
        if character in "/\\" and character:
            self.at += 1
            delimiter = "/"
            if character == "\\":
                delimiter = self._peek()
                self.at += 1
                if not delimiter or delimiter in "\\\n":
                    raise _Unclear
            self._until(delimiter)
            self._skip("IM")
        else:
            self._skip("0123456789$~+")

    def _command(self) -> None:
        self._skip(" \t\n;}")
        self._address()
        self._skip(" \t")
        if self._peek() == ",":
            self.at += 1
            self._skip(" \t")
            self._skip("+~")
            self._address()
        self._skip(" \t!")
        character = self._peek()
        if not character:
            return
        self.at += 1
        if character in "{};\n":
            return
        if character in "#:btTrRv":
            # a label or a name up to the end of the line; GNU ends labels and versions at a semicolon, and a label that
            # is set at a blank as well: what follows is read too
            line = self._line()
            if character in "rR":
                self.files.append(line.lstrip(" \t"))
            ends = (";} \t" if character == ":" else ";}") if character in "btTv:" else ""
            begin = len(line) - len(line.lstrip(" \t"))
            stops = [line.index(stop, begin) for stop in ends if stop in line[begin:]]
            if stops:
                self.at -= len(line) - min(stops)
            return
        self._edit(character)

    def _edit(self, character: str) -> None:
        if character in "aic":
            self._inserted()
        elif character in "=dDgGhHnNpPxzFlqQL":
            self._skip("0123456789 \t")
            if self._peek() and self._peek() not in ";\n}#":
                raise _Unclear
        elif character in "wW":
            self._writes(self._line())
        elif character == "e":
            self.found.append(Verdict(COMPLEX, "sed's e command runs a shell"))
            self._line()
        elif character == "s":
            self._substitute()
        elif character == "y":
            delimiter = self._peek()
            self.at += 1
            if not delimiter:
                raise _Unclear
            self._until(delimiter)
            self._until(delimiter)
        else:
            raise _Unclear

    def _inserted(self) -> None:
        while True:
            line = self._line()
            if not line.endswith("\\") or not self._peek():
                return
            self.at += 1

    def _substitute(self) -> None:
        delimiter = self._peek()
        self.at += 1
        if not delimiter or delimiter in "\\\n":
            raise _Unclear
        self._until(delimiter)
        shield, self.shield = self.shield, False
        self._until(delimiter)
        self.shield = shield
        while True:
            flag = self._peek()
            if flag and flag in "gpiImM0123456789":
                self.at += 1
            elif flag == "e":
                self.at += 1
                self.found.append(Verdict(COMPLEX, "the e flag of sed's s runs a shell"))
            elif flag == "w":
                self.at += 1
                self._writes(self._line())
                return
            elif not flag or flag in " \t;\n}#":
                return
            else:
                raise _Unclear

    def _writes(self, path: str) -> None:
        self.files.append(path.lstrip(" \t"))
        path = path.strip()
        if path in ("/dev/stdout", "/dev/stderr"):
            return
        effects = (Effect(path, "write"),) if path and DYNAMIC not in path else ()
        self.found.append(Verdict(MUTATING, "sed's w writes a file", effects))


def judge_sed(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """sed: options, then every script."""
    spelled = [word._replace(text=_in_place(word.text)) for word in words]
    verdict, arguments = by_table(row, spelled)
    scripts = list(arguments.values("-e", "--expression"))
    files = list(arguments.operands)
    if not scripts and not arguments.has("-f", "--file") and files:
        scripts, files = files[:1], files[1:]
        if arguments.has("-i") and not scripts[0].text and files:
            # BSD's -i takes an empty suffix as a word of its own
            scripts, files = files[:1], files[1:]
    found = [verdict]
    if arguments.has("-i", "--in-place"):
        found[0] = verdict._replace(effects=tuple(Effect(word.text, "write") for word in files if word.literal))
    joined = "\n".join(word.text for word in scripts)
    if any((not word.literal and DYNAMIC in word.text) or word.splits for word in scripts):
        found.append(Verdict(COMPLEX, "the sed script is known only at run time"))
    found.extend(sed_verdicts(joined.replace("\1", "*")))
    return worst(found)


def _in_place(text: str) -> str:
    """``-i.bak`` and ``-ni``: what follows the i is a suffix, no options. (``-s`` and ``-E`` before it are.)"""
    if text.startswith("-") and not text.startswith("--"):
        before, found, _ = text.partition("i")
        if found and all(letter in "nrEsuzb" for letter in before[1:]):
            return before + found
    return text
