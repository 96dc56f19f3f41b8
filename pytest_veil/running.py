"""What the fixtures hand out: runners that know their workspace, what they ran and what is still running."""

from __future__ import annotations

import os
import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_veil.real_disk import real_disk
from veil import CommandFailed, VeilError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pytest_veil.scenes import Scene
    from veil import Handle, Result, RunOptions
    from veil.taping import StageRunner


class AsyncRun(Protocol):
    """``veil_arun``."""

    def __call__(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Awaitable[Result]:
        """See ``VeilRun.arun``."""


class VeilRun:
    """``veil_run``: runs commands as ``veil.run`` does, on the workspace of its test.

    Attributes:
        results: of every foreground run so far, in the order in which they ended.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.results: list[Result] = []

    def __repr__(self) -> str:
        return f"<veil_run of {self._scene.nodeid}: {self.mode}, {len(self.results)} run>"

    @property
    def root(self) -> Path:
        """The workspace: where commands run unless ``cwd`` says otherwise. A relative ``cwd`` is below it."""
        return self._scene.stage.root

    @property
    def mode(self) -> str:
        """``off``, ``live``, ``replay``, ``record``, ``record-missing``, ``refresh`` or ``verify``."""
        return self._scene.settings.mode

    def __call__(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
        """Run one command to its end: the keywords, results and errors of ``veil.run``.

        A command that a replay has no recording of fails the test and runs nothing.
        """
        __tracebackhide__ = True
        return self.performed(lambda: self._scene.runner.run(command, _said(options)))

    async def arun(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
        """The same for asyncio: the keywords, results and errors of ``veil.arun``."""
        __tracebackhide__ = True
        return await self.aperformed(lambda: self._scene.runner.arun(command, _said(options)))

    def start(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Handle:
        """Start one command and return at once, as ``veil.start``. It is ended with the test."""
        __tracebackhide__ = True
        return self.started(lambda: self._scene.runner.start(command, _said(options)), text_of(command))

    def copy_in(self, *paths: Path | str, into: str = ".") -> None:
        """Copy files and folders into the workspace: from the fake disk while pyfakefs has put one there.

        Raises ``veil.BadInput`` for a path that is not there or a name that leads out of the workspace.
        """
        from pytest_veil.filling import copy_in

        copy_in(self.root, paths, into)

    @property
    def runner(self) -> StageRunner:
        """What runs the commands: for what runs them in another way, such as a session."""
        return self._scene.runner

    def performed(self, run: Callable[[], Result]) -> Result:
        """A foreground run of this test, however it is begun."""
        __tracebackhide__ = True
        self._scene.require_open()
        try:
            with real_disk():
                return self._kept(run())
        except VeilError as error:
            raise self._plain(error) from None

    async def aperformed(self, run: Callable[[], Awaitable[Result]]) -> Result:
        """The same for asyncio."""
        __tracebackhide__ = True
        self._scene.require_open()
        try:
            with real_disk():
                return self._kept(await run())
        except VeilError as error:
            raise self._plain(error) from None

    def started(self, start: Callable[[], Handle], command: str) -> Handle:
        """A background run of this test; it is ended with the test."""
        __tracebackhide__ = True
        self._scene.require_open()
        try:
            with real_disk():
                handle = start()
        except VeilError as error:
            raise self._plain(error) from None
        self._scene.handles.append(handle)
        self._scene.ran.append(command)
        return handle

    def _kept(self, result: Result) -> Result:
        self.results.append(result)
        self._scene.ran.append(result.command)
        return result

    def _plain(self, error: VeilError) -> BaseException:
        """An error without the way it came: what matters is the line of the test.

        A miss is a failed test at once, past any ``except Exception`` of the program that is tested.
        """
        from veil.taping import CassetteMiss

        if isinstance(error, CassetteMiss):
            self._scene.misses.append(str(error))
            return pytest.fail.Exception(str(error))
        if isinstance(error, CommandFailed):
            self._kept(error.result)
        return error.with_traceback(None)


class RunFactory:
    """``veil_run_factory``."""

    def __init__(self, make: Callable[[str, pytest.FixtureRequest | None], VeilRun]) -> None:
        self._make = make

    def make(self, name: str, request: pytest.FixtureRequest | None = None) -> VeilRun:
        """A runner with a workspace and a recording of its own.

        Args:
            name: of the recording, once in a module (or session).
            request: of the fixture that asks: the runner ends with it, and its recording is the module's. Without one
                it lives as long as the session, and its recording is the session's.

        Raises ``veil.BadInput`` for a name that is no name or is taken.
        """
        return self._make(name, request)


def text_of(command: str | Sequence[str]) -> str:
    """A command to be read and pasted."""
    return command if isinstance(command, str) else shlex.join(os.fsdecode(word) for word in command)


def _said(options: Any) -> dict[str, Any]:
    return dict(options)
