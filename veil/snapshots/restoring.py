"""Making a tree what a checkpoint says, in such a way that a process may be killed at any moment of it.

The displaced state is a checkpoint of its own before anything is touched, and the index says that a restore is under
way. Whoever finds that note later clears away the folder that the killed process had in the tree. If the tree then
holds nothing but what stood there before or was to stand there, the displaced state of the killed restore is still the
one that counts as ``before-restore``; if something else is in it too, somebody worked there since, and it is kept anew.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from veil.host.anchored import Anchor
from veil.host.metadata import dress, set_mode
from veil.model.errors import Refused
from veil.snapshots import comparing
from veil.snapshots.applying import Applying, nothing_done
from veil.snapshots.base import BEFORE_RESTORE, Restored
from veil.snapshots.index import Pending, Row
from veil.snapshots.listings import Tree
from veil.snapshots.plans import Plan, plan
from veil.snapshots.projects import Opened, Project
from veil.snapshots.staging import PREFIX, Staging, clear
from veil.snapshots.taking import Own, Taking

#: Paths named in an error at most.
MAX_NAMED = 50


def restore(project: Project, at: Opened, own: Own, source: Opened, row: Row) -> Restored:
    """Make the folder of ``project`` what ``row`` of ``source`` says. Raises as ``Checkpoints.restore``."""
    row = _the_one_begun(at, row) if source is at else row
    then = source.tree(row.manifest)
    staging_name = PREFIX + secrets.token_hex(8)
    close_again(at, project.origin)
    with _anchored(at, project.origin) as anchor:
        pending = clear_up(at, anchor)
        taking = Taking(project, at, anchor, own)
        try:
            if pending is not None and _unfinished(at, pending, row, taking.tree):
                before_id = pending.before_id
                at.index.begin(Pending(row.manifest, row.checkpoint.id, before_id, staging_name))
            else:
                pending = None
                begun = (row.manifest, row.checkpoint.id, staging_name)
                before_id = taking.keep(BEFORE_RESTORE.encode(), begun).id
        finally:
            taking.close()
            _give_back(at, anchor)
        made = plan(taking.tree, taking.picture, then)
        if made.idle and taking.tree.manifest.root == then.manifest.root:
            # also where nothing could be written
            at.index.end()
            return Restored(row.checkpoint, nothing_done(), BEFORE_RESTORE, before_id, made.left)
        try:
            staging = _staged(at, anchor, staging_name, made, source, taking.tree)
        except (Refused, OSError) as error:
            if pending is None:
                at.index.end()
            if isinstance(error, Refused):
                raise
            why = {"": f"no file could be made beside the others: {error.strerror}"}
            raise _not_restored(project.origin, why, before_id) from error
        applying = Applying(anchor, made, taking.picture, then, staging)
        applying.run()
        staging.close()
        applying.settle()
    if applying.failed:
        raise _not_restored(project.origin, applying.failed, before_id)
    at.index.end()
    return Restored(row.checkpoint, applying.done, BEFORE_RESTORE, before_id, applying.left)


def clear_up(at: Opened, anchor: Anchor) -> Pending | None:
    """Take away the folder that a killed restore left in the tree. What is known of that restore, if there was one."""
    pending = at.index.pending()
    if pending is not None:
        try:
            clear(anchor, pending.staging)
        except OSError as error:
            raise _not_restored(anchor.root, {pending.staging: error.strerror or str(error)}, "") from error
    return pending


def _the_one_begun(at: Opened, row: Row) -> Row:
    """The same call again after a kill means the same state, also when the killed one restored a ``before-restore`` and
    so made a newer one."""
    pending = at.index.pending()
    if pending is None or pending.before_id != row.checkpoint.id:
        return row
    for other in at.index.rows():
        if other.checkpoint.label == BEFORE_RESTORE and other.checkpoint.id == pending.target_id:
            return other
    return row


def _unfinished(at: Opened, pending: Pending, row: Row, now: Tree) -> bool:
    """Whether the tree holds nothing but what the killed restore displaced or was to bring.

    One that had come to its end but for the note of it is no longer the one that a restore of something else displaces.
    """
    before = at.index.manifest_of(pending.before_id)
    if before is None or not at.index.has(pending.target):
        return False
    target = at.tree(pending.target)
    if row.manifest != pending.target and comparing.same_contents(target, now):
        return False
    return comparing.only_mixes(at.tree(before), target, now)


def _staged(at: Opened, anchor: Anchor, name: str, made: Plan, source: Opened, now: Tree) -> Staging:
    """Everything that is to be put into the tree. When that fails, the tree is as it was."""
    try:
        staging = Staging(anchor, name)
        try:
            staging.fill(made, source.reader)
        except BaseException:
            staging.close()
            raise
    except (Refused, OSError):
        _give_back(at, anchor)
        root = now.manifest.root
        dress(anchor.fd, root.mode, (root.uid, root.gid), root.mtime_ns, root.attributes)
        raise
    return staging


def _give_back(at: Opened, anchor: Anchor) -> None:
    """Folders that had to be opened up for a look get their modes back."""
    for path, mode in reversed(list(anchor.unlocked.items())):
        os.fchmod(anchor.folder(path), mode)
    anchor.unlocked.clear()
    anchor.refresh()
    # from now on the displaced state knows all modes
    anchor.opening = None
    at.index.forget_opened()


def close_again(at: Opened, origin: str) -> None:
    """What a restore had opened up for its look when it was killed gets the mode that it had.

    Raises ``OSError``. Passed over: what is something else by now, or has got another mode.
    """
    opened = at.index.opened()
    if not opened:
        return
    gone = (FileNotFoundError, NotADirectoryError, PermissionError)
    with contextlib.suppress(*gone), Anchor(origin) as anchor:
        for path, mode, inode in opened:
            with contextlib.suppress(*gone):
                above, _, name = path.rpartition("/")
                folder = anchor.folder(above)
                found = os.stat(name or ".", dir_fd=folder, follow_symlinks=False)
                if found.st_ino == inode and stat.S_IMODE(found.st_mode) in (mode | stat.S_IRWXU, mode | stat.S_IRUSR):
                    set_mode(name or ".", folder, mode)
    at.index.forget_opened()


@contextmanager
def _anchored(at: Opened, origin: str) -> Iterator[Anchor]:
    try:
        anchor = Anchor(origin, force=True, opening=at.index.note_opened)
    except OSError as error:
        raise _not_restored(origin, {"": error.strerror or str(error)}, "") from error
    with anchor:
        yield anchor


def _not_restored(origin: str, failed: Mapping[str, str], before_id: str) -> Refused:
    paths = dict(sorted(failed.items())[:MAX_NAMED])
    shown = "; ".join(f"{path or origin}: {why}" for path, why in list(paths.items())[:5])
    more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
    kept = f"; what was there before is checkpoint {before_id} ({BEFORE_RESTORE})" if before_id else ""
    return Refused(
        f"{origin} could not be restored as a whole: {shown}{more}{kept}",
        code="not_restored",
        paths=paths,
        total=len(failed),
        before=before_id or None,
    )
