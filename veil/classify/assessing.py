"""``assess``: the whole pre-check of one command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache

from veil.classify import git, machine, sed, shells, speaking, storing, streams, wrapping
from veil.classify.base import CATEGORIES, DESTRUCTIVE, RANK, READ, Assessment, Segment, Verdict, undoable
from veil.classify.grammar import joined
from veil.classify.judging import Decider, Judge, judge_subs
from veil.classify.walk import Findings, Walker, judge_script
from veil.classify.words import plain
from veil.model.errors import BadInput


@lru_cache(maxsize=1)
def deciders() -> Mapping[str, Decider]:
    """Every ``judge_NAME`` by its name."""
    found: dict[str, Decider] = {"subs": judge_subs}
    for module in (storing, streams, sed, shells, wrapping, speaking, machine, git):
        found.update({name[6:]: value for name, value in vars(module).items() if name.startswith("judge_")})
    return found


def assess(command: str | Sequence[str]) -> Assessment:
    """Tells what a command may do, without running or looking at anything.

    Args:
        command: a text for bash, or an argument list, which no shell touches: there, every character stands for itself.
    Returns:
        category, effects, a segment for each simple command and redirection, and a warning where something is lost.
        When in doubt the answer is the worse one. It knows programs by name: what is on the machine under that name,
        and what a project's own settings make of it, it cannot know.
    Raises:
        BadInput: neither a text nor a sequence of texts, or an empty sequence.
    """
    findings = Findings()

    def walker(text: str, within: tuple[int, int] | None) -> Walker:
        return Walker(text, findings, judge, within)

    judge = Judge(deciders(), lambda text, span: judge_script(walker, findings, text, span))
    if isinstance(command, str):
        for number, reading in enumerate(dict.fromkeys((command, joined(command)))):
            # in a second reading positions differ: its segments stand for the whole command
            walker(reading, None if number == 0 else (0, len(command))).run()
    else:
        _argv(command, judge, findings)
    return _put_together(findings)


def _argv(command: Sequence[str], judge: Judge, findings: Findings) -> None:
    if not isinstance(command, Sequence) or not command or not all(isinstance(word, str) for word in command):
        raise BadInput("command", command, "a text, or a non-empty sequence of texts")
    text = shlex.join(command)
    words, at = [], 0
    for word in command:
        end = at + len(shlex.quote(word))
        words.append(plain(word, at, end))
        at = end + 1
    findings.add(text, (0, len(text)), judge.program(words))


def _put_together(findings: Findings) -> Assessment:
    segments: dict[Segment, Verdict] = {}
    for segment, verdict in findings.segments:
        segments.setdefault(segment, verdict)
    if not segments:
        return Assessment(READ, True, (), ())
    ordered = tuple(sorted(segments, key=lambda segment: (segment.span[0], -segment.span[1])))
    category = CATEGORIES[max(RANK[segment.category] for segment in segments)]
    effects = tuple(dict.fromkeys(effect for segment in ordered for effect in segment.effects))
    warning = ""
    if category == DESTRUCTIVE:
        lost = dict.fromkeys(segments[s].warning or s.reason for s in ordered if s.category == DESTRUCTIVE)
        warning = "would be lost: " + "; ".join(lost)
    return Assessment(category, undoable(segments.values()), effects, ordered, warning)
