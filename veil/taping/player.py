"""Runs that are answered from a recording. Starts no process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Literal

from veil import wiring
from veil.cassettes.matching import Tape
from veil.cassettes.recording import each_text, observation_of
from veil.cassettes.steps import Step
from veil.executors.replay import Answer, Replay
from veil.host.applying import apply
from veil.host.contents import Contents
from veil.host.orders import Controls
from veil.kit import Kit
from veil.model.command import Look, Sandbox, Trace
from veil.model.errors import Refused
from veil.model.outcome import Fact, Findings, Kind
from veil.model.plan import Work
from veil.model.record import Record
from veil.model.variation import varied
from veil.runner import Asked
from veil.secrets.shapes import TOKEN
from veil.taping.delta import below_root, puts_of
from veil.taping.keying import confined, key_for
from veil.taping.recorder import StageRunner, below
from veil.taping.scrubbing import Scrubbed
from veil.taping.stage import REPLAYED_TAG, Stage

OnDrift = Literal["error", "apply", "ignore"]
#: Seconds after which a run that was cancelled when it was recorded is no longer waited with.
_CANCEL_SECONDS = 60


class Player(StageRunner):
    """Answers from a tape.

    Args:
        on_drift: when the files that a step would touch are not as recorded: ``error`` (nothing answers),
            ``apply`` (the step answers and puts the recorded files there), ``ignore`` (it answers and touches nothing).
    """

    def __init__(self, stage: Stage, tape: Tape, on_drift: OnDrift = "error", records: Path | None = None) -> None:
        super().__init__(stage, records)
        self.tape = tape
        self._on_drift = on_drift
        self._hidden = stage.hidden(REPLAYED_TAG)
        self._word = _Words(tape, self._hidden).__getitem__
        self._without_secrets = lru_cache(maxsize=256)(Scrubbed((), self._hidden.secrets).hide_text)
        self._kits: dict[tuple[Path, tuple[str, ...]], Kit] = {}
        self._own: wiring.Session | None = None
        self._contents = stage.contents(self._hidden)
        #: Numbers (from 1) of the steps that answered, in order.
        self.used: list[int] = []

    def _kit(self, asked: Asked) -> Kit:
        how = confined(asked.request, self._word)  # known here only: the wish itself goes no further
        place = (asked.session.project, how)
        kit = self._kits.get(place)
        if kit is None:
            kit = varied(asked.kit, executor=Replay(partial(self._answer, how)), store=asked.kit.memory)
            self._kits[place] = kit
        return kit

    def _of_stage(self, asked: Asked) -> dict[str, Any]:
        # what was recorded is without secrets, so what is expected of it has to be
        expect = tuple((name, each_text(value, self._without_secrets)) for name, value in asked.request.expect)
        own = {**super()._of_stage(asked), "redact": False, "expect": expect}
        if any(isinstance(wish, (Sandbox, Trace)) for wish in asked.request.wishes):
            # nothing is started: a machine that could not confine or trace it can answer all the same
            own["wishes"] = tuple(wish for wish in asked.request.wishes if not isinstance(wish, (Sandbox, Trace)))
        return own

    def _session(self, project: Any) -> wiring.Session:
        """The first one is kept: nothing that is answered depends on the variables of this process."""
        if project is not None:
            return super()._session(project)
        if self._own is None:
            self._own = super()._session(None)
        return self._own

    def _answer(self, how: tuple[str, ...], work: Work) -> Answer:
        request = work.plan.request
        cwd = below(self.stage, request.command.cwd)

        def state(paths: Iterable[str]) -> dict[str, str]:
            return {path: self._contents.id_of(os.path.normpath(os.path.join(cwd, path))) for path in paths}

        asked = key_for(request, self.stage, self._word, self._hidden.hide, how)
        number, step = self.tape.take(asked, state if self._on_drift == "error" else None)
        self.used.append(number)
        self._perform(step, cwd)
        seen = observation_of(step, self._hidden)
        looked = self._looks(request.wishes, step, request.command.cwd)
        seen = varied(seen, findings=seen.findings.merged(Findings(files=looked)))
        return Answer(seen, step.background and step.status == "killed")

    async def aperform(self, asked: Asked) -> Record:
        """At once, so that runs which are asked for together are answered in that order; but a run whose task was
        cancelled goes on until its task is cancelled again.

        Raises ``Refused`` (``not_cancelled``) when nobody does.
        """
        import asyncio

        record = self.perform(asked, Controls(listener=asked.listener))
        if record.observation.outcome.cancelled:
            await asyncio.sleep(_CANCEL_SECONDS)
            raise Refused(
                f"the task of this run was cancelled when it was recorded, and not in {_CANCEL_SECONDS} seconds now;"
                f" record it again: {asked.request.command.text or ' '.join(asked.request.command.argv)}",
                code="not_cancelled",
                seconds=_CANCEL_SECONDS,
            )
        await asyncio.sleep(0)
        return record

    def looked(self, path: str) -> Fact | None:
        """What an assertion saw at a path when this was recorded: what the last step knows that answered so far."""
        name = self._hidden.hide_text(path)
        for number in reversed(self.used):
            fact = self.tape.step(number).files.get(name)
            if fact is not None:
                return fact
        return None

    def _perform(self, step: Step, cwd: str) -> None:
        omitted = [change.path for change in step.delta if change.omitted]
        if omitted:
            raise Refused(
                f"the recording left out the content of {', '.join(omitted[:3])} (too large), so it cannot be replayed",
                code="not_applied",
                paths=omitted,
            )
        if self._on_drift != "ignore":
            puts = puts_of(step, self._hidden, cwd)
            if puts:
                apply(str(self.stage.root), puts, self._staging)
                for change in step.delta:
                    if change.content is not None:  # whole, so its id says what is there now
                        self._contents.know(below_root(change.path, cwd), change.after)

    @cached_property
    def _staging(self) -> str:
        """Beside the workspace, for as long as the stage is there."""
        path = f"{self.stage.root}.staging"
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        return path

    def _looks(self, wishes: Sequence[object], step: Step, cwd: str) -> dict[str, Fact]:
        """Facts that are asked for now and were not when it was recorded: the workspace is as after the step."""
        found: dict[str, Fact] = {}
        for wish in wishes:
            if isinstance(wish, Look):
                for path in wish.paths:
                    if path not in step.files:
                        found[path] = look(self._contents, self.stage, os.path.join(cwd, path))
        return found


class _Words(dict[str, str]):
    """Words of commands as recordings have them: without secrets, with tokens for folders.

    They come again and again: the shell, the folder, a command as text and in its argv. What stands in the recording
    in so many words, without a token, has nothing to hide, so that nobody looks for it.
    """

    def __init__(self, tape: Tape, hidden: Scrubbed) -> None:
        super().__init__((word, word) for word in tape.words() if "<" not in word and TOKEN not in word)
        self._hidden = hidden
        self._most = len(self) + 256

    def __missing__(self, word: str) -> str:
        hidden = self._hidden.hide_text(word)
        if len(self) < self._most:
            self[word] = hidden
        return hidden


def look(contents: Contents, stage: Stage, path: str) -> Fact:
    """What a path is now. A path outside the workspace is not looked at: it says nothing about the recording."""
    relative = os.path.relpath(os.path.abspath(path), stage.root)
    if relative.startswith(".."):
        raise Refused(f"{path} is outside the workspace, and was not looked at in the recording", code="not_recorded")
    kind: Kind | None = contents.kind_of(relative)
    return Fact(kind, contents.size_of(relative), contents.mode_of(relative)) if kind is not None else Fact(None)
