"""``veil_sandbox``: the workspace of a test, in which commands run confined."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veil import BadInput

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pytest_veil.populating import Source
    from pytest_veil.running import VeilRun
    from veil import Handle, Result, RunOptions


class Workspace:
    """A workspace whose commands run confined. It is that of ``veil_run``: what one leaves there the other finds."""

    def __init__(self, run: VeilRun, options: Mapping[str, Any]) -> None:
        self._run = run
        self._options = dict(options)

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"<sandbox({said}) at {self.root}>"

    @property
    def root(self) -> Path:
        """The folder: where commands run, and what they may write to."""
        return self._run.root

    def run(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
        """``veil_run`` in the sandbox: keywords, results and errors are those of ``veil.run``."""
        __tracebackhide__ = True
        return self._run(command, **self._confined(options))

    def arun(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Awaitable[Result]:
        """``run`` for asyncio."""
        return self._run.arun(command, **self._confined(options))

    def start(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Handle:
        """Start one command and return at once, as ``veil.start``. It is ended with the test."""
        __tracebackhide__ = True
        return self._run.start(command, **self._confined(options))

    def populate(self, source: Source, into: str = ".", *, below: str = "/") -> Workspace:
        """Put files into the workspace; what has the same name there is replaced.

        Args:
            source: a mapping of relative paths to text, bytes, or a mapping again (a folder); the path of a folder,
                whose content is copied, or of a file, on whatever disk the test sees; or a fake file system of
                pyfakefs, whether it is in place of the real one at the moment or not.
            into: a folder in the workspace.
            below: of a fake file system: the folder whose content is meant.

        Returns: this workspace.

        Raises:
            veil.BadInput: a name that leads out of the workspace, or a source that is none.
            veil.Refused: something in the workspace is in the way (``not_applied``); then nothing was put there.
        """
        from pytest_veil.populating import populate

        populate(self.root, source, into, below)
        return self

    def _confined(self, options: Any) -> Any:
        if options.get("sandbox") is not None:
            raise BadInput("sandbox", options["sandbox"], "nothing: this workspace says how it is confined")
        return {**options, "sandbox": self._options or True}


class VeilSandbox:
    """``veil_sandbox``: ``box = sandbox(network=False)``, with the options of ``veil.run(sandbox={...})``."""

    def __init__(self, run: VeilRun) -> None:
        self._run = run

    def __call__(self, **options: Any) -> Workspace:
        """The workspace of the test, confined so. A wrong option is told by the first run."""
        return Workspace(self._run, options)
