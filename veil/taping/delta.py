"""What one run changed on disk, with contents: what its result told, and what it did not."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

from veil.cassettes.roots import Roots
from veil.cassettes.steps import ABSENT, Step, TreeChange
from veil.host.applying import Put
from veil.host.contents import Contents
from veil.model.outcome import Change, Happened, Kind


def changes_of(
    told: Sequence[Change] | None,
    before: Mapping[str, str],
    after: Mapping[str, str],
    contents: Contents,
    roots: Roots,
    cwd: str,
) -> tuple[tuple[TreeChange, ...] | None, tuple[TreeChange, ...]]:
    """Two lists for a step: what ``files_changed`` told (``None``: nobody looked), and what changed besides.

    A row ends with what was read of its file, which may be newer than the picture while others are under way.

    Args:
        before, after: pictures of the workspace (paths below its root).
        cwd: folder of the run below the root; paths of a step are relative to it.
    """
    done: set[str] = set()
    first: list[TreeChange] = []
    for change in told or ():
        path = below_root(change.path, cwd)
        old = None if change.old is None else below_root(change.old, cwd)
        done.update((path, old or path))
        was = before.get(old or path, ABSENT)
        row = _change(change.path, change.change, was, after.get(path, ABSENT), path, contents, roots, change.old)
        # of a preview's change there is nothing to look at
        first.append(replace(row, kind=change.kind) if row.before == row.after == ABSENT else row)
    second = []
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path, ABSENT), after.get(path, ABSENT)
        if was != now and path not in done:
            word: Happened = "created" if was == ABSENT else "deleted" if now == ABSENT else "modified"
            second.append(_change(posixpath.relpath(path, cwd or "."), word, was, now, path, contents, roots, None))
    return (None if told is None else tuple(first)), tuple(second)


def below_root(path: str, cwd: str) -> str:
    """The path below the root of a path relative to a run's folder."""
    return posixpath.normpath(posixpath.join(cwd, path))


def _change(
    shown: str, word: Happened, was: str, now: str, path: str, contents: Contents, roots: Roots, old: str | None
) -> TreeChange:
    content: bytes | None = None
    target: str | None = None
    omitted = 0
    kind = _kind_in(now)
    changed = _content_of(was) != _content_of(now)
    if (kind in ("file", "symlink") and changed) or (kind == "symlink" and old is not None):
        raw, now = contents.content(path, now)
        kind = _kind_in(now)
        if kind == "symlink":
            target = roots.hide(raw or b"").decode("utf-8", "surrogateescape")
        elif raw is not None:
            content = roots.hide(raw)
        elif kind == "file":
            omitted = contents.size_of(path)
    return TreeChange(
        path=shown,
        change=word,
        kind=kind or _kind_in(was) or "file",
        old=old,
        mode=_mode_in(now),
        before=was,
        after=now,
        content=content,
        omitted=omitted,
        target=target,
    )


def amended(row: TreeChange, now: str, path: str, contents: Contents, roots: Roots) -> TreeChange:
    """The same row, ending with what is there (its id is ``now``) at ``path`` below the root."""
    return _change(row.path, row.change, row.before, now, path, contents, roots, row.old)


def complete(row: TreeChange) -> bool:
    """Whether what is there after the row follows from the row, whatever stood there before."""
    return row.kind != "file" or row.content is not None or _content_of(row.before) == _content_of(row.after)


def _kind_in(entry: str) -> Kind | None:
    word = entry.split(":", 1)[0]
    return next((kind for kind in get_args(Kind) if kind == word), None)


def _mode_in(entry: str) -> int:
    """The permission bits in an id; 0 where it has none."""
    parts = entry.split(":")
    return int(parts[1], 8) if len(parts) > 1 and parts[0] != "symlink" else 0


def _content_of(entry: str) -> str:
    """The digest in an id, without the permission bits."""
    return entry.rsplit(":", 1)[-1] if entry.startswith("file:") else entry


def puts_of(step: Step, roots: Roots, cwd: str) -> list[Put]:
    """What is to be done to a workspace so that it is as after the step."""
    puts = []
    for change in step.delta:
        if change.before == change.after and change.old is None:
            continue  # touched, not changed
        path = below_root(change.path, cwd)
        old = None if change.old is None else below_root(change.old, cwd)
        if change.after == ABSENT:
            puts.append(Put(path, None))
            continue
        content = None if change.content is None else roots.show(change.content)
        if change.kind == "symlink":
            content = roots.show((change.target or "").encode("utf-8", "surrogateescape"))
        puts.append(Put(path, change.kind, change.mode, content, old, change.before == ABSENT))
    return puts
