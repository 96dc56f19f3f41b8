"""The Python door to checkpoints: everything in a folder, kept and brought back.

Every function may be called from several threads; work on one folder takes turns, also across processes, and nobody
else waits for it. So ``asyncio.to_thread(veil.checkpoint, "label")`` is a checkpoint in the background.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from veil import wiring
from veil.model.errors import BadInput, Refused
from veil.model.outcome import Change
from veil.snapshots import Checkpoint, Checkpoints, Restored
from veil.store.where import trespass

__all__ = ["Checkpoint", "Restored", "checkpoint", "checkpoints", "diff", "drop", "restore"]

Folder: TypeAlias = str | os.PathLike[str] | None


def checkpoint(label: str | None = None, dir: Folder = None, *, project: Folder = None) -> Checkpoint:
    """Keep everything that is in a folder now: ignored and untracked files too, and a ``.git`` as it is.

    Nothing is written in the folder, and no git is needed. The second checkpoint of an unchanged tree costs a look at
    its names, sizes and times. When all checkpoints together have more bytes than ``VEIL_MAX_CHECKPOINT_BYTES``, the
    oldest go; those with a label and the newest of each folder stay (``over_limit`` says when that is too much).

    Args:
        label: any text of 1 to 1,000 characters; it never becomes a path. A label that was given before names the
            newer checkpoint from now on.
        dir: the folder (default: the working directory).
        project: folder whose settings hold, as for ``veil.run``.

    Raises:
        BadInput: ``dir`` is no folder, or the label cannot be one.
        Refused: something cannot be read (``unreadable``) or does not hold still (``changing``), the folder is veil's
            own state (``own_state``), its checkpoints are in use for more than two minutes (``busy``), or there is no
            place to keep it (``no_state_directory``, ``not_ours``). Then there is no checkpoint.
        StoreFailed: the disk refuses.
    """
    session = wiring.session(dict(os.environ), project)
    kept = _store(session)
    made = kept.take(_here(dir), label)
    return replace(made, over_limit=kept.trim(session.settings.max_checkpoint_bytes))


def restore(
    label: str | None = None, dir: Folder = None, *, force_origin: bool = False, project: Folder = None
) -> Restored:
    """Make a folder what it was at a checkpoint; what came later is deleted.

    What is there now is kept first: ``restore("before-restore")`` takes this one back. The same call again finishes
    what a killed one began.

    Args:
        label: a label (its newest checkpoint) or an id; ``None``: the newest made, ``before-restore`` not counted.
        dir: the folder (default: the working directory). One that was deleted is made again.
        force_origin: take a checkpoint of another folder when this one has none of that label.

    Raises:
        BadInput: as ``checkpoint``.
        NotFound: there is no such checkpoint; names those that exist.
        Refused: it is one of another folder (``other_origin``) or damaged (``damaged``), and nothing was touched; not
            everything could be brought back (``not_restored``: ``facts["paths"]`` says what and why, and
            ``facts["before"]`` is the checkpoint of what was there); or as ``checkpoint``.
        StoreFailed: the disk refuses.
    """
    if not isinstance(force_origin, bool):
        raise BadInput("force_origin", force_origin, "True or False")
    return _at(project).restore(_here(dir), label, force_origin=force_origin)


def checkpoints(dir: Folder = None, *, project: Folder = None) -> list[Checkpoint]:
    """Checkpoints of a folder (default: the working directory), the newest first. Raises as ``checkpoint``."""
    return _at(project).list(_here(dir))


def diff(label: str | None = None, dir: Folder = None, *, project: Folder = None) -> list[Change]:
    """What is different in a folder since a checkpoint of it, told by content and sorted by path.

    A renamed file is one deleted and one created; moved times, owners and attributes alone are no change.

    Args:
        label, dir: as for ``restore``.

    Raises: as ``restore``.
    """
    return _at(project).diff(_here(dir), label)


def drop(label: str, dir: Folder = None, *, project: Folder = None) -> int:
    """Delete the checkpoints of a folder that have this label, or the one with this id. Returns how many there were.

    Raises: as ``restore``.
    """
    return _at(project).drop(_here(dir), label)


def collect(project: Folder = None) -> dict[str, int]:
    """Bring the checkpoints of all folders below the limit: the part of ``veil gc`` that is theirs.

    Returns: ``removed``, ``left`` (checkpoints), ``bytes_freed``, ``bytes_left``; all 0 where nothing is kept on disk.

    Raises ``Refused`` (``busy``, ``damaged``), ``StoreFailed``.
    """
    session = wiring.session(dict(os.environ), project)
    if session.state is None:
        return dict.fromkeys(("removed", "left", "bytes_freed", "bytes_left"), 0)
    return _store(session).gc(session.settings.max_checkpoint_bytes)


def _at(project: Folder) -> Checkpoints:
    return _store(wiring.session(dict(os.environ), project))


def _store(session: wiring.Session) -> Checkpoints:
    if session.state is None:
        raise Refused(
            f"there is no folder to keep checkpoints in ({session.why}); name one in VEIL_STATE_DIR",
            code="no_state_directory",
            why=session.why,
        )
    why = trespass(session.state / "checkpoints")
    if why is not None:
        raise Refused(f"{why}; name another state folder in VEIL_STATE_DIR", code="not_ours", path=str(session.state))
    return Checkpoints(session.state)


def _here(dir: Folder) -> str | os.PathLike[str]:
    if dir is not None:
        return dir
    try:
        return Path.cwd()
    except OSError as error:
        raise BadInput("dir", None, f"a folder, since this process's own is gone ({error.strerror})") from None
