"""awk, pagers, printf: programs and keys among their arguments are read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from veil.classify.base import COMPLEX, MUTATING, NETWORK, READ, UNKNOWN, Effect, Verdict, worst
from veil.classify.judging import Judge, by_table, tool_of
from veil.classify.options import take_apart
from veil.classify.tables import Row
from veil.classify.variables import dangerous
from veil.classify.words import DYNAMIC, Word

_AWK_TOKENS = re.compile(
    r"""(?P<space>[ \t\r]+|\\\n|\#[^\n]*) | (?P<string>"(?:\\.|[^"\\\n])*")
    | (?P<number>\d[\w.]*|\.\d\w*) | (?P<name>[A-Za-z_]\w*)
    | (?P<directive>@[A-Za-z_]*) | (?P<newline>\n) | (?P<operator>\|\||\|&|>>|>=|<=|==|!=|&&|!~|\+\+|--|\*\*|.)""",
    re.VERBOSE | re.DOTALL,
)
_REGEX_AFTER = frozenset(
    {
        "(",
        ",",
        "{",
        "}",
        ";",
        "!",
        "~",
        "!~",
        "&&",
        "||",
        "\n",
        "",
        "?",
        ":",
        "=",
        "==",
        "return",
        "print",
        "printf",
        "case",
        "in",
        "!=",
        "|",
    }
)


class AwkScript:
    """Finds what an awk program does beyond reading: ``system``, pipes, redirections, directives."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Verdict] = []

    def verdicts(self) -> list[Verdict]:
        """Verdicts of the constructs that are more than reading."""
        at, last, depth, printing = 0, "", 0, -1
        while at < len(self.text):
            if self.text[at] == "/" and last in _REGEX_AFTER:
                at = self._regex(at)
                last = "/"
                continue
            token = _AWK_TOKENS.match(self.text, at)
            if token is None:
                break
            at = token.end()
            kind, value = token.lastgroup, token[0]
            if kind == "space":
                continue
            if value in ("(", "["):
                depth += 1
            elif value in (")", "]"):
                depth -= 1
            if value in ("print", "printf"):
                printing = depth
            elif value in (";", "\n", "}"):
                printing = -1
            self._look(kind or "", value, at, printing == depth and printing >= 0)
            last = value if kind in ("operator", "newline") or value in _REGEX_AFTER else "x"
        return self.found

    def _regex(self, at: int) -> int:
        """The end of a regular expression; a slash inside brackets does not end it in every awk, so the line does."""
        end = at + 1
        while end < len(self.text) and self.text[end] not in "/\n":
            end += 2 if self.text[end] == "\\" else 1
        return end + 1

    def _look(self, kind: str, value: str, at: int, printing: bool) -> None:
        if kind == "name" and value == "system":
            self.found.append(Verdict(COMPLEX, "awk's system runs a shell"))
        elif kind == "directive":
            self.found.append(Verdict(COMPLEX, "an awk directive loads code or calls by name"))
        elif value in ("|", "|&"):
            self.found.append(Verdict(COMPLEX, "an awk pipe runs a shell"))
        elif value == ">>" or (value == ">" and printing):
            target = re.match(r'\s*"((?:[^"\\]|\\.)*)"\s*(?:[;}\n]|$)', self.text[at:])
            path = target[1] if target and "\\" not in target[1] and DYNAMIC not in target[1] else None
            if path in ("/dev/stdout", "/dev/stderr", "/dev/null", "-"):
                return
            effects = (Effect(path, "append" if value == ">>" else "write"),) if path is not None else ()
            self.found.append(Verdict(MUTATING, "awk writes a file", effects))
        elif kind == "string" and ("/inet" in value or ("\\" in value and "/inet" in value.replace("\\", ""))):
            self.found.append(Verdict(NETWORK, "awk's /inet connects"))
        elif kind == "string" and re.search(r"\\(?:x|[0-7])", value) and "inet" in value:
            self.found.append(Verdict(COMPLEX, "a string that hides what it names"))


def judge_awk(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """awk: options, then the program."""
    tool = tool_of(row)
    arguments = take_apart(tool, words, stop_at_operand=True)
    verdict, _ = by_table(row, [*words[: len(words) - len(arguments.operands)], *arguments.operands[:1]])
    found = [verdict]
    programs = list(arguments.values("-e", "--source"))
    if not programs and not arguments.has("-f", "--file", "-E", "--exec"):
        programs = list(arguments.operands[:1])
    for word in programs:
        if word.splits or DYNAMIC in word.text:
            found.append(Verdict(COMPLEX, "the awk program is known only at run time"))
        found.extend(AwkScript(word.text.replace("\1", "*")).verdicts())
    for value in arguments.values("-i", "--include"):
        if value.text == "inplace":
            found[0] = Verdict(MUTATING, "awk edits files in place")
    return worst(found)


def judge_pager(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """less and more: a ``+`` argument is a list of keys, which may run a program or write a file."""
    verdict, _ = by_table(row, words)
    for word in words:
        if word.text.startswith("+") and not re.fullmatch(r"\+{1,2}(G|F|\d*g?|/[^\n]*)", word.text):
            return verdict.at_least(UNKNOWN, "keys typed ahead into the pager")
        if word.may_be_option():
            return verdict.at_least(COMPLEX, "an argument known only at run time may be an option")
    return verdict


def judge_printf(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """printf: ``-v NAME`` evaluates a subscript."""
    if words and words[0].text.startswith("-v"):
        target = words[0].tail(2) if len(words[0].text) > 2 else (words[1] if len(words) > 1 else words[0])
        if not target.literal or "[" in target.text:
            return Verdict(COMPLEX, "a subscript is evaluated")
        if dangerous(target.text):
            return Verdict(COMPLEX, f"{target.text} decides which code other programs run")
    if words and (words[0].splits or words[0].text.startswith(DYNAMIC)):
        return Verdict(READ, "prints")
    return Verdict(READ, "prints")
