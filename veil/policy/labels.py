"""Data flow: how sensitive the objects are that an argv carries, and how far the programs that get them are trusted.

The built-in model has three levels, ``public < internal < secret``. A host with a better one passes its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from veil.model.errors import BadInput
from veil.policy.launchers import Seen

LEVELS = ("public", "internal", "secret")


@dataclass(frozen=True)
class Label:
    """What is known of one object. Attributes: name: of a path below the workspace or whatever the host calls it.
    sensitivity: one of ``LEVELS``. trusted: its content comes from somebody who may tell programs what to do."""

    name: str
    sensitivity: str = "public"
    trusted: bool = True

    def __post_init__(self) -> None:
        if self.sensitivity not in LEVELS:
            raise BadInput(f"sensitivity of {self.name}", self.sensitivity, f"one of {', '.join(LEVELS)}")


class DataFlow(Protocol):
    """Asked before any approval and before the dispatch. An exception denies."""

    def __call__(self, seen: Sequence[Seen], carried: Sequence[Label]) -> str | None:
        """Why these programs may not be given these objects, or ``None``."""


@dataclass(frozen=True)
class Clearances:
    """The built-in model: every program of the argv needs the clearance of all that it carries.

    Attributes:
        known: level by absolute path, name or ``sha256:`` hash of a program. A name counts only for what the safe PATH
            has under it. others: level of programs that are not named.
    """

    known: Mapping[str, str]
    others: str = "internal"

    def __call__(self, seen: Sequence[Seen], carried: Sequence[Label]) -> str | None:
        secret = max(carried, key=lambda label: LEVELS.index(label.sensitivity), default=None)
        if secret is None or secret.sensitivity == LEVELS[0]:
            return None
        needed = LEVELS.index(secret.sensitivity)
        for one in seen:
            have = self._of(one) if one.sure or one.program.path is not None else self.others
            if LEVELS.index(have) < needed:
                return f"{secret.name} is {secret.sensitivity}, and {one.argv[0]} is cleared for {have} only"
            if one.unclear is not None and LEVELS.index(self.others) < needed:
                return f"{secret.name} is {secret.sensitivity}, and what {one.argv[0]} starts is not known"
        return None

    def _of(self, seen: Seen) -> str:
        program = seen.program
        keys = [program.digest, program.path, program.real]
        if not program.local and program.path is not None and "/" not in seen.argv[0]:
            keys.append(seen.argv[0])
        return next((self.known[key] for key in keys if key is not None and key in self.known), self.others)


def carried(paths: Sequence[str], labels: Sequence[tuple[str, str]]) -> tuple[Label, ...]:
    """The labels of paths below the workspace; ``x/**`` also covers ``x`` itself. The last matching row wins.

    A folder (a path with a slash at its end, or ``.``) carries what lies in it, so a pattern that
    could match below it counts too.
    """
    found = []
    labels = [(_folded(pattern), level) for pattern, level in labels]
    for name in paths:
        path, level = _folded(name), None
        for pattern, sensitivity in labels:
            if _covers(pattern, path.rstrip("/")):
                level = sensitivity
        inside = [row for row in labels if _below(row[0], path)]
        worst = max([level or LEVELS[0], *(row[1] for row in inside)], key=LEVELS.index)
        if worst != LEVELS[0]:
            found.append(Label(name.rstrip("/"), worst))
    return tuple(found)


def _below(pattern: str, path: str) -> bool:
    """Whether a pattern could match something below a path; a wildcard also stands for slashes."""
    if path == "." or pattern.startswith(path.rstrip("/") + "/"):
        return True
    plain, *wild = re.split(r"[*?\[]", pattern, maxsplit=1)
    return bool(wild) and path.endswith("/") and path.startswith(plain)


def _folded(text: str) -> str:
    """For file systems to which case and composition make no difference."""
    return unicodedata.normalize("NFC", text).casefold()


def _covers(pattern: str, path: str) -> bool:
    return fnmatchcase(path, pattern) or (pattern.endswith("/**") and path == pattern[:-3])
