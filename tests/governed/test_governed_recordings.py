"""Governed commands are recorded and replayed like every other run; the policy judges each time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bounds import allow

from veil.governed import Audit, Boundary, Denied, Policy, Rule
from veil.taping import DETERMINISTIC, Header, Player, Recorder, Stage, Tape, decode, encode

HEADER = Header("deterministic", 1)
POLICY = Policy("allowlist", (*allow("cat", "cp", "timeout"), Rule("no rm", "deny", prefix=("rm",))))


def stage(base: Path) -> Stage:
    made = Stage.make(base, DETERMINISTIC, os.environ)
    (made.root / "in").write_text("one\n")
    return made


def test_a_governed_run_is_recorded_and_replayed_without_a_process(tmp_path: Path) -> None:
    recorder = Recorder(stage(tmp_path / "one"))
    with Boundary(recorder.stage.root, POLICY, audit=Audit(), runner=recorder) as live:
        first = live.run(["timeout", "9", "cat", "in"])
        live.run(["cp", "in", "out"])
        assert (recorder.stage.root / "out").read_text() == "one\n"
        with pytest.raises(Denied):
            live.run(["rm", "in"])
    kept = encode(recorder.cassette(HEADER))
    assert kept.count(b"cat") >= 1

    player = Player(stage(tmp_path / "two"), Tape(decode(kept, "x"), "x", HEADER))
    with Boundary(player.stage.root, POLICY, audit=Audit(), runner=player) as again:
        second = again.run(["timeout", "9", "cat", "in"])
        assert (second.returncode, second.stdout) == (first.returncode, first.stdout) == (0, "one\n")
        again.run(["cp", "in", "out"])
        assert (player.stage.root / "out").read_text() == "one\n", "what it did to files is done again"
        with pytest.raises(Denied) as error:
            again.run(["rm", "in"])
        assert error.value.code == "policy_denied"
        end = [line for line in again.audit.lines() if line["kind"] == "end"]
        assert [line["confirmed"] for line in end] == [None, None], "nothing ran"
        assert [line["held"] for line in end] == [False, False]


def test_what_was_never_recorded_is_refused_and_has_no_effect(tmp_path: Path) -> None:
    recorder = Recorder(stage(tmp_path / "one"))
    kept = encode(recorder.cassette(HEADER))
    player = Player(stage(tmp_path / "two"), Tape(decode(kept, "x"), "x", HEADER))
    with Boundary(player.stage.root, POLICY, audit=Audit(), runner=player) as again:
        with pytest.raises(Exception, match="never recorded"):
            again.run(["cat", "in"])
        end = list(again.audit.lines())[-1]
        assert (end["kind"], end["ended"], end["effect"]) == ("end", "not_dispatched", "none")
