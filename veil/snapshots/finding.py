"""From what somebody asked for to a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veil.model.errors import NotFound, Refused
from veil.snapshots.base import BEFORE_RESTORE
from veil.snapshots.index import Row
from veil.snapshots.projects import Project, all_projects

#: Characters of a label that an error message shows.
MAX_SHOWN = 60


@dataclass(frozen=True)
class Found:
    """A checkpoint and where it is."""

    project: Project
    row: Row


def find(base: Path, project: Project, label: str | None, *, wait: float, force_origin: bool = False) -> Found:
    """The newest checkpoint of ``project`` with this label, the one with this id, or (``None``) the newest of all.

    Raises:
        NotFound: there is none.
        Refused: another folder has it and ``force_origin`` is not given, or several have (``other_origin``).
    """
    rows = project.rows()
    row = _in(rows, label)
    if row is not None:
        return Found(project, row)
    if label is not None:
        others = [each for each in all_projects(base, wait) if each.folder != project.folder]
        elsewhere = [Found(each, found) for each in others if (found := _in(each.rows(), label)) is not None]
        if len(elsewhere) == 1 and force_origin:
            return elsewhere[0]
        if elsewhere:
            origins = [found.project.origin for found in elsewhere]
            way = "name it by its id" if force_origin else "force_origin=True puts it here all the same"
            raise Refused(
                f"checkpoint {label!r} is of {' and '.join(origins)}, not of {project.origin}; {way}",
                code="other_origin",
                origins=origins,
                directory=project.origin,
            )
    shown = label if label is None or len(label) <= MAX_SHOWN else f"{label[:MAX_SHOWN]}..."
    what = f"checkpoint {shown!r} of {project.origin}" if label is not None else f"a checkpoint of {project.origin}"
    raise NotFound(what, [f"{each.checkpoint.id} {_shown(each.checkpoint.label or '')}".strip() for each in rows[:20]])


def _shown(label: str) -> str:
    """In one line that leaves a terminal as it is."""
    label = label[:MAX_SHOWN]
    return label if label.isprintable() else repr(label)


def _in(rows: list[Row], label: str | None) -> Row | None:
    if label is None:
        return next((row for row in rows if row.checkpoint.label != BEFORE_RESTORE), None)
    named = next((row for row in rows if row.checkpoint.label == label), None)
    return named or next((row for row in rows if row.checkpoint.id == label), None)
