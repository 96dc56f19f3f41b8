"""The Python door to kept previews: what a command would have changed, made real."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from veil import wiring
from veil.builtin import kept_previews
from veil.host import locks, pictures
from veil.host.tree import TreeUnknown
from veil.model.errors import BadInput, Refused, StoreFailed
from veil.model.outcome import Change
from veil.present.changes import fitting

__all__ = ["Applied", "apply"]


@dataclass(frozen=True)
class Applied:
    """A preview that was made real.

    Attributes:
        id: of the previewed run.
        folder: where it was made real, links resolved.
        files_changed: as the preview told them.
        paths: how many paths were touched in all (also folders, and what git ignores).
        left: path -> what could not be given to it (an owner, an extended attribute).
    """

    id: str
    folder: str
    files_changed: tuple[Change, ...]
    paths: int
    left: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The JSON view."""
        rows = fitting(self.files_changed)
        data: dict[str, Any] = {"id": self.id, "applied": True, "folder": self.folder, "files_changed": rows}
        if len(rows) < len(self.files_changed):
            data["files_changed_total"] = len(self.files_changed)
        data["paths"] = self.paths
        if self.left:
            data["left"] = dict(self.left)
        return data


def _root(folder: str) -> str:
    try:
        return pictures.locate(folder).root
    except TreeUnknown:
        return folder


def collect(project: str | os.PathLike[str] | None = None) -> dict[str, int]:
    """Bring kept previews of all folders below their limits: the part of ``veil gc`` that is theirs.

    Returns: ``removed``, ``left``, ``bytes_left``; all 0 where nothing is kept on disk. Raises ``StoreFailed``.
    """
    session = wiring.session(dict(os.environ), project)
    if session.state is None:
        return dict.fromkeys(("removed", "left", "bytes_left"), 0)
    try:
        return kept_previews(session.settings, session.state).gc()
    except OSError as error:
        raise StoreFailed(f"{error.filename}: {error.strerror}", path=str(error.filename)) from error


def apply(id: str, project: str | os.PathLike[str] | None = None) -> Applied:
    """Make real what a previewed run would have changed, unless something there has moved since.

    Every path that would be touched is looked at first; what size, times and inode do not prove unmoved is decided by
    content. Then everything is made ready beside the tree and put into its place, each file at once. No link is
    followed. Work in the folder by others while this runs can only make it stop.

    Args:
        id: of the run, as ``result.id``. project: folder whose records are used, as for ``veil.run``.

    Raises:
        NotFound: there is no such run.
        BadInput: what cannot be an id.
        Refused: ``no_preview`` (it was a real run), ``not_kept`` (``facts["reason"]``), ``already_applied``, ``moved``
            (``facts["paths"]`` says what and why; nothing was changed), ``busy``, or ``not_applied`` (the disk refused
            a part; the same call goes on from there).
        StoreFailed: the record cannot be read.
    """
    if not isinstance(id, str):  # a store takes none for the newest
        raise BadInput("id", id, "the id of a previewed run")
    session = wiring.session(dict(os.environ), project)
    record = session.kit.store.get(id)
    notes = record.observation.findings.notes
    if "previewed" not in notes:
        raise Refused(
            f"{record.id} was no preview: what it did is done; preview=True makes one", code="no_preview", id=record.id
        )
    changes = record.observation.findings.changes or ()
    if "preview_not_kept" in notes:
        raise Refused(
            f"what {record.id} would have changed was not kept: {notes['preview_not_kept']}",
            code="not_kept",
            id=record.id,
            reason=notes["preview_not_kept"],
        )
    if "preview_kept" not in notes:
        return Applied(record.id, os.path.realpath(record.cwd), (), 0)  # there was nothing to change
    if session.state is None:
        raise Refused(f"there is no state folder any more ({session.why})", code="not_kept", id=record.id)
    previews = kept_previews(session.settings, session.state)
    folder = os.path.realpath(record.cwd)
    # a turn like that of a run: what another one is told to have changed meanwhile is labelled as perhaps not its own
    window = locks.enter(session.state / "locks", _root(folder), session.settings.effects_wait)
    try:
        made = previews.apply(notes["preview_kept"], record.id)
    finally:
        window.leave()
    return Applied(record.id, made.folder, tuple(changes), made.paths, made.left)
