"""What each system call means for files and the network. One table; the names of its calls are what strace is told to
look at."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from veil.layers.tracing import values
from veil.layers.tracing.account import Account, Kind
from veil.layers.tracing.values import Result
from veil.model.plan import Touched

#: Paths put down at most as touched; a picture of a tree holds no more either.
MOST_TOUCHED = 200_000
#: Files that are no files: written to and read by everybody, changed by nobody.
_NOWHERE = frozenset({b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/tty", b"/dev/urandom", b"/dev/random"})
_WRITING = (b"O_WRONLY", b"O_RDWR", b"O_CREAT", b"O_TRUNC")
#: Openings of what is no content: a name without a place, a place without a name, the names in a folder.
_NO_CONTENT = (b"O_PATH", b"O_TMPFILE", b"O_DIRECTORY")


class Folder:
    """A working directory, shared by all threads that share it. ``None``: not known."""

    def __init__(self, path: bytes | None) -> None:
        self.path = path


@dataclass
class Process:
    """Attributes: folder: where it is. own: it is the command's, and not of what was put around it."""

    folder: Folder
    own: bool


class Scene(Protocol):
    """What a handler may use (see ``Follower``)."""

    account: Account
    marks: Touched

    def path(self, process: Process, folder: bytes | None, argument: bytes) -> bytes | None: ...

    def gap(self, why: str) -> None: ...


Handler = Callable[[Scene, Process, list[bytes], Result], None]


def _touch(scene: Scene, *paths: bytes, whole: bool = False) -> None:
    """``whole``: with all that lies below."""
    marks = scene.marks
    if len(marks.paths) + len(paths) > MOST_TOUCHED:
        marks.complete = False
        return
    marks.paths.update(paths)
    if whole:
        marks.trees.update(paths)


def _told(scene: Scene, kind: Kind, *paths: bytes | None, returned: Result) -> None:
    """A call that changes what is at these paths."""
    if returned.error is not None:
        return
    known = [path for path in paths if path is not None]
    _touch(scene, *known, whole=kind == "renamed")
    if not returned.ok:
        return  # it never returned: nobody knows whether it was done
    if len(known) < len(paths):
        scene.gap("a file was changed whose path is not known")
    else:
        scene.account.add(kind, *(scene.account.path(os.path.normpath(path)) for path in known))


def opened(scene: Scene, path: bytes | None, flags: bytes, returned: Result) -> None:
    """A file was opened. Where its descriptor leads to is the better path: links are resolved in it."""
    if returned.error is not None:
        return
    known = returned.opened
    real = known.path if known is not None and not known.deleted and known.path is not None else None
    if real is not None and real.startswith(b"/"):
        where: bytes | None = real
    else:
        where = path
    if where in _NOWHERE:
        return
    if any(flag in flags for flag in _WRITING) and b"O_TMPFILE" not in flags:
        if path is not None and path != where:
            _touch(scene, path)
        _told(scene, "created" if b"O_EXCL" in flags and b"O_CREAT" in flags else "written", where, returned=returned)
    elif where is not None and returned.ok and not any(flag in flags for flag in _NO_CONTENT):
        scene.account.add("read", scene.account.path(os.path.normpath(where)))


def _at(arguments: list[bytes], index: int) -> bytes:
    return arguments[index] if index < len(arguments) else b""


def _open(folder: int | None, name: int, flags: int | None) -> Handler:
    def handle(scene: Scene, process: Process, arguments: list[bytes], returned: Result) -> None:
        path = scene.path(process, None if folder is None else _at(arguments, folder), _at(arguments, name))
        opened(scene, path, b"O_CREAT" if flags is None else _at(arguments, flags), returned)

    return handle


def _by_handle(scene: Scene, process: Process, arguments: list[bytes], returned: Result) -> None:
    opened(scene, None, _at(arguments, 2), returned)


def _changes(kind: Kind, *places: tuple[int | None, int]) -> Handler:
    """``places``: for each path the index of the argument that is its folder (``None``: cwd) and of its name."""

    def handle(scene: Scene, process: Process, arguments: list[bytes], returned: Result) -> None:
        paths = []
        for folder, name in places:
            paths.append(scene.path(process, None if folder is None else _at(arguments, folder), _at(arguments, name)))
        _told(scene, kind, *paths, returned=returned)

    return handle


def _through(kind: Kind) -> Handler:
    """The first argument is a descriptor of what is changed."""

    def handle(scene: Scene, process: Process, arguments: list[bytes], returned: Result) -> None:
        held = values.descriptor(_at(arguments, 0))
        if held is not None and held.path is not None and held.path.startswith(b"/") and not held.deleted:
            _told(scene, kind, held.path, returned=returned)

    return handle


