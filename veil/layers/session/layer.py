"""Grants ``Carry``: a command begins in the state of its session, and the state it ends in is kept."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from veil.host import nameless
from veil.host.processes import TAG_VARIABLE
from veil.layers.base import Entered
from veil.layers.session import bash, posix
from veil.layers.session.state import DECIDING, UNCARRIED, Carried, State
from veil.model.command import Carry, Preview
from veil.model.errors import VeilError
from veil.model.outcome import Findings, Outcome, Stream
from veil.model.plan import Launch, Place, Plan

#: Names of shells by the way they are told.
BASH, POSIX = ("bash",), ("sh", "dash", "ash")
#: A variable longer than this, and what is over this in all, does not go through the environment: an operating system
#: that starts a program takes 128 KiB for one and about 1 MiB for all (Linux, macOS).
_ONE, _ALL = 100_000, 600_000
#: What may set a trap of its own: only then is the shell's ``trap`` watched.
_TRAPS = re.compile(r"\b(?:trap|source|eval)\b|(?:^|[\s;&|({])\.\s")
_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


class SessionLayer:
    """Notes that it leaves: ``session`` (name), ``cwd`` (where the session is now, when the command moved it),
    ``session_state`` (why the state is what it was before), ``session_cwd_gone``, ``session_changed`` (the command
    changed anything of the state)."""

    name = "session"
    place = Place.CONFINE
    needed = True
    supersedes: tuple[type, ...] = ()

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        if plan.request.command.text is None or kind_of(plan.request.command.argv[0]) is not None:
            return None
        return (
            f"{plan.request.command.argv[0]} cannot tell its state to the next command; sessions have "
            f"{', '.join((*BASH, *POSIX))} (shell='bash')"
        )

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        if not isinstance(wish, Carry):
            raise TypeError(f"not a wish of a session: {wish!r}")
        carried = wish.carried if isinstance(wish.carried, Carried) else Carried(keep=False)
        carried.after = None
        notes: dict[str, Any] = {"session": wish.session}
        if carried.gone is not None:
            notes["session_cwd_gone"] = carried.gone
        if plan.request.command.text is None:
            yield launch  # programs are started by no shell: they get the state and leave none
            return Findings(notes=notes)
        with nameless.file() as into, nameless.file() as out:
            shell = _Shell(carried, launch, plan, into, out)
            nameless.fill(into, os.fsencode(shell.beginning()))
            outcome = yield shell.launch()
            told = nameless.content_of(out)
        ended = outcome.cancelled or outcome.ended in ("timed_out", "spawn_failed")
        if not ended and (carried.keep or outcome.ended != "signaled"):  # in the background, a kill is what was asked
            shell.require_restored(told, wish.session)
        first, after, problem = shell.told(told)
        reason = _unkept(outcome, plan) or problem
        if carried.keep and reason is None and after is not None:
            carried.after = after
            if after.cwd != launch.cwd:
                notes["cwd"] = after.cwd
            if after != first:
                notes["session_changed"] = True
        elif carried.keep:
            notes["session_state"] = f"as before: {reason}"
        return Findings(notes=notes)


def _may_trap(text: str) -> bool:
    # most texts have none of these in them, and the search looks at every character
    return any(word in text for word in ("trap", "source", "eval", ".")) and _TRAPS.search(text) is not None


def kind_of(shell: str) -> str | None:
    """``bash``, ``posix``, or ``None`` for a shell that cannot be in a session."""
    name = os.path.basename(shell)
    return "bash" if name in BASH else "posix" if name in POSIX else None


def _unkept(outcome: Outcome, plan: Plan) -> str | None:
    """Why the state after this end is not wanted."""
    if any(isinstance(wish, Preview) for wish in plan.request.wishes):
        return "a preview changes nothing"
    if outcome.cancelled:
        return "the command was cancelled"
    return {
        "timed_out": "the command was ended at its time limit",
        "signaled": f"the command was ended by {outcome.signal or 'a signal'}",
        "spawn_failed": "the shell could not start",
    }.get(outcome.ended)


def _without(stream: Stream, texts: Sequence[str]) -> Stream:
    """The stream without the last of these texts that it holds."""
    for text in map(os.fsencode, texts):
        for part in ("tail", "head"):
            before, found, after = getattr(stream, part).rpartition(text)
            if found:
                kept = replace(stream, total_bytes=stream.total_bytes - len(text))
                kept = replace(kept, total_lines=stream.total_lines - text.count(b"\n"))
                return replace(kept, head=before + after) if part == "head" else replace(kept, tail=before + after)
    return stream


class _Shell:
    """One shell of a session: what it is given, and what it told."""

    def __init__(self, carried: Carried, launch: Launch, plan: Plan, into: int, out: int) -> None:
        self._before, self._environment, self._launch = carried.before, carried.environment, launch
        self._command = plan.request.command
        self._bash = kind_of(self._command.argv[0]) == "bash"
        self._into, self._out = into, out
        self._env = dict(launch.env)
        if self._before is not None:
            self._env["PWD"] = launch.cwd  # a shell believes it when it is another name of where it is
        self._moved = self._too_much()

    def _too_much(self) -> dict[str, str]:
        """What the environment cannot say: too long, or it would make the shell another one."""
        removed = {name for name, value in self._command.env if value is None}
        moved = {name: self._env.pop(name) for name in DECIDING if name in self._env}
        if self._before is not None:  # a run takes these out of every environment
            moved |= {
                name: self._before.exported[name]
                for name in DECIDING
                if name in self._before.exported and name not in moved and name not in removed
            }
        sizes = {name: len(os.fsencode(name)) + len(os.fsencode(value)) for name, value in self._env.items()}
        total = sum(sizes.values())
        for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if sizes[name] <= _ONE and total <= _ALL:
                break
            if _NAME.match(name):
                moved[name] = self._env.pop(name)
                total -= sizes[name]
        return moved

    def beginning(self) -> str:
        """The text that is read first."""
        everything = {**self._env, **self._moved}
        if not self._bash:
            return posix.beginning(self._before, everything, self._out, self._moved)
        before = self._before
        texts = [self._command.text or "", *((before.functions, before.aliases) if before is not None else ())]
        parts = (self._before, everything, self._into, self._out, self._moved)
        return bash.beginning(*parts, traps=any(map(_may_trap, texts)))

    def launch(self) -> Launch:
        """The launch that has it read."""
        launch, text = self._launch, self._command.text or ""
        argv = launch.argv
        if self._bash:
            self._env["BASH_ENV"] = f"/dev/fd/{self._into}"
        else:
            # a text too long for an argument is in a file by now
            said = text if text in argv else f". {shlex.quote(argv[-1])}"
            argv = (argv[0], "-c", posix.reading(self._into) + said)
        pass_fds = (*launch.pass_fds, self._into, self._out)
        return replace(launch, argv=argv, env=self._env, pass_fds=pass_fds, settle=self._unshown)

    def _unshown(self, outcome: Outcome) -> Outcome:
        """Without what ``set -v`` showed of the trap that tells."""
        texts = (bash if self._bash else posix).shown(self._out)
        cleared = {name: _without(getattr(outcome, name), texts) for name in ("stdout", "stderr")}
        return replace(outcome, stdout=cleared["stdout"], stderr=cleared["stderr"])

    def require_restored(self, data: bytes, session: str) -> None:
        """Raises ``VeilError`` (``session_broken``) unless the command began in the state of before."""
        first = self._before is None
        # of a first command the state of its beginning is told before
        if bash.END + bash.READY in data if first else data.startswith(bash.BEGUN + bash.READY):
            return
        if data.startswith(bash.BEGUN):
            _, lost, rest = data.rpartition(bash.LOST)
            part = os.fsdecode(rest.partition(b"\0")[0]) if lost else "its shell ended meanwhile"
            how = f"({part}), and the command was not run"
        elif first or not self._bash:
            return  # there was nothing to restore; or a syntax error in the line that would have read it: nothing ran
        else:
            how = "(its shell did not tell that it read it), and the command may have run without it"
        raise VeilError(
            f"the state of session {session} could not be restored {how}; the state stays as it is: go on in another "
            "session, or end this one and begin it anew",
            code="session_broken",
            session=session,
        )

    def told(self, data: bytes) -> tuple[State | None, State | None, str | None]:
        """The states of the beginning and of the end, and what is wrong with the latter."""
        first = self._before
        if first is None:
            early, _, _ = data.rpartition(bash.MARK)
            first = self._state(early.removesuffix(bash.READY))
        if not data.startswith(bash.BEGUN):
            how = "began without it" if self._bash else "ran nothing"
            return first, None, f"the shell never read it, and {how}"
        if data.count(bash.MARK) <= (self._before is None):
            return first, None, "the shell did not come to its end (exec, or a trap on EXIT in place of ours)"
        after = self._state(data)
        return first, after, "what the shell told of itself is not whole" if after is None else None

    def _state(self, data: bytes) -> State | None:
        state = bash.told(data, self._before) if self._bash else posix.told(data)
        return None if state is None else replace(state, exported=self._kept(state.exported))

    def _kept(self, exported: Mapping[str, str]) -> dict[str, str]:
        """What programs get from now on: without what is of this run alone."""
        removed = {name for name, value in self._command.env if value is None}
        # what was taken out for this one run comes back; what no shell has a name for goes by it
        kept = {
            name: value
            for name, value in self._environment.items()
            if name not in self._launch.env and name not in removed and name not in DECIDING
        }
        kept |= {
            name: value
            for name, value in self._launch.env.items()
            if not _NAME.match(name) and not (self._bash and name.startswith("BASH_FUNC_"))
        }
        kept |= exported
        kept.pop(TAG_VARIABLE, None)
        for name in UNCARRIED:
            kept.pop(name, None)
            if name in self._environment:
                kept[name] = self._environment[name]
        return kept
