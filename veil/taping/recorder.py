"""Live runs that leave steps behind."""

from __future__ import annotations

import os
import posixpath
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veil import pipeline, wiring
from veil.background import Handle
from veil.cassettes.recording import StepFacts, each_text, judged_of, observation_of, step_of
from veil.cassettes.steps import Cassette, Header, Step, TreeChange
from veil.host.orders import Controls
from veil.kit import Kit
from veil.model.command import Request
from veil.model.errors import BadInput, Refused
from veil.model.outcome import Fact, Outcome
from veil.model.record import Record
from veil.model.variation import varied
from veil.model.verdict import Judgement
from veil.runner import Asked, Runner
from veil.taping.keying import chosen
from veil.taping.ledger import Ledger
from veil.taping.scrubbing import Scrubbed, ended_with, unnamed
from veil.taping.stage import REPLAYED_TAG, Stage
from veil.taping.wholes import Wholes


class StageRunner(Runner):
    """Runs commands for real on a stage: its environment, umask and addresses; cwd defaults to its workspace.

    Args:
        records: state directory for the records of these runs; None for the user's own.
    """

    def __init__(self, stage: Stage, records: Path | None = None) -> None:
        self.stage = stage
        self._records = records

    def ask(self, command: str | Sequence[str], options: Mapping[str, Any], *, background: bool = False) -> Asked:
        session = self._session(options.get("project"))
        asked = self._asked(
            session,
            session.kit,
            self.stage.environment_now(),
            command,
            {**options, "cwd": self._cwd(options.get("cwd"))},
            background=background,
        )
        return varied(asked, kit=self._kit(asked), request=varied(asked.request, **self._of_stage(asked)))

    def plain(self, text: str) -> str:
        return self.stage.hidden(REPLAYED_TAG).hide_text(text)

    def _kit(self, asked: Asked) -> Kit:
        return asked.kit

    def _of_stage(self, asked: Asked) -> dict[str, Any]:
        """What is so of every run here, whatever was asked."""
        return {
            "umask": self.stage.profile.umask,
            "fixed_addresses": self.stage.profile.fixed_addresses,
            "insist": True,  # a test may ask later what changed
        }

    def _session(self, project: Any) -> wiring.Session:
        own = dict(os.environ)
        if self._records is not None:
            own["VEIL_STATE_DIR"] = str(self._records)
        return wiring.session(own, project)

    def _cwd(self, value: Any) -> Any:
        if value is None:
            return self.stage.root
        try:
            return self.stage.root / os.fsdecode(value)
        except TypeError:
            return value  # refused where every cwd is judged


@dataclass(frozen=True)
class Refusal:
    """What veil would not run. Attributes: command: as in ``Key``. code, message: of the error."""

    command: str | tuple[str, ...]
    code: str
    message: str