def _times(scene: Scene, process: Process, arguments: list[bytes], returned: Result) -> None:
    if _at(arguments, 1) == b"NULL":
        _through("metadata")(scene, process, arguments, returned)
    else:
        _changes("metadata", (0, 1))(scene, process, arguments, returned)


def _renames(*places: tuple[int | None, int]) -> Handler:
    plain = _changes("renamed", *places)

    def handle(scene: Scene, process: Process, arguments: list[bytes], returned: Result) -> None:
        plain(scene, process, arguments, returned)
        if returned.ok and b"RENAME_EXCHANGE" in _at(arguments, 4):
            back = [places[1], places[0]]
            _changes("renamed", *back)(scene, process, arguments, returned)

    return handle


def _links(*places: tuple[int | None, int]) -> Handler:
    """Another name for a file: its number of links changes, wherever else it is called something."""
    old, new = places
    made = _changes("created", new)

    def handle(scene: Scene, process: Process, arguments: list[bytes], returned: Result) -> None:
        source = scene.path(process, None if old[0] is None else _at(arguments, old[0]), _at(arguments, old[1]))
        if source is not None and returned.error is None:
            _touch(scene, source)
        made(scene, process, arguments, returned)

    return handle


def _network(how: str, index: int) -> Handler:
    def handle(scene: Scene, process: Process, arguments: list[bytes], returned: Result) -> None:
        address = values.address(_at(arguments, index))
        if address is None or address.family == "netlink":
            return  # netlink: a talk with the kernel itself
        if how == "bind" and address.path is not None:
            quoted = b'"' + address.path.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
            _told(scene, "created", scene.path(process, None, quoted), returned=returned)
        came = "ok" if returned.ok else "unfinished" if returned.error is None else returned.error.decode()
        name = address.name if address.family in ("inet", "inet6") else f"{address.family}:{address.name}"
        scene.account.add("network", how, name, came)

    return handle


def _gap(why: str) -> Handler:
    def handle(scene: Scene, process: Process, arguments: list[bytes], returned: Result) -> None:
        if returned.ok:
            scene.gap(why)

    return handle


_MOUNTS = _gap("file systems were mounted or the root folder was changed: paths may mean something else")

HANDLERS: Mapping[bytes, Handler] = {
    b"open": _open(None, 0, 1),
    b"creat": _open(None, 0, None),
    b"openat": _open(0, 1, 2),
    b"openat2": _open(0, 1, 2),
    b"open_by_handle_at": _by_handle,
    b"truncate": _changes("written", (None, 0)),
    b"mkdir": _changes("created", (None, 0)),
    b"mkdirat": _changes("created", (0, 1)),
    b"mknod": _changes("created", (None, 0)),
    b"mknodat": _changes("created", (0, 1)),
    b"symlink": _changes("created", (None, 1)),
    b"symlinkat": _changes("created", (1, 2)),
    b"link": _links((None, 0), (None, 1)),
    b"linkat": _links((0, 1), (2, 3)),
    b"unlink": _changes("deleted", (None, 0)),
    b"unlinkat": _changes("deleted", (0, 1)),
    b"rmdir": _changes("deleted", (None, 0)),
    b"rename": _renames((None, 0), (None, 1)),
    b"renameat": _renames((0, 1), (2, 3)),
    b"renameat2": _renames((0, 1), (2, 3)),
    **dict.fromkeys(
        (
            b"chmod",
            b"chown",
            b"lchown",
            b"utime",
            b"utimes",
            b"setxattr",
            b"lsetxattr",
            b"removexattr",
            b"lremovexattr",
        ),
        _changes("metadata", (None, 0)),
    ),
    **dict.fromkeys((b"fchmodat", b"fchmodat2", b"fchownat"), _changes("metadata", (0, 1))),
    **dict.fromkeys((b"utimensat", b"futimesat"), _times),
    **dict.fromkeys((b"fchmod", b"fchown", b"fsetxattr", b"fremovexattr"), _through("metadata")),
    b"connect": _network("connect", 1),
    b"bind": _network("bind", 1),
    b"sendto": _network("send", 4),
    b"sendmsg": _network("send", 1),
    b"sendmmsg": _network("send", 1),
    b"io_uring_setup": _gap("io_uring was used: what goes through it is not seen"),
    **dict.fromkeys((b"mount", b"umount2", b"move_mount", b"pivot_root", b"chroot"), _MOUNTS),
}
#: Calls that tell who is whose child and where, beside those of the table.
FOLLOWED = (b"execve", b"execveat", b"fork", b"vfork", b"clone", b"clone3", b"chdir", b"fchdir")
#: Every call that strace has to look at.
CALLS: tuple[str, ...] = tuple(name.decode() for name in (*HANDLERS, *FOLLOWED))
