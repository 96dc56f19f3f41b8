"""Reads an argument list by a tool's table: which options are there, with which values, and what is left over.

Under-flagging is the fault to avoid: a long option may be abbreviated, short ones may be bundled, and a word that is
known only at run time may be an option. Whatever can be read as a dangerous option is taken for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from veil.classify.base import COMPLEX, MUTATING, RANK, READ, UNKNOWN, Effect, Verdict, worst
from veil.classify.words import DYNAMIC, GLOB, Word

#: The keywords of a table row that list options, by the category that they lead to.
LEVELS = ("read", "mutating", "unknown", "complex", "network", "destructive")


class Rule(NamedTuple):
    """What one option leads to. ``valued``: the next word (or the rest of this one) belongs to it."""

    category: str
    valued: bool
    writes: bool = False


@dataclass(frozen=True)
class Tool:
    """One row of the tables, read.

    Attributes:
        category: where no option says otherwise.
        why: what it does, in a few words.
        rules: by option, dashes included.
        only: whether an option that is not listed makes it unknown.
        style: ``gnu`` (bundled short, abbreviated long options) or ``single`` (``-name``; nothing is bundled).
        operands: what happens to its operands: one of the words of ``Effect.what``, or nothing.
        skip: how many operands before those are something else.
        last: only the last operand is written.
        most: more operands than this make it ``extra``; -1 for any number.
        extra: that category.
        address: the category of an operand that is an address (``scheme://...``); nothing where that is no matter.
        listed: whether an operand ``@file`` stands for options that are in that file.
        reversible: when the category does not decide it.
        lost: the warning, when it is destructive.
        risk: the rank of the worst that an option of it can lead to.
    """

    category: str
    why: str
    rules: Mapping[str, Rule]
    only: bool = False
    style: str = "gnu"
    operands: str = ""
    skip: int = 0
    last: bool = False
    most: int = -1
    extra: str = UNKNOWN
    address: str = ""
    listed: bool = False
    reversible: bool | None = None
    lost: str = ""
    risk: int = 0


def read_row(row: Mapping[str, Any], above: Mapping[str, Rule] | None = None) -> Tool:
    """A ``Tool`` out of a row of data. Option lists are words; a trailing ``=`` says that it takes a value, ``=>`` that
    it writes the file that the value names."""
    rules: dict[str, Rule] = dict(above or {})
    for level in LEVELS:
        category = READ if level == "read" else level
        for word in row.get(level, "").split():
            name, writes = (word[:-2], True) if word.endswith("=>") else (word, False)
            name, valued = (name[:-1], True) if name.endswith("=") else (name, writes)
            rules[name] = Rule(category, valued, writes)
    named = {key: value for key, value in row.items() if key in _FIELDS}
    risk = max([RANK[rule.category] for rule in rules.values()], default=0)
    if row.get("only"):
        risk = max(risk, RANK[UNKNOWN])
    return Tool(row.get("category", READ), row.get("why", ""), rules, risk=risk, **named)


_FIELDS = {"only", "style", "operands", "skip", "last", "most", "extra", "address", "listed", "reversible", "lost"}


class Found(NamedTuple):
    """One option as it was met. ``value`` is None when it has none; ``rule`` when the table does not know it."""

    name: str
    rule: Rule | None
    value: Word | None


class Arguments(NamedTuple):
    """An argument list, taken apart. ``open`` are words that may turn out to be options."""

    options: tuple[Found, ...]
    operands: tuple[Word, ...]
    open: tuple[Word, ...]

    def values(self, *names: str) -> Iterator[Word]:
        """The values of those options."""
        return (found.value for found in self.options if found.name in names and found.value is not None)

    def has(self, *names: str) -> bool:
        """Whether one of those options is there."""
        return any(found.name in names for found in self.options)


def take_apart(tool: Tool, words: Sequence[Word], stop_at_operand: bool = False) -> Arguments:
    """Splits words (without the tool's name) into options and operands.

    ``stop_at_operand``: options end with the first operand (wrappers, tools with sub-commands).
    """
    options: list[Found] = []
    operands: list[Word] = []
    unsure: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        text = word.text
        if word.may_be_option() or (text[:1] == "-" and word.splits):
            unsure.append(word)
            operands.append(word)
            if stop_at_operand:
                break
            continue
        if text == "--":
            break
        if len(text) < 2 or text[0] != "-":
            operands.append(word)
            if stop_at_operand:
                break
            continue
        following = words[at] if at < len(words) else None
        met, took, sure = _option(tool, word, following)
        options.extend(met)
        if not sure:
            unsure.append(word)
        at += took
        if took and following is not None and (following.splits or following.text.startswith(GLOB)):
            # an unquoted value, or a pattern for any name, may bring more words along, and these may be options
            unsure.append(following)
    operands.extend(words[at:])
    return Arguments(tuple(options), tuple(operands), tuple(unsure))


def _option(tool: Tool, word: Word, following: Word | None) -> tuple[list[Found], int, bool]:
    """What one word that begins with a dash is: options, how many words they took beyond it, whether that is sure."""
    text = word.text
    name, equals, _ = text.partition("=")
    whole = DYNAMIC not in name and GLOB not in name
    if text.startswith("--") or tool.style == "single":
        if not whole:
            return [Found(word.known, None, None)], 0, False
        rule, name = _long(tool, name)
        if rule is None and tool.style == "single":
            # these take one dash or two for the same
            rule, name = _long(tool, name[1:] if name.startswith("--") else "-" + name)
        if equals:
            return [Found(name, rule, word.tail(len(text.partition("=")[0]) + 1))], 0, True
        if rule is not None and rule.valued:
            return [Found(name, rule, following)], 1 if following is not None else 0, True
        return [Found(name, rule, None)], 0, True
    return _bundle(tool, word, following)


def _bundle(tool: Tool, word: Word, following: Word | None) -> tuple[list[Found], int, bool]:
    met: list[Found] = []
    whole = tool.rules.get(word.text.partition("=")[0])
    if whole is not None and len(word.text) > 2:
        # single-dash long options of a tool that bundles as well
        if "=" in word.text:
            return [Found(word.text.partition("=")[0], whole, word.tail(word.text.index("=") + 1))], 0, True
        return (
            [Found(word.text, whole, following if whole.valued else None)],
            1 if whole.valued and following else 0,
            True,
        )
    for at, letter in enumerate(word.text[1:], 1):
        if letter in (DYNAMIC, GLOB):
            return met, 0, False
        name = "-" + letter
        rule = tool.rules.get(name)
        if rule is not None and rule.valued:
            if at + 1 < len(word.text):
                met.append(Found(name, rule, word.tail(at + 1)))
                return met, 0, True
            met.append(Found(name, rule, following))
            return met, 1 if following is not None else 0, True
        met.append(Found(name, rule, None))
    return met, 0, True


def _long(tool: Tool, name: str) -> tuple[Rule | None, str]:
    rule = tool.rules.get(name)
    if rule is not None or len(name) < 3 or tool.style == "single":
        return rule, name
    # an abbreviation: the worst of what it can stand for
    meant = [(known, found) for known, found in tool.rules.items() if known.startswith(name)]
    if not meant:
        return None, name
    known, found = max(meant, key=lambda pair: RANK[pair[1].category])
    return found, known


def judge_by(tool: Tool, arguments: Arguments) -> Verdict:
    """The verdict of the table alone."""
    verdicts = [Verdict(tool.category, tool.why, (), tool.reversible, tool.lost)]
    for name, rule, value in arguments.options:
        if rule is None:
            if tool.only:
                verdicts.append(Verdict(UNKNOWN, f"option {name} is not in the table"))
        elif rule.category != READ:
            effects = (Effect(value.text, "write"),) if rule.writes and value is not None and value.literal else ()
            verdicts.append(Verdict(rule.category, f"option {name}", effects, None, _lost(tool, name)))
    if tool.risk > RANK[tool.category] and arguments.open:
        verdicts.append(Verdict(COMPLEX, "an argument known only at run time may be an option"))
    # a pattern may stand for more than one
    several = any(word.splits or GLOB in word.text for word in arguments.operands)
    if 0 <= tool.most < len(arguments.operands) or (tool.most >= 0 and several):
        verdicts.append(Verdict(tool.extra, "with more operands than a mere look takes"))
    values = [found.value for found in arguments.options if found.value is not None]
    if tool.address and any("://" in word.text for word in (*arguments.operands, *values)):
        verdicts.append(Verdict(tool.address, "an address"))
    if tool.listed and any(word.text.startswith("@") for word in arguments.operands):
        verdicts.append(Verdict(COMPLEX, "options that stand in a file"))
    verdict = worst(verdicts)
    if tool.operands and RANK[verdict.category] >= RANK[MUTATING]:
        verdict = verdict._replace(effects=(*verdict.effects, *effects_of(tool, arguments)))
    return verdict


def _lost(tool: Tool, option: str) -> str:
    return tool.lost or f"what option {option} removes"


def effects_of(tool: Tool, arguments: Arguments) -> tuple[Effect, ...]:
    """Effects on operands that are there literally."""
    touched = arguments.operands[tool.skip :]
    if tool.last:
        touched = touched[-1:]
    return tuple(Effect(word.text, tool.operands) for word in touched if word.literal)


@lru_cache(maxsize=1)
def no_options() -> Tool:
    """A tool of which nothing is known but that it stops at its first operand."""
    return read_row({})
