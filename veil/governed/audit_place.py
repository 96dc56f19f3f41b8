"""Where the audit of a boundary lies: never where its commands can write."""

from __future__ import annotations

import os

from veil import wiring
from veil.governed.audit import Audit
from veil.governed.paths import Workspace
from veil.model.errors import BadInput, Refused


def opened(given: str | os.PathLike[str] | None, workspace: Workspace, project: str | None) -> Audit:
    """The audit in this file; ``None``: beside the records of the project.

    Raises:
        BadInput: the file lies in the workspace. Refused: code ``audit_unavailable``.
    """
    path = _own(project) if given is None else os.fspath(given)
    if workspace.inside(os.path.realpath(path)):
        raise BadInput("audit", path, "a file outside the workspace, where no command can write to it")
    return Audit(path)


def _own(project: str | None) -> str:
    session = wiring.session(dict(os.environ), project)
    if session.folder is None:
        raise Refused(
            f"there is no place for the audit ({session.why}); name a file with audit=", code="audit_unavailable"
        )
    return os.fspath(session.folder / "governed.jsonl")