class Recorder(StageRunner):
    """Runs for real and keeps a step of each run, in the order in which they were begun.

    Attributes:
        refused: what was asked and not run, in order. It leaves no step.
    """

    def __init__(self, stage: Stage, records: Path | None = None) -> None:
        super().__init__(stage, records)
        self.refused: list[Refusal] = []
        self._steps: list[Step | None] = []
        self._facts: list[StepFacts | None] = []
        self._places: dict[tuple[str, float], int] = {}
        self._open: dict[int, tuple[Request, Scrubbed, Wholes, Handle]] = {}
        self._given: set[tuple[int, str]] = set()
        self._amended: dict[tuple[int, str], TreeChange] = {}
        self._judged: dict[tuple[str, float], list[Judgement]] = {}
        self._ledger = Ledger()
        #: Of the runs that are under way together: what one writes another may find.
        self._tags: list[bytes] = []
        self._lock = threading.RLock()

    def ask(self, command: str | Sequence[str], options: Mapping[str, Any], *, background: bool = False) -> Asked:
        try:
            return super().ask(command, options, background=background)
        except Refused as error:
            self._refuse(command, error)
            raise

    def _refuse(self, command: str | Sequence[str], error: Refused) -> None:
        hidden = self.stage.hidden(REPLAYED_TAG)
        words = [command] if isinstance(command, str) else list(command)
        shown = tuple(hidden.hide_text(os.fsdecode(word)) for word in words)
        message = hidden.hide_text(str(error))
        with self._lock:
            self.refused.append(Refusal(shown[0] if isinstance(command, str) else shown, error.code, message))

    def _place(self) -> int:
        with self._lock:
            self._steps.append(None)
            self._facts.append(None)
            return len(self._steps) - 1

    def book(self, asked: Asked) -> Asked:
        return replace(asked, place=self._place())

    def _tagged(self, asked: Asked) -> tuple[Asked, Scrubbed]:
        tag = os.urandom(8).hex()
        if self._ledger.idle:
            self._tags = []
        self._tags.append(tag.encode("ascii"))
        return replace(asked, request=replace(asked.request, tag=tag)), self.stage.hidden_with(self._tags)

    def _enter(self, asked: Asked) -> tuple[int, Asked, Scrubbed]:
        """A step begins. Raises ``BadInput`` for a folder outside before anything has run."""
        cwd = below(self.stage, asked.request.command.cwd)
        place = self._place() if asked.place is None else asked.place
        with self._lock:
            asked, hidden = self._tagged(asked)
            self._ledger.begin(place, self.stage.contents(hidden), hidden, cwd, background=asked.request.background)
        return place, asked, hidden

    def perform(self, asked: Asked, controls: Controls) -> Record:
        place, asked, hidden = self._enter(asked)
        wholes = Wholes(hidden.hide, asked.request.limits.stream_bytes, controls.listener)
        listening = replace(controls, listener=wholes)
        try:
            record = pipeline.run(asked.kit, asked.request, asked.environment, listening)
        except BaseException as error:
            self._amend(self._ledger.drop(place), hidden)
            if isinstance(error, Refused):
                self._refuse(asked.request.command.text or asked.request.command.argv, error)
            raise
        step = self._keep(place, record, asked.request, hidden, wholes)
        return self._as_replayed(record, step, asked, hidden)

    def _as_replayed(self, record: Record, step: Step, asked: Asked, hidden: Scrubbed) -> Record:
        """What a replay will show, so that a test that asserts on what is hidden fails now and not only then."""
        seen, shown = record.observation, observation_of(step, hidden)
        was = (*seen.earlier, seen.outcome)
        outcomes = tuple(map(_without, was, (*shown.earlier, shown.outcome)))
        findings, changes = seen.findings, shown.findings.changes
        if set(findings.changes or ()) != set(changes or ()):
            findings = replace(findings, changes=changes)
        if findings is seen.findings and outcomes == was:
            return record
        seen = replace(seen, earlier=outcomes[:-1], outcome=outcomes[-1], findings=findings)
        secretless = Scrubbed((), hidden.secrets).hide_text
        expect = tuple((name, each_text(value, secretless)) for name, value in asked.request.expect)
        verdict = pipeline.judge(asked.kit, replace(asked.request, expect=expect), seen)
        return replace(record, observation=seen, verdict=verdict)

    def _keep(self, place: int, record: Record, request: Request, hidden: Scrubbed, wholes: Wholes) -> Step:
        changes, quiet, given, amended = self._ledger.end(place, record.observation.findings.changes)
        step = step_of(
            record,
            request,
            hidden,
            changes=changes,
            quiet=quiet,
            wholes=wholes.of(record.observation.outcome),
            env=chosen(request, self.stage),
        )
        step = unnamed(step, hidden)
        seen = record.observation
        seconds = tuple(outcome.seconds for outcome in (*seen.earlier, seen.outcome))
        with self._lock:
            self._steps[place], self._facts[place] = step, StepFacts(record.started, seconds)
            self._places[record.id, record.started] = place
            self._given.update((other, hidden.name(path)) for other, path in given)
        self._amend(amended, hidden)
        return step

    def _amend(self, amended: Sequence[tuple[int, TreeChange]], hidden: Scrubbed) -> None:
        with self._lock:
            self._amended.update(((place, hidden.name(row.path)), row) for place, row in amended)

    def started(self, asked: Asked) -> Handle:
        place, asked, hidden = self._enter(asked)
        wholes = Wholes(hidden.hide, asked.request.limits.stream_bytes, asked.listener)
        try:
            handle = self.begin(replace(asked, listener=wholes))
        except BaseException as error:
            self._amend(self._ledger.drop(place), hidden)
            if isinstance(error, Refused):
                self._refuse(asked.request.command.text or asked.request.command.argv, error)
            raise
        with self._lock:
            self._open[place] = (asked.request, hidden, wholes, handle)
        return handle

    def add_facts(self, place: int, files: Mapping[str, Fact]) -> None:
        """What an assertion looked at after a step (number from 0), kept with it so that a replay answers the same."""
        with self._lock:
            step = self._steps[place]
            if step is not None:
                self._steps[place] = replace(step, files={**step.files, **files})

    def add_look(self, record: Record, path: str, fact: Fact) -> None:
        """``add_facts`` for the step of a run; nothing when the run is not one of these."""
        with self._lock:
            place = self._places.get((record.id, record.started))
        if place is not None:
            self.add_facts(place, {self.stage.hidden(REPLAYED_TAG).hide_text(path): fact})

    def add_judgement(self, record: Record, judgement: Judgement) -> None:
        """What an assertion said of a run, kept with its step; nothing when the run is not one of these."""
        with self._lock:
            said = self._judged.setdefault((record.id, record.started), [])
            if judgement not in said:  # who waits for something asks many times
                said.append(judgement)

    def finish(self) -> None:
        """End what is still in the background and keep its steps. Idempotent."""
        with self._lock:
            still, self._open = self._open, {}
        for place, (request, hidden, wholes, handle) in still.items():
            handle.kill()
            self._keep(place, handle.wait().record, request, hidden, wholes)

    def cassette(self, header: Header) -> Cassette:
        """Everything recorded so far; runs that were refused leave no step."""
        self.finish()
        with self._lock:
            steps = list(self._steps)
            hidden = self.stage.hidden(REPLAYED_TAG)
            for place, path in self._given:
                if (step := steps[place]) is not None:
                    steps[place] = replace(step, quiet=tuple(row for row in step.quiet if row.path != path))
            for (place, _), row in self._amended.items():
                if (step := steps[place]) is not None:
                    steps[place] = ended_with(step, row, hidden)
            for run, place in self._places.items():
                if run in self._judged and (step := steps[place]) is not None:
                    rows = (judged_of(judgement, hidden) for judgement in self._judged[run])
                    steps[place] = replace(step, judged=(*step.judged, *rows))
            return Cassette(header, tuple(step for step in steps if step is not None))

    def facts(self) -> tuple[StepFacts, ...]:
        """When each step ran and how long it took."""
        with self._lock:
            return tuple(facts for facts in self._facts if facts is not None)


def _without(seen: Outcome, shown: Outcome) -> Outcome:
    """``seen`` with the texts of ``shown``; itself when they are the same."""
    if (seen.stdout, seen.stderr, seen.spawn_error) == (shown.stdout, shown.stderr, shown.spawn_error):
        return seen
    return replace(seen, stdout=shown.stdout, stderr=shown.stderr, spawn_error=shown.spawn_error)


def below(stage: Stage, cwd: str) -> str:
    """The folder of a run below the workspace, empty for the workspace itself.

    Raises ``BadInput`` for a folder outside: what a run does there could not be recorded.
    """
    if cwd == str(stage.root):  # nearly always
        return ""
    found = os.path.relpath(os.path.realpath(cwd), stage.root)
    if found == ".." or found.startswith("../"):
        raise BadInput("cwd", cwd, f"a folder in the workspace {stage.root}, or a live run")
    return "" if found == "." else posixpath.normpath(found)
