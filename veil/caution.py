"""What a result advises when a command destroyed something and nothing held it back.

The pre-check costs tens of milliseconds the first time, so it is asked only when a result is shown, and only about
texts in which a word stands that deletes files of the folder: a checkpoint brings back nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from veil.model.errors import Refused
from veil.model.outcome import Findings
from veil.model.record import Record

if TYPE_CHECKING:
    from veil.classify import Segment

#: Programs and sub-commands of git after which files or commits of the folder can be gone.
_DELETES = re.compile(
    r"\b(?:rm|unlink|shred|srm|truncate)\b|\bdd\b.{0,200}\bof=|\brsync\b.{0,200}--del"
    r"|\bfind\b.{0,200}\s-(?:delete|exec|ok)|\bgit\b.{0,80}\b(?:reset|clean|checkout|switch|restore|stash|reflog"
    r"|worktree|update-ref|filter-branch|branch\s.{0,40}-|tag\s.{0,40}-)",
    re.DOTALL,
)
#: What these delete is not in the folder.
_ELSEWHERE = re.compile(r"\b(?:ssh|docker|podman|kubectl)\b")
#: A longer text is not looked at (characters): reading it could take seconds.
_MOST = 10_000
_ADVICE = (
    "it destroys ({}), and nothing confined it: without a checkpoint there is no way back; "
    "take one first, or look with a preview"
)


def _spared(findings: Findings, segments: Sequence[Segment]) -> bool:
    """Whether all that was to be deleted lies in the folder by name, and nothing there was."""
    if findings.changes is None or any(change.change == "deleted" for change in findings.changes):
        return False
    for segment in segments:
        paths = [effect.path for effect in segment.effects if effect.what == "delete"]
        away = any(path.startswith(("/", "~")) or ".." in path.split("/") for path in paths)
        if segment.category == "destructive" and (not paths or away):
            return False
    return True


def advice(record: Record) -> str | None:
    """``destructive and unconfined: checkpoint first``, in words; ``None`` when there is no reason for it.

    Nothing is said of a run that is known to have changed nothing, and nothing about a shell that is not read here.
    """
    if record.status == "running" or record.observation.findings.changes == ():
        return None
    if {"sandbox", "preview"} & set(record.layers) or record.observation.findings.notes.get("sandboxed"):
        return None
    words = record.text if record.text is not None else " ".join(record.argv)
    if len(words) > _MOST or not _DELETES.search(words) or _ELSEWHERE.search(words):
        return None
    if record.text is not None and os.path.basename(record.argv[0]) not in ("bash", "sh", "dash"):
        return None
    from veil.classify import assess
    from veil.classify.base import DESTRUCTIVE

    try:
        found = assess(record.argv if record.text is None else record.text)
    except Refused:  # no parser: no advice
        return None
    if found.category != DESTRUCTIVE or _spared(record.observation.findings, found.segments):
        return None
    return _ADVICE.format(found.warning if len(found.warning) <= 200 else f"{found.warning[:197]}...")
