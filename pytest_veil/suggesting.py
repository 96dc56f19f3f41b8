"""A normaliser nobody has yet: the pattern that would have made runs of one step equal, tried before it is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veil.taping import Rules, Step

#: Differing lines that are tried, characters of a line around what varies, and the longest line looked at.
_TRIED, _AROUND, _LONGEST = 5, 24, 2000
_SHAPES = ((r"[0-9]+", r"[0-9]+"), (r"[0-9a-f]+", r"[0-9a-f]+"), (r"\w+", r"\w+"), (r"\S+", r"\S+"))


def suggest(steps: Sequence[Step], where: str | None, rules: Rules) -> str:
    """Python for a normaliser that makes all ``steps`` equal at ``where`` and everywhere else; empty for none.

    It numbers what varies, so that a value told twice has to be the same twice; it erases only if it must.
    """
    from veil.taping import erased, numbered, propose

    if where is None or len(steps) < 2:
        return ""
    texts = [_text(step, where) for step in steps]
    for pattern in _patterns([text for text in texts if text is not None]):
        raw = pattern.encode()
        tries = (
            ("numbered", numbered("mine", 1, "", "mine", raw)),
            ("erased", erased("mine", 1, "", "mine", raw)),
        )
        for made, normaliser in tries:
            registry = rules.registry.adding(normaliser, first=True)
            if propose(steps, replace(rules, names=None, registry=registry)).needed is not None:
                return f'{made}("mine", 1, "what varies", "mine", rb{_literal(pattern)})'
    return ""


def _text(step: Step, where: str) -> str | None:
    if where in ("stdout", "stderr"):
        kept = step.ending.stdout if where == "stdout" else step.ending.stderr
        data: bytes | None = kept.head + kept.tail
    else:
        path = where.removeprefix("files/")
        data = next((change.content for change in step.delta if change.path == path), None)
    try:
        return None if data is None else data.decode("ascii")
    except UnicodeDecodeError:
        return None  # a pattern of bytes that nobody could read


def _patterns(texts: Sequence[str]) -> Iterator[str]:
    """One for each of the first lines that differ, where they differ in one place."""
    rows = [text.split("\n") for text in texts]
    if len(rows) < 2 or len({len(lines) for lines in rows}) != 1:
        return
    differing = [lines for lines in zip(*rows, strict=True) if len(set(lines)) > 1]
    for lines in differing[:_TRIED]:
        if max(map(len, lines)) <= _LONGEST and (found := _pattern(lines)) is not None:
            yield found


def _pattern(lines: Sequence[str]) -> str | None:
    """What varies, with as much around it as tells it from the rest."""
    before = _alike(lines)
    after = _alike([line[before:][::-1] for line in lines])
    while before and re.fullmatch(r"\w", lines[0][before - 1]):
        before -= 1  # whole words: what is equal by chance varies the next time
    while after and re.fullmatch(r"\w", lines[0][len(lines[0]) - after]):
        after -= 1
    values = [line[before : len(line) - after] for line in lines]
    for shape, written in _SHAPES:
        if all(re.fullmatch(shape, value) for value in values):
            head, tail = lines[0][:before], lines[0][len(lines[0]) - after :]
            start = "^" if len(head) <= _AROUND else ""
            end = "$" if len(tail) <= _AROUND else ""
            return f"{start}{_plain(head[-_AROUND:])}(?P<value>{written}){_plain(tail[:_AROUND])}{end}"
    return None


def _alike(lines: Sequence[str]) -> int:
    """Characters that all lines begin with."""
    same = (len(set(column)) == 1 for column in zip(*lines, strict=False))
    return next((at for at, equal in enumerate(same) if not equal), min(map(len, lines)))


def _plain(text: str) -> str:
    """As a pattern; only what means something is escaped, since people read it."""
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def _literal(pattern: str) -> str:
    return f"'{pattern}'" if '"' in pattern else f'"{pattern}"'
