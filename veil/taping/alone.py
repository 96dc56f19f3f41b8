"""Playing a whole cassette from its first step to its last, with no Python in between."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from veil.background import Handle
from veil.cassettes.matching import Key, State, Tape, key_of, session_of
from veil.cassettes.recording import each_text
from veil.cassettes.steps import Cassette, Step
from veil.cassettes.verdicts import Rules, compare
from veil.model.errors import Refused, VeilError
from veil.result import Result
from veil.stateful import Shell
from veil.taping.player import OnDrift, Player
from veil.taping.recorder import Recorder, StageRunner
from veil.taping.stage import REPLAYED_TAG, Stage

#: Seconds after which a background step that ended by itself when it was recorded is ended.
_BACKGROUND_SECONDS = 60.0


@dataclass(frozen=True)
class Played:
    """One step, played.

    Attributes:
        number: from 1. step: as recorded.
        result: what came out; None for a background step (it goes on) and when nothing ran.
        error: why it could not be played; then no later step is.
    """

    number: int
    step: Step
    result: Result | None = None
    error: VeilError | None = None

    @property
    def failures(self) -> tuple[str, ...]:
        """Why the step does not hold: the error, or each expectation that is not met. Empty when it holds."""
        if self.error is not None:
            return (str(self.error),)
        if self.result is None:
            return ()
        verdict = self.result.verdict
        return tuple(f"{said.check}: {said.message}" for said in (*verdict.failed, *verdict.inconclusive))


class InOrder(Tape):
    """A tape of which each step answers in its turn and never before or after."""

    def __init__(self, cassette: Cassette, file: str) -> None:
        super().__init__(cassette, file, cassette.header)
        header = cassette.header
        self._turns = [Tape(Cassette(header, (step,)), file, header) for step in cassette.steps]
        self._taken = 0

    @property
    def unused(self) -> tuple[int, ...]:
        return tuple(range(self._taken + 1, len(self._turns) + 1))

    def take(self, asked: Key, state: State | None = None) -> tuple[int, Step]:
        self._taken += 1
        _, step = self._turns[self._taken - 1].take(asked, state)
        return self._taken, step


def play(cassette: Cassette, runner: StageRunner, *, drift: bool = True) -> Iterator[Played]:
    """Ask for the steps of ``cassette``, one after the other, with what was recorded of each: command, folder,
    environment, standard input, limits, expectations. Background steps are ended when the last step was played.

    Args:
        runner: on the stage of this cassette. A ``Player`` (with an ``InOrder`` tape) answers from the recording and
            starts nothing; a ``StageRunner`` runs for real; a ``Recorder`` leaves new steps behind as well.
        drift: before each step of a ``Player``, look whether the files are as the step was recorded upon.
    """
    open_: list[tuple[Step, Handle]] = []
    judge = _Before(runner.stage) if drift and isinstance(runner, Player) else None
    asking = _Asking(runner)
    try:
        for number, step in enumerate(cassette.steps, 1):
            try:
                if judge is not None:
                    judge(number, step)
                command, options = asked_again(step, runner.stage)
                if step.background:
                    open_.append((step, asking.start(step, command, options)))
                    result = None
                else:
                    result = asking.run(step, command, options)
            except VeilError as error:
                yield Played(number, step, error=error)
                return
            yield Played(number, step, result)
    finally:
        for step, handle in open_:
            _end(step, handle)


class _Asking:
    """Asks a runner, or the session that a step belongs to: one for each name that stands in the cassette."""

    def __init__(self, runner: StageRunner) -> None:
        self._runner = runner
        self._sessions: dict[str, Shell] = {}

    def run(self, step: Step, command: str | list[str], options: dict[str, Any]) -> Result:
        shell = self._session(step, options)
        return self._runner.run(command, options) if shell is None else shell.run(command, **options)

    def start(self, step: Step, command: str | list[str], options: dict[str, Any]) -> Handle:
        shell = self._session(step, options)
        return self._runner.start(command, options) if shell is None else shell.start(command, **options)

    def _session(self, step: Step, options: dict[str, Any]) -> Shell | None:
        named = session_of(step)
        if not named:
            return None
        shell = options.pop("shell", None)
        if named[0] not in self._sessions:
            self._sessions[named[0]] = Shell(self._runner, named[0], {"shell": shell})
        return self._sessions[named[0]]


def run_cassette(cassette: Cassette, runner: StageRunner) -> list[Played]:
    """``play`` to its end."""
    return list(play(cassette, runner))


def replay(cassette: Cassette, stage: Stage, file: str, on_drift: OnDrift = "error") -> Iterator[Played]:
    """``play`` from the recording itself, starting no process: is every step true of the files that it meets?"""
    return play(cassette, Player(stage, InOrder(cassette, file), on_drift), drift=on_drift == "error")


def record_again(cassette: Cassette, recorder: Recorder) -> tuple[Cassette, list[Played]]:
    """The same steps with fresh results. Steps that could not be run are missing at the end of the new cassette."""
    played = run_cassette(cassette, recorder)
    profile = recorder.stage.profile
    header = replace(cassette.header, profile=profile.name, profile_version=profile.version)
    return recorder.cassette(header), played


def refreshed(old: Cassette, new: Cassette, rules: Rules | None = None) -> Cassette:
    """``new``, in which every step that repeats its old one keeps the old one's bytes."""
    steps = [
        before if key_of(before) == key_of(now) and compare(before, now, rules).same else now
        for before, now in zip(old.steps, new.steps, strict=False)
    ]
    return Cassette(new.header, (*steps, *new.steps[len(steps) :]))


