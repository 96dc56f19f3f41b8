"""Shell sessions: what one command leaves in its shell, the next one finds. No process lives in between."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from veil import wiring
from veil.asking.options import RunOptions
from veil.background import Handle
from veil.host.orders import Controls
from veil.host.processes import TAG_VARIABLE
from veil.layers.session.layer import kind_of
from veil.layers.session.state import Carried, State
from veil.model.command import Carry
from veil.model.errors import BadInput, NotFound, Refused
from veil.model.record import Record
from veil.result import Result
from veil.runner import Asked, Runner, checked

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Characters of the name of a session.
MAX_NAME = 80
#: So many names are listed in an error.
_SHOWN = 20

_numbers = itertools.count(1)
#: The open ones. Whoever began one holds it: with the last who does it ends, since nobody could ask it anything more.
_named: WeakValueDictionary[str, Shell] = WeakValueDictionary()
#: Those that are held by their name alone.
_by_name: dict[str, Shell] = {}
_named_lock = threading.Lock()
_beginning = threading.Lock()


def _after_fork() -> None:
    """A lock that another thread held at the fork stays held for ever."""
    global _named_lock, _beginning
    _named_lock, _beginning = threading.Lock(), threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Shell:
    """One session. Made by ``veil.shell``; a context manager.

    Every command is a run of its own, with a record, effects, expectations and limits of its own; carried from one to
    the next are the folder, variables (exported or not, arrays too), functions, aliases, options of ``set`` and
    ``shopt``, ``umask``, ``$1`` ... and the stack of ``pushd``. Not carried: ``$?``, traps, jobs, limits of ``ulimit``,
    descriptors opened by ``exec``. A command that is killed, cancelled or timed out leaves the state as it was.

    One command runs at a time; another one meanwhile is refused (``session_busy``): which would be first is unknown.
    """

    def __init__(self, runner: Runner, name: str, options: Mapping[str, Any]) -> None:
        self._runner = runner
        self._name = name
        self._first_env = dict(options.get("env") or {})
        self._options = {key: value for key, value in options.items() if key not in ("cwd", "env")}
        probe = runner.ask(":", {**self._options, "cwd": options.get("cwd"), "env": options.get("env")})
        shell = probe.request.command.argv[0]
        if kind_of(shell) is None:
            raise BadInput("shell", shell, "bash, or a POSIX sh (sh, dash, ash): others cannot tell their state")
        self._options["shell"] = shell
        self._cwd = probe.request.command.cwd
        self._state: State | None = None
        self._mark, self._begun = "", False
        self._lock = threading.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"<veil.Shell {self._name} in {self._cwd}{', closed' if self._closed else ''}>"

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """What results call it (``session``)."""
        return self._name

    @property
    def cwd(self) -> str:
        """The folder in which the next command begins, as the shell calls it."""
        return self._cwd

    @property
    def exported(self) -> Mapping[str, str] | None:
        """What programs of the next command get; ``None`` before the first command, and where nothing runs (replay)."""
        return None if self._state is None else dict(self._state.exported)

    def run(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
        """Run one command to its end: the keywords, results and errors of ``veil.run``.

        ``cwd`` (relative to the session's) and ``env`` are what ``cd`` and ``export`` in front of the command would
        be: they are carried on. An argv gets the folder and the exported variables, and leaves the state as it is.

        Raises:
            Refused: as ``veil.run``; also ``session_busy`` and ``session_closed``.
            VeilError: the state could not be restored, and the command did not run (code ``session_broken``).
        """
        with self.turn(command, options) as (asked, carried):
            record = self._runner.perform(asked, Controls(listener=asked.listener))
            self.take(asked, carried, record)
        return checked(Result(record), asked.check)

    async def arun(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
        """``run`` for asyncio, as ``veil.arun``."""
        with self.turn(command, options) as (asked, carried):
            record = await self._runner.aperform(asked)
            self.take(asked, carried, record)
        return checked(Result(record), asked.check)

    def start(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Handle:
        """Start a long-running command in the session's state, as ``veil.start``. The state stays as it is, and the
        session can go on meanwhile; the command outlives it."""
        said = {key: value for key, value in self._said(options).items() if key not in self._foreground_only()}
        if not isinstance(command, str):
            said.pop("shell", None)
        asked = self._runner.ask(command, {**said, **options, "cwd": said["cwd"]}, background=True)
        asked, _ = self._in_session(asked, keep=False, gone=None)
        return self._runner.started(asked)

    @staticmethod
    def _foreground_only() -> frozenset[str]:
        from veil.asking.options import BACKGROUND_INCOMPATIBLE, NOT_IN_BACKGROUND

        return frozenset((*BACKGROUND_INCOMPATIBLE, *NOT_IN_BACKGROUND, "contain"))

    def close(self) -> None:
        """End the session: its state is forgotten. Idempotent. What still runs is not ended by it."""
        self._closed = True
        self._state = None
        with _named_lock:
            if _named.get(self._name) is self:
                del _named[self._name]
                _by_name.pop(self._name, None)

    @contextmanager
    def turn(self, command: str | Sequence[str], options: Mapping[str, Any]) -> Iterator[tuple[Asked, Carried]]:
        """One command of the session, for a door that performs it itself: perform what is asked, then ``take``."""
        if not self._lock.acquire(blocking=False):
            raise Refused(
                f"session {self._name} is running another command: wait for its end, or use another session",
                code="session_busy",
                session=self._name,
            )
        try:
            said = self._said(options)
            if not isinstance(command, str):
                said.pop("shell", None)
            gone = None if "cwd" in options and options["cwd"] is not None else self._gone()
            if gone is not None:
                said["cwd"] = _nearest_there(gone)
            asked = self._runner.ask(command, said)
            yield self._in_session(asked, keep=True, gone=gone)
        finally:
            self._lock.release()

    def take(self, asked: Asked, carried: Carried, record: Record) -> None:
        """What the command left, from its record: of a run, or of a recording."""
        notes = record.observation.findings.notes
        command = asked.request.command
        if command.text is None or "session_state" in notes or record.observation.outcome.ended != "exited":
            return
        self._begun = True
        self._cwd = notes.get("cwd", command.cwd)
        if carried.after is not None:
            # not from the notes: a secret in the name of a folder is taken out of them
            self._state, self._cwd = carried.after, carried.after.cwd
        if notes.get("session_changed"):
            self._mark = self._next_mark(asked)

    def _said(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords of one command: the session's own, and over them what is said now."""
        if self._closed:
            raise Refused(f"session {self._name} is closed", code="session_closed", session=self._name)
        given = {key: value for key, value in options.items() if value is not None}
        if "shell" in given:
            raise BadInput("shell", given["shell"], f"nothing: the session's shell is {self._options['shell']}")
        said = {**self._options, **given}
        if not self._begun and self._first_env:
            said["env"] = {**self._first_env, **(given.get("env") or {})}
        said["cwd"] = self._cwd
        if "cwd" in given:
            try:
                said["cwd"] = os.path.join(self._cwd, os.fsdecode(given["cwd"])) if given["cwd"] != "" else ""
            except TypeError:
                said["cwd"] = given["cwd"]  # refused where every cwd is judged
        return said

    def _gone(self) -> str | None:
        return None if os.path.isdir(self._cwd) else self._cwd

    def _in_session(self, asked: Asked, *, keep: bool, gone: str | None) -> tuple[Asked, Carried]:
        environment = dict(asked.environment)
        state = self._state
        if state is not None:
            outer = environment.get(TAG_VARIABLE)
            environment = dict(state.exported)
            if outer is not None:
                environment[TAG_VARIABLE] = outer
        if asked.request.command.cwd != self._cwd:
            environment["OLDPWD"] = self._cwd
        carried = Carried(state, environment, gone, keep)
        wish = Carry(self._name, self._mark, carried)
        request = replace(asked.request, wishes=(*asked.request.wishes, wish))
        return replace(asked, environment=environment, request=request), carried

    def _next_mark(self, asked: Asked) -> str:
        """The same for the same commands in the same order, on every machine; what changed nothing does not count."""
        command = asked.request.command
        # its folder, its variables and its input are part of what the step itself is known by
        text = f"{self._mark}\0{self._runner.plain(command.display)}"
        return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _nearest_there(path: str) -> str:
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def shell(name: str | None = None, **options: Unpack[RunOptions]) -> Shell:
    """A session: ``with veil.shell() as sh: sh.run("cd sub && export A=1"); sh.run("pwd; echo $A")``.

    Args:
        name: what results call it, once in this process (default: ``s1``, ``s2`` ...).
        options: of ``veil.run``, for every command; what a command says itself goes before. ``cwd`` and ``env`` are
            where it begins.

    Raises:
        BadInput: an option that cannot mean anything; a name that is taken or is none; a shell that cannot carry.
        Refused: ``VEIL_MAX_SESSIONS`` are open (``too_many_sessions``). One that nobody holds any more is not.
    """
    return _enter(_runner, name, options)


def shells() -> list[str]:
    """Names of the open sessions of this process, oldest first."""
    with _named_lock:
        return list(_named)


def shell_named(name: str, options: Mapping[str, Any] | None = None) -> Shell:
    """The open session of this name. With ``options`` it is begun with these when there is none.

    One that is begun here stays open until it is closed. Raises ``NotFound`` with the names that there are, and as
    ``shell``.
    """
    with _beginning:  # of two that ask for a new one at once, the second gets that of the first
        with _named_lock:
            found = _named.get(name)
        if found is not None:
            return found
        if options is None:
            raise NotFound(f"session {name!r}", list(reversed(shells()))[:_SHOWN])
        made = _by_name[name] = _enter(_runner, name, options)
        return made


def _enter(runner: Runner, name: str | None, options: Mapping[str, Any]) -> Shell:
    if name is None:
        name = next(free for number in _numbers if (free := f"s{number}") not in _named)
    elif not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise BadInput("name", name, f"a name of 1 to {MAX_NAME} characters that can be printed")
    made = Shell(runner, name, options)
    most = wiring.session(dict(os.environ), options.get("project")).settings.max_sessions
    with _named_lock:
        if name in _named:
            raise BadInput("name", name, "a name that no open session has")
        if len(_named) >= most:
            newest = list(reversed(list(_named)))[:_SHOWN]
            raise Refused(
                f"{len(_named)} sessions are open, which is the limit (VEIL_MAX_SESSIONS): go on in one of them "
                f"({', '.join(newest)}), or end one with its close()",
                code="too_many_sessions",
                sessions=newest,
                limit=most,
            )
        _named[name] = made
    return made


_runner = Runner()
