"""Checkpoints of a folder: everything in it, kept by content, brought back exactly.

    checkpoints = Checkpoints(state)
    checkpoints.take("work", "before the upgrade")
    checkpoints.restore("work")

Nothing in a folder is written when a checkpoint of it is taken; a repository in it (``.git``) is files like all others.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veil.host.anchored import Anchor
from veil.model.errors import BadInput, Refused
from veil.model.outcome import Change
from veil.snapshots import clearing, comparing, restoring
from veil.snapshots.base import BEFORE_RESTORE, Checkpoint, Restored, check_label, label_given
from veil.snapshots.finding import find
from veil.snapshots.projects import Project, resolved
from veil.snapshots.taking import Taking, name_only

__all__ = ["BEFORE_RESTORE", "Checkpoint", "Checkpoints", "Restored"]

#: Seconds that another process's work on the same checkpoints is waited for.
WAIT_SECONDS = 120.0


class Checkpoints:
    """All checkpoints below one state folder, apart for each folder they are of. Making one touches nothing.

    Safe for threads and processes: those that work on the checkpoints of the same folder take turns; nobody else waits.

    Args:
        state_folder: made with mode 0700 at the first checkpoint. It must lie where no command may write. When it lies
            in a folder that is checkpointed, it is no part of the checkpoint and no restore touches it.
        wait_seconds: how long another process is waited for.
    """

    def __init__(self, state_folder: Path, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._state = Path(os.path.abspath(state_folder))
        self._base = self._state / "checkpoints"
        self._wait = wait_seconds

    def take(self, directory: str | os.PathLike[str], label: str | None = None) -> Checkpoint:
        """Keep everything that is in ``directory`` now.

        Args:
            label: any text, never used as a path. One that was given before is given to the newer checkpoint as well.

        Raises:
            BadInput: ``directory`` is no folder, or the label cannot be one.
            Refused: something in it cannot be read (``unreadable``) or does not hold still (``changing``); it is veil's
                own (``own_state``); another process is at work for too long (``busy``). Then there is no checkpoint.
            StoreFailed: the store cannot be written.
        """
        stored = label_given(label)
        origin = _folder(directory)
        self._not_own(origin)
        project = self._project(origin)
        with project.writing() as at:
            restoring.close_again(at, origin)
            with _anchored(origin) as anchor:
                restoring.clear_up(at, anchor)
                taking = Taking(project, at, anchor, self._own())
                try:
                    return taking.keep(stored)
                finally:
                    taking.close()

    def restore(
        self, directory: str | os.PathLike[str], label: str | None = None, *, force_origin: bool = False
    ) -> Restored:
        """Make ``directory`` what it was. What is there now is kept first, as ``before-restore``.

        A process that is killed meanwhile leaves a mixture, from which the same call makes what was asked for, and
        ``restore(directory, "before-restore")`` what was there before.

        Args:
            label: a label (its newest checkpoint) or an id; ``None``: the newest, ``before-restore`` not counted.
            force_origin: a checkpoint of another folder will do.

        Raises:
            NotFound: there is no such checkpoint.
            Refused: the folder is veil's own (``own_state``); the checkpoint is one of another folder
                (``other_origin``); it cannot be read as it was (``damaged``, nothing is touched then); not everything
                could be brought back (``not_restored``; ``facts["paths"]`` says what and why, ``facts["before"]`` holds
                the state before; what we may not read is never touched).
        """
        if label is not None:
            check_label(label)
        origin = resolved(directory)
        self._not_own(origin)
        project = self._project(origin)
        found = find(self._base, project, label, wait=self._wait, force_origin=force_origin)
        _make_root(origin)
        if found.project.folder == project.folder:
            with project.writing() as at:
                return restoring.restore(project, at, self._own(), at, found.row)
        # always in the same order, so that two of these never wait for each other
        if found.project.folder < project.folder:
            with found.project.reading() as other, project.writing() as at:
                return restoring.restore(project, at, self._own(), other, found.row)
        with project.writing() as at, found.project.reading() as other:
            return restoring.restore(project, at, self._own(), other, found.row)

    def list(self, directory: str | os.PathLike[str]) -> builtins.list[Checkpoint]:
        """Checkpoints of ``directory``, newest first. Raises ``BadInput``, ``StoreFailed``."""
        return [row.checkpoint for row in self._project(resolved(directory)).rows()]

    def diff(self, directory: str | os.PathLike[str], label: str | None = None) -> builtins.list[Change]:
        """What is different in ``directory`` since a checkpoint of it, told by content and sorted by path.

        Moved times, owners and attributes alone are no change; a renamed file is one deleted and one created.

        Raises: as ``restore`` and ``take``.
        """
        if label is not None:
            check_label(label)
        origin = _folder(directory)
        project = self._project(origin)
        row = find(self._base, project, label, wait=self._wait).row
        with project.reading() as at, _anchored(origin) as anchor:
            pending = at.index.pending()
            staging = "" if pending is None else pending.staging
            now = name_only(project, at, anchor, self._own(), staging)
            return comparing.changes(at.tree(row.manifest), now)

    def drop(self, directory: str | os.PathLike[str], label: str) -> int:
        """Delete the checkpoints that have this label, or the one with this id. How many there were.

        Raises: ``NotFound``, ``BadInput``, ``StoreFailed``, ``Refused`` (``busy``).
        """
        check_label(label)
        project = self._project(resolved(directory))
        first = find(self._base, project, label, wait=self._wait)
        with project.writing() as at:
            ids = [row.checkpoint.id for row in at.index.rows() if row.checkpoint.label == label]
            at.index.forget(ids or [first.row.checkpoint.id])
            try:
                clearing.sweep(at)
            except Refused as refusal:
                # another one is damaged, so what may go cannot be told: this one is gone, its contents stay
                if refusal.code != "damaged":
                    raise
        return len(ids) or 1

    def gc(self, max_bytes: int) -> dict[str, int]:
        """Delete the oldest checkpoints, whichever folder they are of, until all together have at most ``max_bytes``.

        Kept in any case, of every folder: the newest, every one with a label, the newest ``before-restore``, and what a
        restore needs that was killed. So it may stay above the limit.

        Returns: ``removed``, ``left`` (checkpoints), ``bytes_freed``, ``bytes_left`` (on the disk).

        Raises: ``BadInput``, ``StoreFailed``, ``Refused`` (``busy``).
        """
        _limit(max_bytes)
        return clearing.collect(self._base, self._wait, max_bytes)

    def trim(self, max_bytes: int) -> str | None:
        """``gc`` when there is more than ``max_bytes`` on the disk, without waiting for anybody.

        Costs a look at the sizes of files when there is less, or when nothing may go.

        Returns: why there is still more, or ``None``. Raises ``BadInput``.
        """
        _limit(max_bytes)
        return clearing.trim(self._base, max_bytes)

    def _project(self, origin: str) -> Project:
        return Project(self._base, origin, self._wait)

    def _not_own(self, origin: str) -> None:
        state = os.path.realpath(self._state)
        if origin == state or origin.startswith(state + "/"):
            raise Refused(
                f"{origin} is veil's own state, in which checkpoints are kept; none can be of it",
                code="own_state",
                path=origin,
            )

    def _own(self) -> frozenset[tuple[int, int]]:
        """What no checkpoint holds and no restore touches, by identity: a path may lead there in several ways."""
        found = set()
        for folder in (self._state, self._base):
            try:
                status = os.stat(folder)
            except FileNotFoundError:
                continue
            found.add((status.st_dev, status.st_ino))
        return frozenset(found)


def _limit(max_bytes: object) -> None:
    if not isinstance(max_bytes, int) or isinstance(max_bytes, bool) or max_bytes < 0:
        raise BadInput("max_bytes", max_bytes, "a number of bytes, 0 or more")


def _folder(directory: object) -> str:
    origin = resolved(directory)
    if not os.path.isdir(origin):
        raise BadInput("dir", directory, "a folder that is there")
    return origin


@contextmanager
def _anchored(origin: str) -> Iterator[Anchor]:
    try:
        anchor = Anchor(origin)
    except OSError as error:
        raise Refused(f"{origin} cannot be read: {error.strerror}", code="unreadable", path=origin) from error
    with anchor:
        yield anchor


def _make_root(origin: str) -> None:
    """A folder that was deleted as a whole is made again; what stands at its place instead is not touched."""
    if os.path.isdir(origin):
        return
    try:
        os.mkdir(origin, 0o700)
    except OSError as error:
        raise Refused(
            f"{origin} is no folder and cannot be made one: {error.strerror}",
            code="not_restored",
            paths={"": error.strerror or str(error)},
        ) from error