def asked_again(step: Step, stage: Stage) -> tuple[str | list[str], dict[str, Any]]:
    """Command and keywords that ask for what a step was recorded of.

    Raises ``Refused`` (``cannot_ask``) for a step that keywords cannot express.
    """
    hidden = stage.hidden(REPLAYED_TAG)
    options: dict[str, Any] = {
        "cwd": hidden.show_text(step.cwd),
        "env": {name: None if value is None else hidden.show_text(value) for name, value in step.env},
        "stdin": None if step.stdin is None else hidden.show(step.stdin),
        "merge_stderr": step.merged,
        "no_store": True,
        "effects": False,
        "scrub_env": False,
        "max_output": step.stream_bytes,
    }
    for name, wish in step.wishes:
        options.update(_wished(name, each_text(dict(wish), hidden.show_text)))
    if step.ending.survivors == "kept":
        options["left_running"] = "keep"
    if step.background:
        options.pop("effects")
    else:
        options.update(
            timeout=math.inf if step.timeout is None else step.timeout,
            expect={name: each_text(value, hidden.show_text) for name, value in step.expect},
        )
        if step.earlier:
            options["retries"] = len(step.earlier)
    if step.text is None:
        return [hidden.show_text(word) for word in step.argv], options
    if len(step.shell) != 2 or step.shell[1] != "-c":
        raise Refused(f"a shell called as {' '.join(step.shell)!r} cannot be asked for again", code="cannot_ask")
    options["shell"] = _shell(step.shell[0], stage)
    return hidden.show_text(step.text), options


def _wished(name: str, wish: Mapping[str, Any]) -> dict[str, Any]:
    if name == "Effects":
        return {"effects": "all" if wish.get("ignored") else True}
    if name == "ScrubEnv":
        return {"scrub_env": True}
    if name in ("Look", "Carry"):  # come with the expectations and with the session
        return {}
    if name in ("Trace", "Preview"):
        return {name.lower(): True}
    if name == "Sandbox":
        return {"sandbox": dict(wish)}
    raise Refused(f"the wish {name!r} cannot be asked for again", code="cannot_ask", wish=name)


def _shell(recorded: str, stage: Stage) -> str:
    """Shells stand at other places on other machines: by name, as the stage's PATH has it; else as recorded."""
    return shutil.which(os.path.basename(recorded), path=stage.environment.get("PATH")) or recorded


class _Before:
    """Looks whether the files that a step touched are as they were before it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._hidden = stage.hidden(REPLAYED_TAG)
        self._contents = stage.contents(self._hidden)

    def __call__(self, number: int, step: Step) -> None:
        cwd = os.path.relpath(self._hidden.show_text(step.cwd), self._stage.root)
        for path, recorded in sorted(step.before.items()):
            now = self._contents.id_of(os.path.normpath(os.path.join(cwd, path)))
            if now != recorded:
                raise Refused(
                    f"step {number} was recorded where {path} was {recorded}; it is {now} here: the workspace or an"
                    " earlier step is not the one that it was recorded after",
                    code="not_as_recorded",
                    step=number,
                    path=path,
                    recorded=recorded,
                    found=now,
                )


def _end(step: Step, handle: Handle) -> None:
    """As it ended when it was recorded: by itself, or by us."""
    if step.status == "exited" and not handle.replayed:
        try:
            handle.wait(_BACKGROUND_SECONDS)
        except TimeoutError:
            handle.kill()
        return
    handle.kill()
