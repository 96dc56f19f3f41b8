"""One test's world: its workspace, what runs its commands there, and what is to become of them at its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_veil.cassettes import read_cassette
from pytest_veil.config import Settings

if TYPE_CHECKING:
    from veil import Handle
    from veil.taping import Cassette, Header, Key, Player, Recorder, Slot, Stage, StageRunner


@dataclass
class Scene:
    """The world of one test, or of a runner that several tests share.

    Attributes:
        nodeid: of the test, or of the file (or folder) when it is shared; scope says which.
        settings: those of this test. stage: where it runs.
        path, shown: the cassette, and its name in messages (relative to the root folder of the run). None when off.
        old: what the cassette holds; None when there is no such file or nobody looked.
        runner: what runs the commands.
        owner: file or folder of the tests that share it, None: all tests.
        elsewhere: processes besides this one answer from the same recording, so none knows what is unused.
        written: digest of what this process recorded (also when another has written over it since, or it was no whole).
        ran: commands, in order. misses: what a replay could not answer. handles: runs in the background.
    """

    nodeid: str
    scope: str
    settings: Settings
    slot: Slot | None
    stage: Stage
    path: Path | None
    shown: str
    old: Cassette | None
    runner: StageRunner
    ran: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    handles: list[Handle] = field(default_factory=list)
    closed: bool = False
    owner: Path | None = None
    elsewhere: bool = False
    written: str | None = None

    @property
    def recorder(self) -> Recorder | None:
        """The runner, when it records."""
        from veil.taping import Recorder

        return self.runner if isinstance(self.runner, Recorder) else None

    @property
    def player(self) -> Player | None:
        """The runner, when it replays."""
        from veil.taping import Player

        return self.runner if isinstance(self.runner, Player) else None

    @property
    def header(self) -> Header:
        """What a recording made now carries."""
        return header_of(self.stage)

    def require_open(self) -> None:
        """Raises when the test is over: a run now would be in no recording, and nobody would end it."""
        if self.closed:
            pytest.fail(f"the runner of {self.nodeid} was used after its end", pytrace=True)

    def close(self) -> None:
        """End everything that still runs. What was recorded is whole then. Idempotent."""
        if self.closed:
            return
        self.closed = True
        recorder = self.recorder
        if recorder is not None:
            recorder.finish()
        for handle in self.handles:
            handle.kill()

    def conceal(self) -> Callable[[str], str]:
        """Takes secrets out of a text for people; folders stay as they are."""
        from veil.taping import Scrubbed

        known = Scrubbed((), self.stage.hidden("").secrets)
        return known.hide_text


def header_of(stage: Stage) -> Header:
    from veil.taping import Header

    return Header(stage.profile.name, stage.profile.version)


@dataclass(frozen=True)
class Opening:
    """What a scene is made from.

    Attributes:
        base: a folder that the scene may empty. slot: what base belongs to, when it has to be given back.
        records: state directory for the records of its runs.
        rekey: changes what identifies a step (hook ``pytest_veil_key``).
        secrets: values to keep out.
    """

    nodeid: str
    scope: str
    settings: Settings
    base: Path
    records: Path
    path: Path | None
    shown: str
    secrets: Sequence[str]
    rekey: Callable[[Key], Key] | None = None
    slot: Slot | None = None

    def open(self) -> Scene:
        """Make it.

        Raises:
            BadInput: a secret too short or too common to be replaced.
            pytest.UsageError: the name of the test holds a secret.
            CassetteDamaged, CassetteVersion: there is a recording that cannot be read.
        """
        from veil.taping import PROFILES, Recorder, Stage, StageRunner

        settings = self.settings
        off = settings.mode == "off"
        profile = PROFILES[settings.env or ("inherit" if off else "deterministic")]
        stage = Stage.make(self.base, profile, os.environ, secrets=self.secrets, passed=settings.pass_env)
        stage.settle()
        # also: a secret that cannot be replaced is told before anything runs
        if not off and stage.hidden("").name(self.nodeid) != self.nodeid:
            raise pytest.UsageError(
                "the name of this test holds a secret, and so would its recording and every report: "
                "give the parameter an id (pytest.param(..., id=...))"
            )
        old = None
        if self.path is not None and settings.mode in ("replay", "record-missing", "refresh", "verify"):
            old = read_cassette(self.path, self.shown)
        runner: StageRunner
        if off or settings.mode == "live":
            runner = StageRunner(stage, self.records)
        elif settings.mode == "replay" or (settings.mode == "record-missing" and old is not None):
            runner = self._player(stage, old)
        else:
            runner = Recorder(stage, self.records)
        return Scene(self.nodeid, self.scope, settings, self.slot, stage, self.path, self.shown, old, runner)

    def _player(self, stage: Stage, old: Cassette | None) -> Player:
        from veil.taping import Player, Tape

        tape = Tape(old, self.shown, header_of(stage), self.rekey)
        return Player(stage, tape, self.settings.on_drift, self.records)
