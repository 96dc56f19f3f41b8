"""Carrying out calls of the tools: on this process's own runs, or on those of a recorded workspace."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import veil
from veil import VeilError
from veil.model.errors import NotSingle
from veil.stateful import shell_named
from veil.tools.plain import plain
from veil.tools.reading import in_their_words, options_of, read
from veil.tools.table import Tool, catalogue, governed

if TYPE_CHECKING:
    from veil.governed import Boundary

#: Calls that wait for something (a kill, a pattern, a start in turn) at once, beside the runs themselves.
_WAITING = 64


class Started(Protocol):
    """What the tools need to know of a run that was started in the background."""

    @property
    def id(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def status(self) -> str: ...
    @property
    def replayed(self) -> bool: ...
    def wait(self) -> veil.Result: ...
    def kill(self) -> veil.Killed: ...


class Place(Protocol):
    """Where the tools work: what runs commands, and what finds runs again by id."""

    def run(self, command: Any, options: dict[str, Any], session: str | None) -> veil.Result:
        """As ``veil.run``, or as the ``run`` of the shell session of that name, which is begun when it is new."""

    def arun(self, command: Any, options: dict[str, Any], session: str | None) -> Awaitable[veil.Result]:
        """As ``veil.arun``."""

    def start(self, command: Any, options: dict[str, Any], session: str | None) -> Started:
        """As ``veil.start``."""

    def detail(self, id: str | None, options: dict[str, Any]) -> veil.Detail:
        """As ``veil.detail``."""

    def logs(self, id: str | None, options: dict[str, Any]) -> veil.Logs:
        """As ``veil.logs``; ``None`` means the only run that is alive."""

    def kill(self, id: str | None, options: dict[str, Any]) -> veil.Killed:
        """As ``veil.kill``."""

    def end_session(self, session: str) -> None:
        """Forget the state of the shell session of that name. Raises ``NotFound`` naming those that are open."""

    def checkpoint(self, options: dict[str, Any]) -> veil.Checkpoint:
        """As ``veil.checkpoint``."""

    def restore(self, options: dict[str, Any]) -> veil.Restored:
        """As ``veil.restore``."""

    def checkpoints(self, options: dict[str, Any]) -> list[veil.Checkpoint]:
        """As ``veil.checkpoints``."""


def single(alive: Sequence[str]) -> str:
    """For a place of one's own: the id that is meant where none is given. Raises ``NotFound`` unless one is alive."""
    if len(alive) != 1:
        raise NotSingle(alive)
    return alive[0]


class Everywhere:
    """The project that this process is in, as the functions of ``veil`` know it."""

    def run(self, command: Any, options: dict[str, Any], session: str | None) -> veil.Result:
        return (veil.run if session is None else shell_named(session, {}).run)(command, **options)

    def arun(self, command: Any, options: dict[str, Any], session: str | None) -> Awaitable[veil.Result]:
        return (veil.arun if session is None else shell_named(session, {}).arun)(command, **options)

    def start(self, command: Any, options: dict[str, Any], session: str | None) -> veil.Handle:
        return (veil.start if session is None else shell_named(session, {}).start)(command, **options)

    def detail(self, id: str | None, options: dict[str, Any]) -> veil.Detail:
        return veil.detail(id, **options)

    def logs(self, id: str | None, options: dict[str, Any]) -> veil.Logs:
        return veil.logs(veil.handle_of().id if id is None else id, **options)

    def kill(self, id: str | None, options: dict[str, Any]) -> veil.Killed:
        return veil.kill(id, **options)

    def end_session(self, session: str) -> None:
        shell_named(session).close()

    def checkpoint(self, options: dict[str, Any]) -> veil.Checkpoint:
        return veil.checkpoint(**options)

    def restore(self, options: dict[str, Any]) -> veil.Restored:
        return veil.restore(**options)

    def checkpoints(self, options: dict[str, Any]) -> list[veil.Checkpoint]:
        return veil.checkpoints(**options)


