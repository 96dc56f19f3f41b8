"""``veil_checkpoint``: the workspace of a test kept and brought back, and what was brought back looked at."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import pytest

from pytest_veil.real_disk import real_disk
from veil import VeilError

if TYPE_CHECKING:
    from pytest_veil.scenes import Scene
    from veil import Change, Checkpoint, Restored
    from veil.taping import Checkpoints

T = TypeVar("T")
#: Paths that the message of a failed rollback names at most.
_NAMED = 20


class Kept:
    """One checkpoint of the workspace.

    As a context manager it rolls back: when the block is over, however it ended, the workspace is what it was when the
    checkpoint was taken, or the test fails.

    Attributes: checkpoint: ``id``, ``label``, ``files`` and the like.
    """

    def __init__(self, of: VeilCheckpoint, checkpoint: Checkpoint) -> None:
        self._of = of
        self.checkpoint = checkpoint

    def __repr__(self) -> str:
        label = "" if self.checkpoint.label is None else f" {self.checkpoint.label!r}"
        return f"<checkpoint {self.checkpoint.id}{label}>"

    def restore(self) -> Restored:
        """Make the workspace what it was. Raises as ``veil.restore``."""
        __tracebackhide__ = True
        return self._of.restore(self.checkpoint.id)

    def diff(self) -> list[Change]:
        """What is different in the workspace since. Raises as ``veil.diff``."""
        __tracebackhide__ = True
        return self._of.diff(self.checkpoint.id)

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        self._of.roll_back(self.checkpoint, error)


class VeilCheckpoint:
    """``veil_checkpoint``: checkpoints of the workspace that ``veil_run`` works in. They end with the test.

    ``with checkpoint(): ...`` rolls back; ``kept = checkpoint("label")`` has ``restore()`` and ``diff()``.
    """

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene = scene
        self._folder = folder
        self._made: Path | None = None

    def __repr__(self) -> str:
        return f"<veil_checkpoint of {self._scene.nodeid}>"

    def __call__(self, label: str | None = None) -> Kept:
        """Keep everything that is in the workspace now. Raises as ``veil.checkpoint``."""
        __tracebackhide__ = True
        return Kept(self, self._plainly(lambda: self._kept.take(self._root, label)))

    def restore(self, label: str | None = None) -> Restored:
        """Make the workspace what it was at a label, an id, or (``None``) the newest. Raises as ``veil.restore``."""
        __tracebackhide__ = True
        return self._plainly(lambda: self._kept.restore(self._root, label))

    def diff(self, label: str | None = None) -> list[Change]:
        """What is different in the workspace since a label, an id, or (``None``) the newest, sorted by path.

        What is called ``.git`` is left out, as recordings leave it out: the answer is the same in every mode.
        Raises as ``veil.diff``.
        """
        __tracebackhide__ = True
        found = self._plainly(lambda: self._kept.diff(self._root, label))
        return [change for change in found if ".git" not in change.path.split("/")]

    def list(self) -> list[Checkpoint]:
        """Checkpoints of this test so far, the newest first."""
        return self._plainly(lambda: self._kept.list(self._root))

    def roll_back(self, to: Checkpoint, after: BaseException | None) -> None:
        """Restore, and fail the test unless everything is as it was. ``after``: what the block raised."""
        __tracebackhide__ = True
        try:
            done = self.restore(to.id)
            different = self._plainly(lambda: self._kept.diff(self._root, to.id))
        except VeilError as error:
            raise pytest.fail.Exception(f"the workspace was not rolled back: {error}") from after
        wrong = [f"{change.path}: {change.change} all the same" for change in different]
        wrong += [f"{path}: {why}" for path, why in done.left.items() if to.left_out.get(path) is None]
        if wrong:
            raise pytest.fail.Exception(_told(wrong)) from after

    def close(self) -> None:
        """The test is over: its checkpoints go."""
        if self._made is not None:
            with real_disk():
                shutil.rmtree(self._made, ignore_errors=True)

    @property
    def _root(self) -> Path:
        return self._scene.stage.root

    @cached_property
    def _kept(self) -> Checkpoints:
        from veil.taping import Checkpoints

        self._made = Path(tempfile.mkdtemp(prefix="checkpoints-", dir=self._folder))
        return Checkpoints(self._made)

    def _plainly(self, work: Callable[[], T]) -> T:
        """On the real disk; an error without the way it came."""
        __tracebackhide__ = True
        self._scene.require_open()
        try:
            with real_disk():
                return work()
        except VeilError as error:
            raise error.with_traceback(None) from None


def _told(wrong: Sequence[str]) -> str:
    more = f"\n  and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    return "\n  ".join(["the workspace is not what it was after its rollback:", *wrong[:_NAMED]]) + more
