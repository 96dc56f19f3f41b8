"""Checks on what is at a path at the time of asking."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_veil.expecting import contents
from pytest_veil.expecting.failures import Finding
from pytest_veil.expecting.seams import FileFact, look
from veil import BadInput, Judgement, Refused

if TYPE_CHECKING:
    from veil import Result

_KINDS = {"file": "a regular file", "dir": "a folder", "symlink": "a symlink"}


def path_of(path: str | os.PathLike[str]) -> str:
    """The path as text. Raises ``BadInput``."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str) or not text or "\0" in text:
        raise BadInput("file", path, "a path, relative to the working directory of the run or absolute")
    return text


def seen(result: Result, path: str, *, content: bool = False) -> FileFact:
    """The fact. Raises ``Refused`` for a preview, whose files are gone when anybody can ask."""
    if getattr(result, "previewed", False):
        raise Refused(
            f"file({path!r}): the run was a preview, its files are not in the workspace; "
            "give the run expect={'file_exists': ...}, or ask .created(), .modified(), .deleted()",
            code="previewed",
            path=path,
        )
    return look(result, path, content=content)


def _known(fact: FileFact, check: str, path: str, expected: Any) -> Finding | None:
    """A finding when nothing can be said because the path could not be looked at."""
    if fact.kind is None and fact.unreadable is not None:
        why = f"{path!r} cannot be looked at: {fact.unreadable}"
        return Finding(Judgement(check, "inconclusive", expected, None, why))
    return None


def exists(result: Result, path: str, wanted: bool) -> Finding:
    """The path itself counts: a dangling symlink exists."""
    fact = seen(result, path)
    check = "file_exists" if wanted else "file_absent"
    blind = _known(fact, check, path, path)
    if blind is not None:
        return blind
    there = fact.kind is not None
    words = f"{path!r} exists ({fact.kind})" if there else f"{path!r} does not exist"
    if there is not wanted:
        words += ", expected it to" + ("" if wanted else " be absent")
    return Finding(Judgement(check, "passed" if there is wanted else "failed", path, fact.kind, words))


def is_kind(result: Result, path: str, kind: str, target: str | None = None) -> Finding:
    """Symlinks are followed, unless a symlink is what is asked for."""
    fact = seen(result, path)
    check = f"is_{kind}"
    blind = _known(fact, check, path, path)
    if blind is not None:
        return blind
    got = fact.kind if kind == "symlink" else fact.leads_to
    state = f"is {_KINDS.get(got, f'a {got}')}" if got else "does not exist" if fact.kind is None else "leads nowhere"
    if got != kind:
        return Finding(Judgement(check, "failed", path, got, f"{path!r} {state}, expected {_KINDS[kind]}"))
    if target is not None and fact.target != target:
        words = f"{path!r} is a symlink to {fact.target!r}, expected one to {target!r}"
        return Finding(Judgement(check, "failed", target, fact.target, words))
    return Finding(Judgement(check, "passed", path, got, f"{path!r} {state}" + (f" to {target!r}" if target else "")))


def mode(result: Result, path: str, wanted: int, negated: bool) -> Finding:
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 0 <= wanted <= 0o7777:
        raise BadInput("mode", wanted, "permission bits from 0 to 0o7777, such as 0o644")
    fact = seen(result, path)
    shown = f"{wanted:#o}"
    blind = _known(fact, "mode", path, shown) or _missing(fact, "mode", path, shown, negated)
    if blind is not None:
        return blind
    words = f"the mode of {path!r} is {fact.mode:#o}"
    if fact.mode == wanted:
        return Finding(Judgement("mode", "passed", shown, f"{fact.mode:#o}", words))
    return Finding(Judgement("mode", "failed", shown, f"{fact.mode:#o}", f"{words}, expected {shown}"))


def _missing(fact: FileFact, check: str, path: str, expected: Any, negated: bool) -> Finding | None:
    """A finding when there is nothing to ask about. After ``not_`` it is no pass: a path that was mistyped would be
    one for ever."""
    if fact.kind is not None:
        return None
    return Finding(
        Judgement(check, "inconclusive" if negated else "failed", expected, None, f"{path!r} does not exist")
    )


def content(result: Result, path: str, check: str, expected: Any, negated: bool) -> Finding:
    """A check on text (``contains``, ``matches``, ``equals``, ``empty`` or ``json``) on the content of a file."""
    fact = seen(result, path, content=True)
    blind = _known(fact, check, path, expected) or _missing(fact, check, path, expected, negated)
    if blind is not None:
        return blind
    if fact.content is None:
        why = f"{path!r} cannot be read: {fact.unreadable or 'its content is not known'}"
        return Finding(Judgement(check, "inconclusive", expected, None, why))
    stand_in, shown = contents.as_stdout(result, fact.content), f"file {path!r}"
    if check == "equals":
        found = contents.equals(stand_in, "stdout", expected, shown)
    else:
        found = contents.judged(stand_in, "json" if check == "json" else f"stdout_{check}", expected)
    message = found.judgement.message
    if message.startswith("stdout "):
        message = shown + message.removeprefix("stdout")
    elif shown not in message:
        message = f"{shown}: {message}"
    return replace(found, judgement=replace(found.judgement, check=f"file_{check}", message=message))
