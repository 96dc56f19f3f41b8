"""A disposable view of a folder to run in: an overlay where there can be one, else a copy (of shared blocks, or whole).

Where namespaces work, the view stands at the folder's own path, so that the command sees the names that it knows;
elsewhere a copy is run in as what it is, a folder of another name.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from veil.host import overlay, replica
from veil.host.children import CannotStart
from veil.host.differing import Difference, State
from veil.host.mounts import mounted_below
from veil.host.processes import LINUX
from veil.host.pump import could_not_start
from veil.host.rooms import Room, Rooms, lies_below
from veil.host.tree import kind_of
from veil.model.outcome import Fact, Outcome
from veil.model.plan import Launch

Method = Literal["overlay", "clone", "copy"]
METHODS: tuple[Method, ...] = ("overlay", "clone", "copy")
#: Bytes below which a disk counts as full.
_ROOM_LEFT = 1 << 20
#: Mounts below the folder named at most.
_MAX_NAMED = 5


class CannotView(Exception):
    """No method works. ``reasons``: what each that was tried said, by name."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
        self.reasons = dict(reasons)


@dataclass
class View:
    """One view, ready to be run in.

    Attributes:
        folder: the real folder, links resolved.
        covers: whether the view stands at the folder's own path.
        hidden: folders of ours in it that are empty in the view.
        opened_ns: since the epoch, before anything of it was made.
        gaps: what it does not show as a real run would see it.
    """

    method: Method
    folder: str
    room: Room
    covers: bool
    hidden: tuple[str, ...]
    opened_ns: int
    top: State | None = None
    copy: replica.Replica | None = None
    gaps: list[str] = field(default_factory=list)

    @property
    def _kind(self) -> str:
        return "overlay" if self.copy is None else "bind"

    def launch(self, launch: Launch) -> Launch:
        """The launch in the view."""
        if self.covers:
            words = overlay.words("run", self._kind, self.folder, self.room.path, self.hidden)
            return replace(
                launch, outside=(*launch.outside, *words, "--"), settle=partial(self._settle, launch.argv[0])
            )
        assert self.copy is not None
        env = dict(launch.env)
        if "PWD" in env:  # a shell trusts it when it leads to where it stands, and says it
            env["PWD"] = self.copy.tree
        return replace(launch, cwd=self.copy.tree, env=env)

    def _settle(self, program: str, outcome: Outcome) -> Outcome:
        """A program that could not be started ends as it would without a view."""
        error = overlay.unstarted(self.room.path, program)
        return outcome if error is None else could_not_start(CannotStart(error))

    def broken(self) -> str | None:
        """Why the command could not be run in the view (then it was not run at all)."""
        return overlay.broken(self.room.path) if self.covers else None

    def look(self, paths: Sequence[str], cwd: str) -> tuple[dict[str, Fact], dict[str, str]]:
        """Facts by path as it was asked, and what could not be looked at. ``cwd``: what relative ones are below.

        Raises ``OSError`` when the view cannot be made again.
        """
        facts: dict[str, Fact] = {}
        wrong = {path: "no path" for path in paths if "\0" in path}
        asked = [path for path in paths if path not in wrong]
        if not asked:
            return facts, wrong
        full = [os.path.join(cwd, path) for path in asked]
        found = (
            overlay.look(self._kind, self.folder, self.room.path, self.hidden, full)
            if self.covers
            else self._in_copy(full)
        )
        for path, seen in zip(asked, found, strict=True):
            if isinstance(seen, OSError):
                wrong[path] = seen.strerror or "unreadable"
            elif seen is None:
                facts[path] = Fact(None)
            else:
                facts[path] = Fact(kind_of(seen[0]), seen[1], stat.S_IMODE(seen[0]))
        return facts, wrong

    def _in_copy(self, paths: Sequence[str]) -> list[tuple[int, int] | OSError | None]:
        assert self.copy is not None
        found: list[tuple[int, int] | OSError | None] = []
        for path in paths:
            above, name = os.path.split(os.path.normpath(path) if path.endswith("/") else path)
            real = os.path.join(os.path.realpath(above), name)
            if lies_below(above, self.folder):
                real = os.path.join(self.copy.tree, os.path.relpath(real, self.folder))
            try:
                status = os.lstat(real)
            except (FileNotFoundError, NotADirectoryError):
                found.append(None)
            except OSError as error:
                found.append(error)
            else:
                found.append((status.st_mode, status.st_size))
        return found

    def crowded(self) -> bool:
        """Whether the disk that the view is written to is full, and another one than the folder's."""
        found = os.statvfs(self.room.path)
        if found.f_bavail * found.f_frsize >= _ROOM_LEFT or not found.f_blocks:
            return False
        return os.stat(self.room.path).st_dev != os.stat(self.folder).st_dev

    def difference(self) -> Difference:
        """What the run did to the view. Asked once, when nothing of it is alive. Raises ``OSError``."""
        if self.copy is not None:
            return replica.difference(self.copy)
        assert self.top is not None
        return overlay.difference(self.folder, self.room.path, self.top)

    def close(self) -> None:
        """Take it away. Idempotent."""
        self.room.close()


