"""``expect={"changed": ["dist/**"]}``: what the run changed."""

from __future__ import annotations

from typing import Any, ClassVar

from veil.checks.globs import Glob
from veil.checks.values import each, one_or_many, text_of
from veil.checks.wording import listed, shown
from veil.model.errors import BadInput
from veil.model.outcome import Change, Observation
from veil.model.verdict import Judgement, Status

_IGNORED = 'files that git ignores are not covered (effects="all" covers them)'


class Changed:
    """``True``: something changed. ``False``: nothing did. A glob or a list of globs: each matches at least one change.

    It judges what ``files_changed`` says under the run's effects setting: paths relative to the working directory, a
    rename under its old and its new path, any kind of change (a deletion too). Globs: see ``veil.checks.globs``.

    ``inconclusive``: nobody looked, or it could not be known; changes that another run may have made (``shared``); and
    a path without wildcards that is missing from what git reports, for git may ignore it. When the notes carry
    ``effects_ignored`` (the paths asked about that git ignores), the last case is decided by it.
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
        """Those without wildcards."""
        if isinstance(expected, bool):
            return ()
        return tuple(path for path in (Glob(glob).concrete for glob in expected) if path is not None)

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """By ``findings.changes``."""
        findings = seen.findings
        changes = findings.changes
        if changes is None:
            reason = findings.notes.get("effects_unavailable") or "nobody looked for changes in this run"
            return self._judged("inconclusive", expected, None, f"it is not known what changed: {shown(reason)}")
        paths = [path for change in changes for path in _names(change)]
        if isinstance(expected, bool):
            status: Status = "passed" if bool(changes) is expected else "failed"
            why = _any_words(expected, paths, findings.source)
        else:
            status, why = _match(expected, paths, seen)
        if changes and findings.notes.get("shared") and (status == "passed" or expected is False):
            why = f"another run was changing files at the same time, so these may be its own: {listed(paths)}"
            return self._judged("inconclusive", expected, paths, why)
        return self._judged(status, expected, paths, why)

    def _judged(self, status: Status, expected: Any, paths: list[str] | None, why: str) -> Judgement:
        got = None if paths is None else [path.encode("utf-8", "replace").decode()[:200] for path in paths[:10]]
        return Judgement(self.name, status, expected, got, why)


def _names(change: Change) -> tuple[str, ...]:
    return (change.path,) if change.old is None else (change.path, change.old)


def _any_words(expected: bool, paths: list[str], source: str | None) -> str:
    if paths:
        return f"changed: {listed(paths)}" + ("" if expected else ", expected no change")
    tail = f"; {_IGNORED}" if source == "git" else ""
    return "nothing changed" + (", expected a change" if expected else "") + tail


def _match(expected: list[str], paths: list[str], seen: Observation) -> tuple[Status, str]:
    known = set(paths)
    missing, unsure = [], []
    for glob in map(Glob, expected):
        if glob.concrete in known or any(glob.matches(path) for path in paths):
            continue
        if seen.findings.source == "git" and glob.concrete is not None and _may_be_ignored(glob.concrete, seen):
            unsure.append(glob.text)
        else:
            missing.append(glob.text)
    there = f"changed: {listed(paths)}" if paths else "nothing changed"
    if missing:
        below = next((text for text in missing if any(path.startswith(f"{text}/") for path in paths)), None)
        hint = f" (write {shown(below + '/**')} for what is below it)" if below is not None else ""
        tail = f"; {_IGNORED}" if seen.findings.source == "git" else ""
        return "failed", f"no change matches {listed(missing)}{hint}; {there}{tail}"
    if unsure:
        return "inconclusive", f"{listed(unsure)} is not among the changes, and {_IGNORED}; {there}"
    return "passed", f"each of {listed(expected)} matches a change; {there}"


def _may_be_ignored(path: str, seen: Observation) -> bool:
    ignored = seen.findings.notes.get("effects_ignored")
    return path in ignored if isinstance(ignored, (list, tuple)) else True
