"""The Python door to kept previews: what a command would have changed, made real."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from veil import wiring
from veil.builtin import kept_previews
from veil.model.errors import Refused
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
    made = kept_previews(session.settings, session.state).apply(notes["preview_kept"], record.id)
    return Applied(record.id, made.folder, tuple(changes), made.paths, made.left)