def open_view(
    folder: str,
    rooms: Rooms,
    *,
    most_bytes: int,
    methods: Sequence[Method] = METHODS,
    own: Sequence[str] = (),
    cover: bool = True,
) -> View:
    """The first view that can be had.

    Args:
        folder: absolute. most_bytes: that a copy may have which shares nothing.
        methods: those that may be used, the better ones first. own: folders of veil's own, links resolved.
        cover: the view may stand at the folder's path; ``False`` where something will keep the run from mounting.

    Raises:
        CannotView: with what each method said.
    """
    real = os.path.realpath(folder)
    if real == "/":
        raise CannotView({"preview": "the root folder cannot be covered by a view of itself"})
    if not os.path.isdir(real):
        raise CannotView({"preview": "the folder is gone"})
    reasons: dict[str, str] = {}
    hidden = tuple(path for path in own if lies_below(path, real) and os.path.isdir(path) and path != real)
    for method in methods:
        if method == "overlay" and not cover:
            reasons[method] = "what confines the command lets it mount nothing"
            continue
        for room in rooms.places(real):
            try:
                view = _try(method, real, room, hidden, most_bytes, cover)
            except (OSError, replica.TooLarge) as error:
                reasons[method] = (error.strerror if isinstance(error, OSError) else None) or str(error)
                room.close()
                continue
            except BaseException:
                room.close()
                raise
            if method != methods[0] and reasons:
                view.gaps += [f"no {name}: {reason}" for name, reason in reasons.items() if name != method]
            return view
        reasons.setdefault(method, "there is no folder outside of it to write to")
    raise CannotView(reasons)


def _try(method: Method, folder: str, room: Room, hidden: tuple[str, ...], most_bytes: int, cover: bool) -> View:
    opened_ns = time.time_ns()
    if method == "overlay":
        reason = overlay.unsuited(folder)
        if reason is not None:
            raise OSError(1, reason)
        top = overlay.prepare(folder, room.path)
        _prove("overlay", folder, room, hidden)
        view = View(method, folder, room, True, hidden, opened_ns, top=top)
        view.gaps += [
            f"{at} is another file system: in the preview it is what lies under it"
            for at in mounted_below(folder)[:_MAX_NAMED]
        ]
        return view
    tree = os.path.join(room.path, "tree")
    covers = cover and _can_bind(folder, room, tree)
    if not covers and not room.passing:
        raise OSError(1, "a copy that is run in as what it is has to lie outside of veil's own folders")
    if method == "clone" and not replica.shares(folder, room.path):
        raise OSError(95, "its files cannot share their blocks with a copy here")
    # what is hidden is not in the copy, so there is nothing to mount on
    copy = replica.make(folder, tree, (*hidden, room.path), None if method == "clone" else most_bytes)
    view = View(method, folder, room, covers, (), opened_ns, copy=copy)
    if not covers:
        view.gaps.append(
            f"the command ran in {tree}: paths in what it wrote differ, absolute ones lead to the real tree, "
            "and what lies above the folder is not above the copy"
        )
    return view


def _can_bind(folder: str, room: Room, tree: str) -> bool:
    """Whether a copy can stand at the folder's path: tried with an empty one."""
    if not LINUX:
        return False
    os.mkdir(tree, 0o700)
    try:
        _prove("bind", folder, room, ())
    except OSError:
        return False
    finally:
        os.rmdir(tree)
    return True


#: What was proven to work: kind, folder and its device, device of the room, user.
_proven: set[tuple[object, ...]] = set()


def _prove(kind: str, folder: str, room: Room, hidden: tuple[str, ...]) -> None:
    """Mount it once, unless that was done before in the same circumstances. Raises ``OSError``."""
    key = (
        kind,
        folder,
        os.stat(folder).st_dev,
        os.stat(room.path).st_dev,
        os.geteuid(),
        hidden,
        tuple(mounted_below(folder)),
    )
    if key in _proven:
        return
    overlay.prove(kind, folder, room.path, hidden)
    if len(_proven) >= 256:
        _proven.clear()
    _proven.add(key)
