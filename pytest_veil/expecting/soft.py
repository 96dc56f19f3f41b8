"""``with expect.all():`` collects failures and raises them together."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from pytest_veil.expecting.failures import ExpectationError, Failure
from pytest_veil.expecting.message import written
from pytest_veil.expecting.seams import failure_lines

if TYPE_CHECKING:
    from typing_extensions import Self

_open: ContextVar[Soft | None] = ContextVar("pytest_veil_soft", default=None)


class Soft:
    """A block in which a failed check is noted and the test goes on.

    At the end of the outermost block one ``ExpectationError`` lists all failures. An exception that leaves the block
    wins, and carries the failures as a note; a skip does not win, since it would hide them.

    Attributes:
        failures: what failed so far in this block and the blocks in it.
    """

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self._outer: Soft | None = None
        self._entered = False

    def __enter__(self) -> Self:
        if self._entered:
            raise RuntimeError("this block was entered before; write expect.all() anew for each block")
        self._entered = True
        self._outer = _open.get()
        _open.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        # set and not reset by token: a fixture may leave the block in another context than it entered it
        _open.set(self._outer)
        if not self.failures:
            return
        if self._outer is not None:
            self._outer.failures += self.failures
            return
        if error is None:
            raise failed(self.failures)
        if _is_skip(error):
            raise failed(self.failures) from error
        _note(error, self.failures)


def settle(failures: Sequence[Failure]) -> ExpectationError | None:
    """The error to raise now; ``None`` when nothing failed or a block collects."""
    if not failures:
        return None
    block = _open.get()
    if block is None:
        return failed(failures)
    where = _caller()
    block.failures += [replace(failure, where=where) for failure in failures]
    return None


def _caller() -> str | None:
    """The line that asked: the first outside of this package."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
        frame = frame.f_back
    return None if frame is None else f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def failed(failures: Sequence[Failure]) -> ExpectationError:
    """The error that tells of all of them."""
    return ExpectationError(written(failures, failure_lines()), failures)


def _is_skip(error: BaseException) -> bool:
    pytest, unittest = sys.modules.get("pytest"), sys.modules.get("unittest")
    kinds = [pytest.skip.Exception] if pytest is not None else []
    kinds += [unittest.SkipTest] if unittest is not None else []
    return isinstance(error, tuple(kinds))


def _note(error: BaseException, failures: Sequence[Failure]) -> None:
    text = "before this, in expect.all(): " + written(failures, failure_lines())
    if sys.version_info >= (3, 11):
        error.add_note(text)
    else:
        # what add_note does; Python 3.10 keeps it for whoever reads notes (pytest does)
        vars(error)["__notes__"] = [*getattr(error, "__notes__", []), text]