class Toolbox:
    """The tools, ready to be called by name.

    Args:
        place: where they work (default: the project that this process is in).
        boundary: adds ``run_shell_command``, which runs what its policy lets through, and guards no other tool: offer
            it without ``sh_run`` to an agent that is to be governed.
        only: names of the tools that are offered (default: all).

    Raises ``NotFound`` for a name in ``only`` that no tool has.
    """

    def __init__(
        self, place: Place | None = None, *, boundary: Boundary | None = None, only: Sequence[str] | None = None
    ) -> None:
        self._place: Place = Everywhere() if place is None else place
        self._boundary = boundary
        self._acts: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "sh_run": lambda said: self._run([], said),
            "sh_detail": self._detail,
            "sh_logs": lambda said: self._place.logs(said.pop("id", None), said).to_dict(),
            "sh_kill": self._kill,
            "sh_plan": lambda said: veil.plan(said["command"]).to_dict(),
            "sh_checkpoint": lambda said: self._place.checkpoint(said).to_dict(),
            "sh_restore": lambda said: self._place.restore(said).to_dict(),
            "sh_checkpoints": lambda said: {"checkpoints": [kept.to_dict() for kept in self._place.checkpoints(said)]},
        }
        there = {tool.name: tool for tool in catalogue()}
        if boundary is not None:
            from veil.governed import run_shell_command, schema

            self._acts["run_shell_command"] = lambda said: self._governed(run_shell_command, said)
            there["run_shell_command"] = governed(schema(boundary))
        for name in only or ():
            if name not in there:
                raise veil.NotFound(f"the tool {name!r}", list(there))
        self._tools = {name: tool for name, tool in there.items() if only is None or name in only}
        self._threads: ThreadPoolExecutor | None = None
        self._on_their_way = 0  # governed calls that have begun and not ended
        self._counting = threading.Lock()

    @property
    def boundary(self) -> Boundary | None:
        """What governs ``run_shell_command``, if it is offered."""
        return self._boundary

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What is offered."""
        return tuple(self._tools.values())

    def _tool(self, name: str) -> Tool:
        if name not in self._tools:
            raise veil.NotFound(f"the tool {name!r}", list(self._tools))
        return self._tools[name]

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Carry out one call; returns its reply as plain JSON data that any encoder takes.

        What veil refuses comes back as ``{"error": code, "message": ..., "facts": {...}}``: an agent reads it and tries
        again. A command that fails is no error.

        Raises ``NotFound`` for a name that no tool has. A bug in veil is raised as it is.
        """
        asked = self._tool(name)
        try:
            said = read(asked, arguments)
        except VeilError as error:
            return self._unread(asked, arguments, error)
        return _answered(self._acts[name], said)

    def _unread(self, asked: Tool, arguments: object, error: VeilError) -> dict[str, Any]:
        if asked.name == "run_shell_command" and self._boundary is not None and isinstance(error, veil.BadInput):
            argv = arguments.get("argv") if isinstance(arguments, Mapping) else arguments
            error = self._boundary.unheard(argv, error)  # the audit has a line of every request, also of this one
        return plain(error.to_dict())

    async def acall(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> dict[str, Any]:
        """``call`` for asyncio. Cancelling the task ends the command and everything that it started.

        Args:
            on_output: called with the stream's name and bytes while a command runs, on another thread.
        """
        asked = self._tool(name)
        try:
            said = read(asked, arguments)
        except VeilError as error:
            return self._unread(asked, arguments, error)
        if name != "sh_run" or said.get("background"):
            return await self._on_a_thread(asked, said)
        try:
            command, options, session = _asked(said)
            if on_output is not None:
                options["on_output"] = on_output
            return plain((await self._place.arun(command, options, session)).to_dict())
        except VeilError as error:
            return plain(in_their_words(error))

    async def _on_a_thread(self, asked: Tool, said: dict[str, Any]) -> dict[str, Any]:
        """Anything that may have to wait a moment; the loop goes on meanwhile."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_WAITING, thread_name_prefix="veil-tool")
        context = contextvars.copy_context()
        begun: list[Started] = []
        act = functools.partial(self._run, begun) if asked.name == "sh_run" else self._acts[asked.name]
        future = self._threads.submit(context.run, _answered, act, said)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if asked.name == "sh_run":  # nobody knows the id of what it started, or still starts
                future.add_done_callback(lambda _: [handle.kill() for handle in begun])
            elif asked.name == "run_shell_command" and self._on_their_way == 1 and self._boundary is not None:
                self._boundary.cancel()  # it ends all that run there, so only a lone one can be meant
            raise

    def close(self) -> None:
        """Wait for calls that are still on their way; no more may come through ``acall``. Governed ones are ended."""
        if self._boundary is not None:
            self._boundary.close()
        if self._threads is not None:
            self._threads.shutdown()

    # -- one method per tool

    def _run(self, begun: list[Started], said: dict[str, Any]) -> dict[str, Any]:
        """``begun`` takes what goes on in the background."""
        background = said.pop("background", False)
        command, options, session = _asked(said)
        if not isinstance(background, bool):
            raise veil.BadInput("background", background, "True or False")
        if not background:
            return self._place.run(command, options, session).to_dict()
        handle = self._place.start(command, options, session)
        begun.append(handle)
        if handle.pid is None and not handle.replayed:  # it could not start, which is worth telling at once
            return handle.wait().to_dict()
        told: dict[str, Any] = {"id": handle.id, "status": handle.status, "background": True}
        return told if handle.pid is None else {**told, "pid": handle.pid}

    def _governed(self, run: Callable[..., dict[str, Any]], said: dict[str, Any]) -> dict[str, Any]:
        with self._counting:
            self._on_their_way += 1
        try:
            return run(self._boundary, said)
        finally:
            with self._counting:
                self._on_their_way -= 1

    def _detail(self, said: dict[str, Any]) -> dict[str, Any]:
        paging = {name: said.pop(name) for name in ("lines", "offset", "limit") if name in said}
        if isinstance(paging.get("lines"), list):
            paging["lines"] = tuple(paging["lines"])
        return self._place.detail(said.pop("id", None), said).to_dict(**paging)

    def _kill(self, said: dict[str, Any]) -> dict[str, Any]:
        if "session" not in said:
            return self._place.kill(said.pop("id", None), said).to_dict()
        session = said.pop("session")
        if said:
            raise veil.BadInput("session", session, f"alone, without {', '.join(said)}: it ends a shell session")
        self._place.end_session(session)
        return {"session": session, "status": "closed"}


def _asked(said: Mapping[str, Any]) -> tuple[Any, dict[str, Any], str | None]:
    """The command, the options and the session of a run."""
    options = {name: value for name, value in said.items() if name not in ("command", "background", "session")}
    return said["command"], options_of(options), said.get("session")


def _answered(act: Callable[[dict[str, Any]], dict[str, Any]], said: dict[str, Any]) -> dict[str, Any]:
    try:
        return plain(act(said))
    except VeilError as error:
        return plain(in_their_words(error))
