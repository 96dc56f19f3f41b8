"""A recorded trajectory as a test: played from the file, run for real, or recorded again, step by step."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from pytest_veil.cassettes import read_cassette, write_whole
from pytest_veil.config import Settings, settings_for
from pytest_veil.outcomes import ItemOutcome, StepRow, Take, leave, note
from pytest_veil.rewording import edit_of, rekey_of
from pytest_veil.session import VeilSession, session_of
from pytest_veil.substeps import StepsFailed, name_of, subtests_of, tell_steps
from pytest_veil.verifying import command_of

if TYPE_CHECKING:
    from veil.taping import Cassette, Played, Stage


def run(item: pytest.Item) -> None:
    """Do what the mode of the session says.

    Raises:
        StepsFailed: steps do not hold (where pytest has no subtests, or a new recording is not written for it).
        CassetteDamaged, CassetteVersion, Refused: the file cannot be read, or its workspace cannot be made.
    """
    session = session_of(item.config)
    settings = settings_for(item, session.settings)
    shown = session.shown(item.path)
    try:
        cassette = read_cassette(item.path, shown)
        if cassette is None:
            raise StepsFailed(f"{shown}: it is gone since it was collected")
        _Play(item, session, settings, shown, cassette).run()
    except StepsFailed:
        raise
    except Exception as error:
        note(item, ItemOutcome(item.nodeid, settings.mode, "error", "error", shown, why=str(error)))
        raise


@dataclass
class _Play:
    item: pytest.Item
    session: VeilSession
    settings: Settings
    shown: str
    cassette: Cassette
    #: Takes secrets out of a text for people; known as soon as there is a stage.
    conceal: Callable[[str], str] = str

    def run(self) -> None:
        from veil.taping import Recorder, StageRunner, play, record_again, replay

        mode = self.settings.mode
        stage = self.stage()
        if mode in ("replay", "record-missing"):
            self.judge(replay(self.cassette, stage, self.shown, self.settings.on_drift), "replayed", subtests=True)
        elif mode == "live":
            self.judge(play(self.cassette, StageRunner(stage, self.records)), "live", subtests=True)
        else:
            recorder = Recorder(stage, self.records)
            fresh, played = record_again(self.cassette, recorder)
            if mode == "verify":
                self.leave(fresh, recorder)
                self.judge(played, "live", subtests=False)
            else:
                self.record(fresh, played)

    @property
    def records(self) -> Path:
        """Where runs find a place for what they need besides; they themselves leave no record but the file."""
        return self.session.folder() / "records"

    def stage(self) -> Stage:
        from veil.taping import Scrubbed, stage_for

        base = self.session.base_for(self.settings)
        secrets = list(self.settings.secrets)
        for more in self.item.config.hook.pytest_veil_scrub(config=self.item.config, nodeid=self.item.nodeid):
            secrets += more or ()
        header, path = self.cassette.header, self.item.path
        stage = stage_for(header, path, base, os.environ, secrets=secrets, passed=self.settings.pass_env)
        self.conceal = Scrubbed((), stage.hidden("").secrets).hide_text
        return stage

    def judge(self, played: Iterable[Played], word: str, *, subtests: bool) -> None:
        """Each step as it is played. Raises ``StepsFailed`` for what no subtest has told."""
        test = subtests_of(self.item) if subtests else None
        rows: list[StepRow] = []
        wrong: list[str] = []
        first = None
        try:
            for one in played:
                message = self.message(one)
                row_word = word if message is None else "failed"
                rows.append(StepRow(one.number, row_word, command_of(one.step), detail=_line(message)))
                if message is not None:
                    first = first or one.number
                if test is None:
                    if message is not None:
                        wrong.append(message)
                        if subtests and self.item.config.getoption("maxfail") == 1:
                            break  # where there are subtests, pytest itself stops at the first that fails
                    continue
                with test(name_of(one.number, command_of(one.step))):
                    if message is not None:
                        raise StepsFailed(message)
        finally:
            if self.settings.mode != "verify":
                self.say(word, rows, first)
        if wrong:
            raise StepsFailed("\n\n".join(wrong))

    def message(self, played: Played) -> str | None:
        """Why a step does not hold; None when it does."""
        if not played.failures:
            return None
        total = len(self.cassette.steps)
        lines = [f"step {played.number} of {total}: {played.failures[0]}"]
        if played.result is not None:
            lines += [f"  and {failure}" for failure in played.failures[1:]]
            lines += _described(played)
        else:
            lines.append(f"  $ {command_of(played.step)}")
            if played.number < total:
                lines.append(f"  steps {played.number + 1} to {total} were not played")
        lines.append(f"  recorded in {self.shown}")
        return self.conceal("\n".join(lines))

    def say(self, word: str, rows: list[StepRow], first: int | None, why: str = "") -> None:
        note(
            self.item,
            ItemOutcome(
                self.item.nodeid,
                self.settings.mode,
                "passed" if first is None and not why else "failed",
                "not-written" if why else word if first is None else "failed",
                self.shown,
                steps=tuple(rows),
                first_divergence=first,
                why=why,
            ),
        )

    def leave(self, fresh: Cassette, recorder: Any) -> None:
        """For whoever judges whether it was as recorded, and runs it again when it was not."""
        leave(
            self.item,
            Take(
                file=self.shown,
                recorded=self.cassette,
                fresh=self.edited(fresh),  # as a recording would have it
                rules=self.session.rules_for(self.settings),
                nodeid=self.item.nodeid,
                runs=self.settings.runs,
                rekey=rekey_of(self.item.config, self.item.nodeid),
                refused=tuple(recorder.refused),
                stands_alone=True,
            ),
        )

    def edited(self, fresh: Cassette) -> Cassette:
        edit = edit_of(self.item.config, self.item.nodeid)
        return replace(fresh, steps=tuple(edit(step) for step in fresh.steps))

    def record(self, fresh: Cassette, played: list[Played]) -> None:
        """Write the new recording when all of it holds."""
        from veil.taping import encode, refreshed

        new = self.edited(fresh)
        if self.settings.mode == "refresh":
            new = refreshed(self.cassette, new, self.session.rules_for(self.settings))
        kept = [any(step is old for old in self.cassette.steps) for step in new.steps]
        rows = [
            StepRow(number, "kept" if same else "recorded", command_of(step))
            for number, (step, same) in enumerate(zip(new.steps, kept, strict=True), 1)
        ]
        messages = [self.message(one) for one in played]
        wrong = [message for message in messages if message is not None]
        whole = len(new.steps) == len(self.cassette.steps)
        if wrong and not (self.settings.keep_failed and whole):
            first = next(one.number for one in played if one.failures)
            rows = [
                StepRow(one.number, "live" if why is None else "failed", command_of(one.step), detail=_line(why))
                for one, why in zip(played, messages, strict=True)
            ]
            self.say("not-written", rows, first, why=f"step {first} does not hold")
            left = f"{self.shown} was left as it was"
            told = tell_steps(self.item, zip(rows, messages, strict=True))
            raise StepsFailed(f"step {first} does not hold: {left}" if told else "\n\n".join([*wrong, left]))
        write_whole(self.item.path, encode(new))
        self.say("refreshed" if self.settings.mode == "refresh" else "recorded", rows, None)
        told = tell_steps(self.item, zip(rows, messages, strict=True))
        if wrong and not told:
            raise StepsFailed("\n\n".join(wrong))


def _described(played: Played) -> list[str]:
    """The run as every failure of veil tells it."""
    from pytest_veil.expecting.fitting import fit
    from pytest_veil.expecting.message import described
    from pytest_veil.expecting.seams import failure_lines

    assert played.result is not None
    *parts, _ = described(played.result)  # the last names a record: there is none but the file
    return fit(parts, failure_lines())


def _line(message: str | None) -> str:
    return "" if message is None else message.split("\n", 1)[0]


def shown_failure(path: str, message: str) -> ReprExceptionInfo:
    """A failure in pytest's own form without a traceback, so that the summary has its first line."""
    entry = ReprEntryNative([f"{line}\n" for line in message.splitlines()])
    return ReprExceptionInfo(ReprTraceback([entry], None, "native"), ReprFileLocation(path, 1, _line(message)))
