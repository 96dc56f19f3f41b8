"""Shell sessions of tests: what one command leaves in its shell, the next one finds; recorded and replayed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_veil.real_disk import real_disk
from pytest_veil.running import VeilRun, text_of
from veil import BadInput, Shell

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from veil import Handle, Result, RunOptions


class VeilShell:
    """``veil_shell``: a session on the workspace of its test; ``veil_shell("cd sub")`` as ``veil.Shell.run``.

    Its runs are among those of ``veil_run`` (``veil_run.results``), and in the same recording.
    """

    def __init__(self, run: VeilRun, name: str = "s1", options: Any = None, taken: set[str] | None = None) -> None:
        self._run = run
        self._taken = {name} if taken is None else taken
        with real_disk():
            self._shell = Shell(run.runner, name, dict(options or {}))

    def __repr__(self) -> str:
        return f"<veil_shell {self.name} in {self.cwd}: {self._run.mode}>"

    @property
    def name(self) -> str:
        """What results call it (``session``)."""
        return self._shell.name

    @property
    def cwd(self) -> Path:
        """Where the next command begins."""
        return Path(self._shell.cwd)

    @property
    def root(self) -> Path:
        """The workspace."""
        return self._run.root

    @property
    def results(self) -> list[Result]:
        """Of the runs of this session so far, in order."""
        return [result for result in self._run.results if result.session == self.name]

    def __call__(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
        """Run one command of the session to its end."""
        __tracebackhide__ = True
        return self._run.performed(lambda: self._shell.run(command, **options))

    run = __call__

    async def arun(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
        """The same for asyncio."""
        __tracebackhide__ = True
        return await self._run.aperformed(lambda: self._shell.arun(command, **options))

    def start(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Handle:
        """Start one command in the session's state and return at once. It is ended with the test."""
        __tracebackhide__ = True
        return self._run.started(lambda: self._shell.start(command, **options), text_of(command))

    def open(self, name: str, **options: Unpack[RunOptions]) -> VeilShell:
        """Another session beside this one, as ``veil.shell(name, ...)``. A relative ``cwd`` is below the workspace.

        Raises ``veil.BadInput`` for a name that is none, or that another session of this test has.
        """
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or name in self._taken:
            raise BadInput("name", name, "a name that no session of this test has")
        self._taken.add(name)
        return VeilShell(self._run, name, options, self._taken)

    def close(self) -> None:
        """Forget the state. Idempotent."""
        self._shell.close()
