"""``veil_tools``: the tools handed to an agent in a test, on the test's own workspace and recording."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_veil.in_session import VeilShell
from pytest_veil.rewinding import VeilCheckpoint
from pytest_veil.running import VeilRun
from veil import BadInput, Checkpoint, Detail, Handle, Killed, Logs, NotFound, Restored, Result
from veil.tools import Toolbox, single


@dataclass(frozen=True)
class Called:
    """One call. Attributes: name, arguments: as the agent sent them. reply: what it was answered."""

    name: str
    arguments: Mapping[str, Any]
    reply: Mapping[str, Any]


class VeilTools(Toolbox):
    """The tools of ``veil.tools`` on the workspace of ``veil_run``: ``veil_tools.call("sh_run", {"command": "make"})``.

    What the agent runs is recorded, replayed and verified as runs of ``veil_run`` are. In every mode ids count from 1
    (``cmd1``, ``ckpt1``) and no reply names a process id or where the records of the test lie, so what the agent reads
    repeats itself but for durations, times of day and the folder of the workspace.

    Attributes: calls: every call so far, in the order in which they were answered.
    """

    def __init__(self, run: VeilRun, checkpoint: VeilCheckpoint) -> None:
        super().__init__(_Workspace(run, checkpoint))
        self._run_of_test = run
        self.calls: list[Called] = []

    def __repr__(self) -> str:
        return f"<veil_tools: {self._run_of_test.mode}, {len(self.calls)} called>"

    @property
    def root(self) -> Path:
        """The workspace."""
        return self._run_of_test.root

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """See ``veil.tools.Toolbox.call``."""
        __tracebackhide__ = True
        return self._kept(name, arguments, super().call(name, arguments))

    async def acall(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> dict[str, Any]:
        """See ``veil.tools.Toolbox.acall``."""
        __tracebackhide__ = True
        return self._kept(name, arguments, await super().acall(name, arguments, on_output=on_output))

    def _kept(self, name: str, arguments: Mapping[str, Any] | None, reply: dict[str, Any]) -> dict[str, Any]:
        reply.pop("pid", None)
        self.calls.append(Called(name, dict(arguments or {}), reply))
        return reply


class _Workspace:
    """Runs and finds again what one test ran, by ids that count from 1."""

    def __init__(self, run: VeilRun, checkpoint: VeilCheckpoint) -> None:
        self._run, self._checkpoint = run, checkpoint
        self._begun = 0
        self._results: dict[str, Result] = {}
        self._handles: dict[str, _Renamed] = {}
        self._shells: dict[str, VeilShell] = {}

    def _next(self) -> str:
        self._begun += 1
        return f"cmd{self._begun}"

    def _in(self, session: str | None) -> VeilRun | VeilShell:
        if session is None:
            return self._run
        if session not in self._shells:
            self._shells[session] = VeilShell(self._run, session)
        return self._shells[session]

    def run(self, command: Any, options: dict[str, Any], session: str | None) -> Result:
        name = self._next()
        return self._named(name, self._in(session)(command, **options), options)

    def arun(self, command: Any, options: dict[str, Any], session: str | None) -> Awaitable[Result]:
        name = self._next()

        async def run() -> Result:
            return self._named(name, await self._in(session).arun(command, **options), options)

        return run()

    def start(self, command: Any, options: dict[str, Any], session: str | None) -> _Renamed:
        name = self._next()
        self._handles[name] = _Renamed(name, self._in(session).start(command, **options))
        return self._handles[name]

    def _named(self, id: str, result: Result, options: Mapping[str, Any]) -> Result:
        record = replace(result.record, id=id)
        if not options.get("no_store"):  # in a replay everything is kept in memory
            record = replace(record, stored="disk", why_memory=None)
        self._results[id] = Result(record)
        return self._results[id]

    def detail(self, id: str | None, options: dict[str, Any]) -> Detail:
        there = sorted([*self._results, *self._handles], key=lambda name: int(name[3:]), reverse=True)
        if not there or (id is not None and id not in there):
            raise NotFound("a run" if id is None else id, there[:20])
        name = there[0] if id is None else id
        if name in self._handles:
            return self._handles[name].detail(options)
        return Detail(self._results[name].record, **options)

    def _handle(self, id: str | None) -> _Renamed:
        if id is None:
            return self._handles[single([name for name, handle in self._handles.items() if handle.running()])]
        if id not in self._handles:
            raise NotFound(id, list(reversed(self._handles)))
        return self._handles[id]

    def logs(self, id: str | None, options: dict[str, Any]) -> Logs:
        return self._handle(id).logs(options)

    def kill(self, id: str | None, options: dict[str, Any]) -> Killed:
        return self._handle(id).kill(**options)

    def end_session(self, session: str) -> None:
        if session not in self._shells:
            raise NotFound(f"session {session!r}", list(reversed(self._shells)))
        del self._shells[session]

    def checkpoint(self, options: dict[str, Any]) -> Checkpoint:
        self._require_root(options.pop("dir", None))
        return _short(self._checkpoint(**options).checkpoint)

    def restore(self, options: dict[str, Any]) -> Restored:
        self._require_root(options.pop("dir", None))
        label = options.get("label")
        for kept in self._checkpoint.list():
            if label == _short(kept).id:
                label = kept.id
        done = self._checkpoint.restore(label)
        before = done.before_id.partition("-")[0]
        return replace(done, checkpoint=_short(done.checkpoint), before_id=before)

    def checkpoints(self, options: dict[str, Any]) -> list[Checkpoint]:
        self._require_root(options.pop("dir", None))
        return [_short(kept) for kept in self._checkpoint.list()]

    def _require_root(self, folder: Any) -> None:
        root = self._run.root
        if folder is not None and (not isinstance(folder, str) or os.path.realpath(root / folder) != str(root)):
            raise BadInput("dir", folder, f"the workspace of this test, {root}, or nothing")


def _short(checkpoint: Checkpoint) -> Checkpoint:
    """Its id without the part that is another one each time: within one test the number is enough."""
    return replace(checkpoint, id=checkpoint.id.partition("-")[0])


class _Renamed:
    """A handle that goes by the id of its call."""

    def __init__(self, id: str, handle: Handle) -> None:
        self.id = id
        self._handle = handle

    @property
    def pid(self) -> int | None:
        return self._handle.pid

    @property
    def status(self) -> str:
        return self._handle.status

    @property
    def replayed(self) -> bool:
        return self._handle.replayed

    def running(self) -> bool:
        return self._handle.running()

    def logs(self, options: dict[str, Any]) -> Logs:
        return replace(self._handle.logs(**options), id=self.id)

    def detail(self, options: dict[str, Any]) -> Detail:
        found = self._handle.detail(**options)
        return replace(found, record=replace(found.record, id=self.id))

    def kill(self, **options: Any) -> Killed:
        return replace(self._handle.kill(**options), id=self.id)

    def wait(self) -> Result:
        return Result(replace(self._handle.wait().record, id=self.id))
