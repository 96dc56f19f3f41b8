"""Reading one entry of a folder in such a way that what is kept was really its content at one moment."""

from __future__ import annotations

import os
import stat
import time

from veil.host.anchored import FILE, Anchor, Row, row_of
from veil.host.metadata import Attributes, attributes_of
from veil.model.errors import Refused
from veil.snapshots.known import Held, trusts
from veil.snapshots.sinks import Sink

#: Takes the place of the type bits in the mode of what is closed to us.
CLOSED = 0
_TRIES = 6
_FIRST_PAUSE = 0.005


class Moved(Exception):
    """What was listed is no longer there, or is something else."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Reading:
    """Entries of the tree at ``anchor``, their contents into ``sink``.

    Where the anchor has ``force`` (the tree is going to be restored), what cannot be read even so is an entry of the
    kind ``CLOSED``; everywhere else it is refused.

    Attributes:
        left_out: path -> what of it could not be read although its content could.
    """

    def __init__(self, anchor: Anchor, sink: Sink) -> None:
        self._anchor, self._sink = anchor, sink
        self.left_out: dict[str, str] = {}

    def folder(self, path: str) -> int:
        """A descriptor of a folder. Raises ``Moved``, or ``Refused`` (``unreadable``)."""
        try:
            return self._anchor.folder(path)
        except (FileNotFoundError, NotADirectoryError):
            raise Moved(path) from None
        except OSError as error:
            raise unreadable(path or self._anchor.root, error) from error

    def is_closed(self, path: str) -> bool:
        """Whether the folder at ``path`` is an entry of the kind ``CLOSED``. Raises ``OSError``."""
        try:
            self._anchor.folder(path)
        except PermissionError:
            return self._anchor.force
        except (FileNotFoundError, NotADirectoryError):
            pass
        return False

    def entry(self, folder: str, row: Row) -> tuple[Row, Held]:
        """The row as it was when its content was read, and what is known of it. Raises ``Moved``, ``Refused``."""
        name, mode = row[0], row[1]
        if stat.S_ISDIR(mode):  # something is mounted there: a folder or a file
            return row, ("", 0, 0, (), True)
        if stat.S_IFMT(mode) == CLOSED:  # a folder
            return row, ("", 0, 0, (), False)
        path = f"{folder}/{name}" if folder else name
        at = self.folder(folder)
        try:
            if stat.S_ISREG(mode):
                return self._file(path, name, at)
            looked = time.time_ns()
            found = os.stat(name, dir_fd=at, follow_symlinks=False)
            content = os.readlink(name, dir_fd=at) if stat.S_ISLNK(found.st_mode) else ""
        except FileNotFoundError:
            raise Moved(path) from None
        except OSError as error:
            if self._anchor.force and isinstance(error, PermissionError):
                return (name, CLOSED | stat.S_IMODE(mode), 0, 0, 0, 0, 0), ("", 0, 0, (), False)
            raise unreadable(path, error) from error
        if stat.S_IFMT(found.st_mode) != stat.S_IFMT(mode):
            raise Moved(path)
        return row_of(name, found), (content, found.st_uid, found.st_gid, (), trusts(found.st_ctime_ns, looked))

    def _file(self, path: str, name: str, at: int) -> tuple[Row, Held]:
        pause = _FIRST_PAUSE
        for _ in range(_TRIES):
            handle, mode = self._open(path, name, at)
            try:
                looked = time.time_ns()
                before = os.fstat(handle)
                if not stat.S_ISREG(before.st_mode):
                    raise Moved(path)
                key, length = self._sink.file(handle, before.st_size)
                attributes = self._attributes(path, handle)
                if mode is not None:
                    os.fchmod(handle, mode)
                after = os.fstat(handle)
            finally:
                os.close(handle)
            row = row_of(name, after)
            unmoved = mode is not None or before.st_ctime_ns == after.st_ctime_ns
            if unmoved and length == before.st_size == after.st_size and before.st_mtime_ns == after.st_mtime_ns:
                trusted = mode is None and path not in self.left_out and trusts(after.st_ctime_ns, looked)
                return row, (key.hex(), after.st_uid, after.st_gid, attributes, trusted)
            time.sleep(pause)
            pause *= 2
        raise changing(path)

    def _open(self, path: str, name: str, at: int) -> tuple[int, int | None]:
        """A descriptor; and the mode to give back when the file had to be opened up (only where that is wanted)."""
        try:
            return os.open(name, FILE, dir_fd=at), None
        except FileNotFoundError:
            raise Moved(path) from None
        except PermissionError:
            if not self._anchor.force:
                raise
        except OSError as error:
            found = os.stat(name, dir_fd=at, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                raise Moved(path) from error
            raise
        mode = self._anchor.open_up(path, name, at, stat.S_IRUSR)
        return os.open(name, FILE, dir_fd=at), mode

    def _attributes(self, path: str, handle: int) -> Attributes:
        try:
            return attributes_of(handle)
        except PermissionError as error:
            self.left_out[path] = f"its extended attributes: {error.strerror}"
            return ()


def changing(path: str) -> Refused:
    return Refused(
        f"{path} changed each time it was looked at; try again when nobody is writing to it", code="changing", path=path
    )


def unreadable(path: str, error: OSError) -> Refused:
    return Refused(
        f"{path} cannot be read ({error.strerror}), so the tree is passed over: what is told of it would not be whole. "
        f"Make it readable for user {os.geteuid()}, or take it out of the tree",
        code="unreadable",
        path=path,
    )
