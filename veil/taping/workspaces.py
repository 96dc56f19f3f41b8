"""What a cassette that stands alone starts from: made on a stage, or taken in from a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from veil.cassettes.profile import PROFILES
from veil.cassettes.steps import Header, Workspace
from veil.host import workspaces
from veil.host.applying import Put, apply
from veil.model.errors import Refused
from veil.taping.stage import REPLAYED_TAG, Stage

#: Bytes of all inline files together: more than a reviewer reads belongs into a folder or a git revision.
INLINE_BYTES = 1 << 20


def stage_for(
    header: Header,
    file: Path,
    base: Path,
    environment: Mapping[str, str],
    *,
    secrets: Sequence[str] = (),
    passed: Sequence[str] = (),
) -> Stage:
    """A fresh stage below ``base`` with the workspace that ``header`` names, ready for the first step.

    Args:
        file: the cassette; folders and repositories are named relative to it.
        environment, secrets, passed: as in ``Stage.make``.

    Raises:
        Refused: an unknown profile (``unknown_profile``), a header that names no workspace (``stands_not_alone``), or
            a workspace that cannot be made (``no_workspace``, ``not_applied``).
    """
    profile = PROFILES.get(header.profile)
    if profile is None:
        raise Refused(
            f"{file.name}: recorded under the profile {header.profile!r}; known are {', '.join(PROFILES)}",
            code="unknown_profile",
            profile=header.profile,
        )
    if header.workspace.kind == "given":
        raise Refused(
            f"{file.name}: its header names no workspace, so it cannot be played on its own; the recording of a Python"
            " test belongs into a folder 'cassettes'",
            code="stands_not_alone",
            file=str(file),
        )
    stage = Stage.make(base, profile, environment, secrets=secrets, passed=passed)
    fill(stage, header.workspace, file.parent)
    return stage


def fill(stage: Stage, workspace: Workspace, beside: Path) -> None:
    """Put ``workspace`` into the empty workspace of ``stage``. Folders are relative to ``beside``.

    Raises ``Refused`` (``no_workspace``, ``not_applied``).
    """
    root = str(stage.root)
    if workspace.kind == "inline":
        hidden = stage.hidden(REPLAYED_TAG)
        apply(root, [Put(path, "file", mode, hidden.show(data)) for path, (data, mode) in workspace.files.items()])
        _plain_folders(root)
    elif workspace.kind in ("folder", "git"):
        where = os.path.normpath(os.path.join(os.path.abspath(beside), workspace.where or "."))
        if workspace.kind == "folder":
            workspaces.copy_folder(where, root)
        elif workspace.revision is None:
            raise Refused(f"{where}: no revision is named", code="no_workspace", what=where)
        else:
            workspaces.check_out(where, workspace.revision, root)
    stage.settle()
    if workspace.kind == "git":
        workspaces.refresh_index(root)


def _plain_folders(root: str) -> None:
    for folder, names, _ in os.walk(root):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o755)


def taken_in(
    folder: Path | None, kind: Literal["inline", "folder", "git"], beside: Path, revision: str | None = None
) -> Workspace:
    """The workspace that a new cassette in the folder ``beside`` names.

    Args:
        folder: what to start from; None for an empty workspace.
        revision: for ``git``, anything that names a commit there (default: what is checked out).

    Raises:
        Refused: what is there cannot stand inline (``not_inline``), or is no repository (``no_workspace``).
    """
    if folder is None:
        return Workspace("inline")
    if not folder.is_dir():
        raise Refused(f"{folder} is no folder", code="no_workspace", what=str(folder))
    where = Path(os.path.relpath(os.path.realpath(folder), os.path.realpath(beside))).as_posix()
    if kind == "folder":
        return Workspace("folder", where)
    if kind == "git":
        return Workspace("git", where, workspaces.commit_of(str(folder), revision or "HEAD"))
    return Workspace("inline", files=workspaces.read_plain(str(folder), INLINE_BYTES))


def new_header(workspace: Workspace, stage: Stage, file: Path) -> Header:
    """The header of a new cassette ``file``; its workspace, as it will be read, is put on the stage.

    Inline files lose their secrets and get tokens for folders before anything runs, so that the recording is made on
    the same files as it is played on.
    """
    hidden = stage.hidden(REPLAYED_TAG)
    files = {path: (hidden.hide(data), mode) for path, (data, mode) in workspace.files.items()}
    workspace = replace(workspace, files=files)
    fill(stage, workspace, file.parent)
    return Header(stage.profile.name, stage.profile.version, workspace)
