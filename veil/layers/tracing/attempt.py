"""One attempt of a command under strace."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from veil.host import strace
from veil.layers.tracing.account import Account
from veil.layers.tracing.following import Follower
from veil.layers.tracing.handling import CALLS
from veil.model.command import Sandbox
from veil.model.outcome import Outcome, Stream
from veil.model.plan import Launch, Plan, Touched

#: What strace ends with when it could not start a program.
_STRACE_FAILED = 1


def unavailable() -> str | None:
    """Why nothing can be traced on this machine, found out once by tracing something."""
    return strace.unavailable(CALLS)


def hindered(launch: Launch) -> str | None:
    """Why this very command cannot be started under strace, or not without a difference."""
    if strace.find() is None:
        return "strace is not installed"
    if launch.restrict is not None:
        return "a confinement without namespaces lets no tracer in"
    if launch.held is not None:
        return "the program is started by a descriptor, and strace starts programs by name"
    if not launch.argv[0] or not strace.executable(launch.argv[0], launch.cwd, launch.env):
        return "the command could not start"  # and without strace it says so as ever
    return None


@dataclass
class Attempt:
    """One attempt."""

    untraced: Launch
    plan: Plan
    marks: Touched
    most_bytes: int

    def __post_init__(self) -> None:
        launch = self.untraced
        wrapped = any(isinstance(wish, Sandbox) for wish in self.plan.request.wishes)
        argv = _innermost(launch.argv, self.plan.request.command.argv) if wrapped else launch.argv
        cwd = os.path.realpath(launch.cwd)
        self.account = Account(cwd, self.most_bytes)
        self.follower = Follower(self.account, argv, cwd, wrapped=wrapped, marks=self.marks)
        self._wrapped = wrapped
        self._log = strace.Log(self.follower.feed, cwd)
        self._whole: bool | None = None
        self.marks.by = "trace"

    def launch(self) -> Launch:
        """The command under strace: its exit code, its signal and its streams stay its own."""
        launch = self.untraced
        env, back = strace.environments(launch.env, launch.tag)
        words = strace.words(strace.find() or "strace", self._log.path, CALLS, namespaces=self._wrapped)
        return replace(
            launch,
            argv=(*words, *back, "--", *launch.argv),
            env=env,
            watchers=strace.mark(launch.tag),
            settle=self._settle,
        )

    def _settle(self, outcome: Outcome) -> Outcome:
        """A program that strace could not start looks like one that failed; then what is inside is asked."""
        self._end()
        if not self.follower.started and outcome.ended == "exited" and outcome.exit == _STRACE_FAILED:
            return _not_started(outcome, self.follower.first_error, self.untraced.argv[0])
        return outcome if self.untraced.settle is None else self.untraced.settle(outcome)

    def _end(self) -> None:
        if self._whole is None:
            self._whole = self._log.wait() and self.follower.finish()

    def finish(self, outcome: Outcome) -> dict[str, Any]:
        """The note."""
        if outcome.ended == "spawn_failed":
            self._whole = self._whole or False
            self.marks.complete = False
            return {"unavailable": "the command could not start"}
        self._end()
        if not self._whole:
            self.marks.complete = False
            self.account.truncated = True
        if not self.follower.begun:
            self.marks.complete = False
            return {"unavailable": "the command was not seen to begin"}
        return self.account.data()

    def close(self) -> None:
        if not self._whole and self._log.begun and not self._log.wait():
            strace.end(self.untraced.tag)  # everybody whom it could trace has been ended by now
        self._log.close()
        strace.collect()


def _innermost(argv: Sequence[str], command: Sequence[str]) -> Sequence[str]:
    """The command's own words at the end of those that confine it (a long text has become a file by now)."""
    if tuple(argv[-len(command) :]) == tuple(command):
        return command
    for size in (len(command), 2):
        if argv[-size] == command[0]:
            return argv[-size:]
    return command


def _not_started(outcome: Outcome, error: str | None, program: str) -> Outcome:
    number = getattr(errno, error or "", None)
    if number is None:
        said = outcome.stderr.text.strip().rsplit("\n", 1)[-1]
        reason, code = f"the tracer could not start it: {said or 'strace said nothing'}", 126
    else:
        reason, code = os.strerror(number), 127 if number in (errno.ENOENT, errno.ENOTDIR) else 126
    return replace(
        outcome,
        ended="spawn_failed",
        exit=code,
        spawn_error=f"{reason}: {program}",
        stdout=Stream(),
        stderr=Stream(),
        usage=None,
        seconds=0.0,
    )
