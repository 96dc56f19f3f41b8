"""``expect={"changed": ["dist/**"]}``: what the run changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from veil.checks.globs import Glob
from veil.checks.values import each, one_or_many, text_of
from veil.checks.wording import listed, shown
from veil.model.errors import BadInput
from veil.model.outcome import Change, Findings, Observation
from veil.model.verdict import Judgement, Status

_ALL = 'effects="all" covers them'


class Changed:
    """``True``: something changed. ``False``: nothing did. A glob or a list of globs: each matches at least one change.

    It judges what ``files_changed`` says under the run's effects setting: paths relative to the working directory, a
    rename under its old and its new path, any kind of change (a deletion too). Globs: see ``veil.checks.globs``.

    ``inconclusive``: nobody looked, or it could not be known; changes that another run may have made (``shared``); a
    glob that misses the changes and matches a changed file that git ignores; a path without wildcards of which nobody
    could tell (it may be ignored where ignored files were not looked at, or lies in a gap). These come from the notes
    ``effects_unavailable``, ``shared``, ``ignored_changed``, ``ignored_unseen`` and ``effects_gaps``.
    """

    name: ClassVar[str] = "changed"

    def parse(self, value: Any) -> Any:
        """A bool, or globs as a list. Raises ``BadInput``."""
        if isinstance(value, bool):
            return value
        wanted = "True, False, a glob relative to the working directory, or a list of such"
        globs = each(one_or_many("expect.changed", value, wanted, text_of))
        for glob in globs:
            if glob.startswith("/") or not Glob(glob).text.strip("/."):
                raise BadInput("expect.changed", glob, "a glob relative to the working directory, such as 'dist/**'")
            if glob.startswith("!"):
                raise BadInput(
                    "expect.changed", glob, "a glob that must match; write '\\!' for a name that begins with '!'"
                )
        return globs

    def paths(self, expected: Any) -> tuple[str, ...]:
        """None: what changed is in the findings already."""
        return ()

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """By ``findings.changes``."""
        findings = seen.findings
        changes = findings.changes
        if changes is None:
            reason = findings.why_unknown or "nobody looked for changes in this run"
            return self._judged("inconclusive", expected, None, f"it is not known what changed: {shown(reason)}")
        paths = [path for change in changes for path in _names(change)]
        if isinstance(expected, bool):
            status: Status = "passed" if bool(changes) is expected else "failed"
            why = _any_words(expected, paths, findings)
        else:
            status, why = _match(expected, paths, findings)
        if changes and findings.notes.get("shared") and (status == "passed" or expected is False):
            why = f"another run was changing files at the same time, so these may be its own: {listed(paths)}"
            return self._judged("inconclusive", expected, paths, why)
        return self._judged(status, expected, paths, why)

    def _judged(self, status: Status, expected: Any, paths: list[str] | None, why: str) -> Judgement:
        got = None if paths is None else [path.encode("utf-8", "replace").decode()[:200] for path in paths[:10]]
        return Judgement(self.name, status, expected, got, why)


def _names(change: Change) -> tuple[str, ...]:
    return (change.path,) if change.old is None else (change.path, change.old)


def _any_words(expected: bool, paths: list[str], findings: Findings) -> str:
    if paths:
        return f"changed: {listed(paths)}" + ("" if expected else ", expected no change")
    return "nothing changed" + (", expected a change" if expected else "") + _not_counted(findings)


def _match(expected: list[str], paths: list[str], findings: Findings) -> tuple[Status, str]:
    known = set(paths)
    missing: list[str] = []
    unsure: list[str] = []
    for glob in map(Glob, expected):
        if glob.concrete in known or any(glob.matches(path) for path in paths):
            continue
        (unsure if _may_have_changed(glob, findings) else missing).append(glob.text)
    there = (f"changed: {listed(paths)}" if paths else "nothing changed") + _not_counted(findings)
    if missing:
        below = next((text for text in missing if any(path.startswith(f"{text}/") for path in paths)), None)
        hint = f" (write {shown(below + '/**')} for what is below it)" if below is not None else ""
        return "failed", f"no change matches {listed(missing)}{hint}; {there}"
    if unsure:
        return "inconclusive", f"{listed(unsure)} may have changed unseen; {there}"
    return "passed", f"each of {listed(expected)} matches a change; {there}"


def _may_have_changed(glob: Glob, findings: Findings) -> bool:
    """Whether a change that the glob matches may be missing from the changes."""
    ignored, total = _ignored(findings)
    if any(glob.matches(path) for path in ignored):
        return True
    path = glob.concrete
    if path is None:
        return False
    if total > len(ignored) or findings.notes.get("ignored_unseen"):
        return True
    return any(path == gap or path.startswith(f"{gap}/") for gap in _gaps(findings))


def _not_counted(findings: Findings) -> str:
    """What the changes leave out, in words."""
    ignored, total = _ignored(findings)
    words = ""
    if total:
        words += f"; not counted: {total} changed that git ignores ({listed(ignored)}; {_ALL})"
    if findings.notes.get("ignored_unseen"):
        words += f"; files that git ignores were not looked at ({_ALL})"
    gaps = _gaps(findings)
    return words + (f"; not looked at: {listed(gaps)}" if gaps else "")


def _ignored(findings: Findings) -> tuple[list[str], int]:
    """Paths of changed files that git ignores (the first of them), and how many there are."""
    note = findings.notes.get("ignored_changed")
    if not isinstance(note, Mapping):
        return [], 0
    named = note.get("first")
    first = [path for path in named if isinstance(path, str)] if isinstance(named, (list, tuple)) else []
    total = note.get("total", 0)
    return first, max(len(first), total if isinstance(total, int) else 0)


def _gaps(findings: Findings) -> list[str]:
    """Places that nobody looked at, from notes such as ``mnt: another file system``."""
    note = findings.notes.get("effects_gaps")
    named = note if isinstance(note, (list, tuple)) else ()
    return [text.partition(": ")[0] for text in named if isinstance(text, str)]
