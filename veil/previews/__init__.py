"""What previews would have changed, kept until somebody wants it made real.

previews = Previews(state / "previews" / "kept", max_bytes=..., ttl_seconds=..., most=...)
kept = previews.keep(folder, difference, opened_ns, opened_ns)
previews.apply(kept.token)
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from veil.host import removing, turns
from veil.host.anchored import Anchor
from veil.host.differing import Difference
from veil.model.errors import Refused
from veil.previews import keeping
from veil.previews.base import Kept, is_token
from veil.previews.checking import Check
from veil.previews.promoting import Promotion

__all__ = ["Made", "Previews"]

#: Paths named at most when an apply is refused.
MAX_NAMED = 50
#: Seconds that another process's work on the same preview is waited for.
WAIT_SECONDS = 30.0
_BEGUN, _APPLIED, _LOCK = "begun", "applied", "lock"


@dataclass(frozen=True)
class Made:
    """What was made real. Attributes: folder: where. paths: how many. left: path -> what could not be given to it."""

    folder: str
    paths: int
    left: Mapping[str, str] = field(default_factory=dict)


class Previews:
    """The kept previews below one folder. Making one touches nothing.

    Args:
        folder: for them alone; made with mode 0700 at the first one.
        max_bytes: of all of them together; the oldest go first. One that alone has more is not kept.
        ttl_seconds: age at which one goes. most: how many there are at most.
    """

    def __init__(self, folder: Path, *, max_bytes: int, ttl_seconds: float, most: int) -> None:
        self.folder = folder
        self._max_bytes, self._ttl, self._most = max_bytes, ttl_seconds, most

    def keep(self, real: str, difference: Difference, opened_ns: int) -> tuple[str | None, str | None]:
        """Keep what would have changed; its contents are taken out of the view.

        Args:
            real: the folder that was previewed, links resolved. opened_ns: when the view of it was made.

        Returns:
            the name under which it is kept, or ``None`` and the reason why it is not.
        """
        size = keeping.size_of(difference)
        if size > self._max_bytes:
            return None, f"it has {size} bytes, more than {self._max_bytes} (VEIL_MAX_PREVIEW_BYTES)"
        try:
            removing.claim(self.folder)
            self.sweep(size, 1)
            token = secrets.token_hex(12)
            place = self.folder / token
            removing.claim(place)
            try:
                keeping.keep(place, real, difference, opened_ns, time.time_ns())
            except BaseException:
                with contextlib.suppress(OSError):
                    removing.discard(self.folder, token)
                raise
        except OSError as error:
            return None, error.strerror or str(error)
        except Refused as refusal:
            return None, str(refusal)
        return token, None

    def apply(self, token: str, id: str) -> Made:
        """Make it real, if the folder still stands where the preview found it.

        Args: id: what errors call it.

        Raises:
            Refused: ``not_kept`` (it has gone), ``already_applied``, ``moved`` (``facts["paths"]``: path -> why;
                nothing was changed), ``busy``, ``not_applied`` (the disk refused; ``facts["paths"]`` says where
                it stopped: the same call goes on from there).
        """
        place = self.folder / token
        if not is_token(token) or not place.is_dir():
            raise _gone(id)
        with self._turn(place, id):
            if (place / _APPLIED).exists():
                raise Refused(f"{id} has been applied already", code="already_applied", id=id)
            kept = keeping.load(place)
            if kept is None:
                raise _gone(id)
            made = self._promote(kept, place, id)
            (place / _APPLIED).touch(mode=0o600)
            with contextlib.suppress(OSError):  # then it goes with the rest, later
                removing.discard(place, keeping.CONTENT)
            return made

    @contextlib.contextmanager
    def _turn(self, place: Path, id: str) -> Iterator[None]:
        try:
            with turns.turn(place / _LOCK, WAIT_SECONDS):
                yield
        except FileNotFoundError:
            raise _gone(id) from None
        except Refused as refusal:
            if refusal.code != "busy":
                raise
            raise Refused(f"{id} is being applied by another process", code="busy", id=id) from None

    def _promote(self, kept: Kept, place: Path, id: str) -> Made:
        begun = (place / _BEGUN).exists()
        try:
            anchor = Anchor(kept.folder)
        except OSError as error:  # a link in its place counts as none
            raise _moved(id, kept.folder, {"": error.strerror or "it cannot be opened"}) from error
        try:
            with anchor:
                check = Check(anchor, kept, place, begun=begun)
                check.run()
                if check.moved:
                    raise _moved(id, kept.folder, check.moved)
                return self._made(anchor, kept, place, check, id)
        except OSError as error:
            raise _stopped(id, kept.folder, {str(error.filename or ""): error.strerror or str(error)}) from error

    def _made(self, anchor: Anchor, kept: Kept, place: Path, check: Check, id: str) -> Made:
        promotion = Promotion(anchor, kept, place, check)
        try:
            promotion.stage()
            (place / _BEGUN).touch(mode=0o600)
            promotion.commit()
        finally:
            promotion.close()
        if promotion.failed is not None:
            raise _stopped(id, kept.folder, dict([promotion.failed]))
        return Made(kept.folder, len(kept.rows), dict(promotion.left))

    def gc(self) -> dict[str, int]:
        """Bring them below their limits. Returns ``removed``, ``left``, ``bytes_left``. Raises ``OSError``."""
        before = self._names()
        if before:
            self.sweep()
        left = self._names()
        size = sum(keeping.size_on_disk(self.folder / name) for name in left)
        return {"removed": len(before) - len(left), "left": len(left), "bytes_left": size}

    def _names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.folder) if is_token(name)]
        except FileNotFoundError:
            return []

    def sweep(self, room_for: int = 0, more: int = 0) -> None:
        """Take away what is too old, too many or too much, the oldest first.

        Args: room_for: bytes that have to fit as well. more: previews that do.

        Raises ``OSError``.
        """
        found: list[tuple[float, str, int]] = []
        now = time.time()
        for name in self._names():
            place = self.folder / name
            try:
                born = place.stat().st_mtime
            except FileNotFoundError:
                continue  # another process swept it
            found.append((born, name, keeping.size_on_disk(place)))
        found.sort(reverse=True)
        total = room_for
        for number, (born, name, size) in enumerate(found, 1):
            total += size
            if number + more > self._most or born < now - self._ttl or total > self._max_bytes:
                with contextlib.suppress(OSError):
                    removing.discard(self.folder, name)


def _gone(id: str) -> Refused:
    return Refused(
        f"what {id} would have changed is not kept any more; preview the command again", code="not_kept", id=id
    )


def _moved(id: str, folder: str, moved: Mapping[str, str]) -> Refused:
    paths = dict(sorted(moved.items())[:MAX_NAMED])
    shown = "; ".join(f"{path or folder}: {why}" for path, why in list(paths.items())[:5])
    more = f" and {len(moved) - 5} more" if len(moved) > 5 else ""
    return Refused(
        f"{folder} is not what the preview {id} saw, so nothing was changed: {shown}{more}; preview the command again",
        code="moved",
        id=id,
        paths=paths,
        total=len(moved),
    )


def _stopped(id: str, folder: str, paths: Mapping[str, str]) -> Refused:
    shown = "; ".join(f"{path or folder}: {why}" for path, why in paths.items())
    return Refused(
        f"{id} could not be applied as a whole: {shown}; the same call goes on where this one stopped",
        code="not_applied",
        id=id,
        paths=dict(paths),
    )
