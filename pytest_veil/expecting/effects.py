"""Checks on which files changed. Each puts a part of the changes before the ``changed`` check of the dict form, so that
globs, ignored files, gaps and runs that share a tree are judged in one place."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_veil.expecting.failures import Finding
from veil import BadInput, Change, Judgement, Result

if TYPE_CHECKING:
    from typing import Literal

    Word = Literal["created", "modified", "deleted", "renamed"]

_SPECIAL = re.compile(r"([*?\[\\!])")
_SHOWN = 6


def narrowed(result: Result, changes: Sequence[Change], *, notes: bool = True) -> Result:
    """The same run as if only these files had changed. Without ``notes`` there is no doubt about them either."""
    seen = result.record.observation
    findings = replace(seen.findings, changes=tuple(changes), notes=seen.findings.notes if notes else {})
    return Result(replace(result.record, observation=replace(seen, findings=findings)))


def judged(result: Result, expected: Any) -> Judgement:
    """``changed`` of the dict form. Raises ``BadInput``."""
    return result.judge({"changed": expected}).judgements[0]


def glob_of(result: Result, path: str | os.PathLike[str]) -> str:
    """A glob relative to the working directory: text is one, a path object is taken literally.

    Raises ``BadInput`` for what is neither.
    """
    literal = isinstance(path, os.PathLike)
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise BadInput("path", path, "a path or glob, relative to the working directory of the run")
    if os.path.isabs(text):
        text = os.path.relpath(text, result.cwd)
        if text.startswith(".."):
            # the working directory may be known by the name of a symlink
            real = os.path.relpath(os.path.realpath(os.fspath(path)), os.path.realpath(result.cwd))
            text = text if real.startswith("..") else real
    return _SPECIAL.sub(r"\\\1", text) if literal else text


def happened(result: Result, word: Word, path: str | os.PathLike[str]) -> Finding:
    """Something that the glob matches was created (modified, deleted)."""
    glob = glob_of(result, path)
    if result.record.observation.findings.changes is None:
        return unknown(result, word, glob)
    every = result.files_changed
    part = [change for change in every if change.change == word]
    verdict = judged(narrowed(result, part), [glob])
    message = verdict.message
    if verdict.status == "failed":
        message = f"nothing {word} matches {glob!r}; {_told(every)}{sharing(result)}"
    elif verdict.status == "passed":
        message = f"{glob!r} was {word}; {_told(part)}"
    return Finding(Judgement(word, verdict.status, glob, _got(every, verdict), message))


def renamed(result: Result, old: str | os.PathLike[str], new: str | os.PathLike[str]) -> Finding:
    before, after = glob_of(result, old), glob_of(result, new)
    expected = f"{before} -> {after}"
    if result.record.observation.findings.changes is None:
        return unknown(result, "renamed", expected)
    every = result.files_changed
    part = [
        change
        for change in every
        if change.change == "renamed"
        and change.old is not None
        and _matches(result, change.old, before)
        and _matches(result, change.path, after)
    ]
    verdict = judged(narrowed(result, part), [after])
    message = verdict.message
    if verdict.status == "failed":
        message = f"nothing was renamed from {before!r} to {after!r}; {_told(every)}{sharing(result)}"
    elif verdict.status == "passed":
        message = f"{before!r} was renamed to {after!r}"
    return Finding(Judgement("renamed", verdict.status, expected, _got(every, verdict), message))


def changed_nothing(result: Result) -> Finding:
    if result.record.observation.findings.changes is None:
        return unknown(result, "changed_nothing", False)
    verdict = judged(result, False)
    return Finding(replace(verdict, check="changed_nothing"))


def changed_only(result: Result, globs: Sequence[str | os.PathLike[str]]) -> Finding:
    """Every change lies under one of the globs; of a rename, both names do."""
    if not globs:
        raise BadInput("changed_only", (), "at least one glob (changed_nothing() allows none)")
    wanted = [glob_of(result, glob) for glob in globs]
    judged(narrowed(result, (), notes=False), wanted)  # a glob that means nothing is refused whatever changed
    if result.record.observation.findings.changes is None:
        return unknown(result, "changed_only", wanted)
    every = result.files_changed
    outside = [change for change in every if not all(_allowed(result, name, wanted) for name in _names(change))]
    if not outside:
        words = f"every change lies under {_listed(wanted)}; {_told(every)}"
        return Finding(Judgement("changed_only", "passed", wanted, None, words))
    words = f"changed outside of {_listed(wanted)}: {_changes(outside)}"
    got = [change.path.encode("utf-8", "replace").decode() for change in outside[:10]]
    if result.shared:
        return Finding(Judgement("changed_only", "inconclusive", wanted, got, words + sharing(result)))
    return Finding(Judgement("changed_only", "failed", wanted, got, words))


def unknown(result: Result, check: str, expected: Any) -> Finding:
    """It is not known which files changed, and why."""
    reason = result.effects_unavailable
    why = f"it is not known which files changed: {reason or 'nobody looked (effects are off for this run)'}"
    return Finding(Judgement(check, "inconclusive", expected, None, why))


def sharing(result: Result) -> str:
    """A clause when others may have worked in the tree meanwhile."""
    if not result.shared:
        return ""
    if result.shared == "unknown":
        return "; whether others worked in the tree meanwhile could not be known"
    return "; others worked in the tree meanwhile, so a change may be theirs"


def row(change: Change) -> str:
    """``created a``, ``renamed a -> b``, ``created a (dir)``."""
    kind = "" if change.kind == "file" else f" ({change.kind})"
    names = change.path if change.old is None else f"{change.old} -> {change.path}"
    return f"{change.change} {names}{kind}"


def _names(change: Change) -> tuple[str, ...]:
    return (change.path,) if change.old is None else (change.old, change.path)


def _allowed(result: Result, name: str, globs: list[str]) -> bool:
    return any(_matches(result, name, glob) for glob in globs)


def _matches(result: Result, name: str, glob: str) -> bool:
    return judged(narrowed(result, [Change(name, "modified")], notes=False), [glob]).status == "passed"


def _changes(changes: Sequence[Change]) -> str:
    more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return ", ".join(row(change) for change in changes[:_SHOWN]) + more


def _got(changes: Sequence[Change], verdict: Judgement) -> list[str] | None:
    if verdict.status == "inconclusive":
        return None
    return [row(change).encode("utf-8", "replace").decode() for change in changes[:10]]


def _told(changes: Sequence[Change]) -> str:
    return f"the run {_changes(changes)}" if changes else "nothing changed"


def _listed(globs: Sequence[str]) -> str:
    return ", ".join(map(repr, globs))
