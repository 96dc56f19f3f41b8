"""A preview in a recording: what it told is replayed, and as little happens to the workspace as at its time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import veil
from pytest_veil import expect
from veil.taping import DETERMINISTIC, Header, Player, Recorder, Stage, Tape, decode, encode


def test_a_preview_is_one_in_a_replay_too(tmp_path: Path) -> None:
    recorder = Recorder(Stage.make(tmp_path / "one", DETERMINISTIC, os.environ))
    options = {"preview": True, "expect": {"file_exists": "b", "file_absent": "a"}}
    commands = ("echo a > a", "mv a c; echo b > b; mkdir d; ln -s b l; cat c", "ls")
    recorded = [recorder.run(commands[0], {}), recorder.run(commands[1], options), recorder.run(commands[2], {})]
    kept = encode(recorder.cassette(Header("deterministic", 1)))
    player = Player(Stage.make(tmp_path / "two", DETERMINISTIC, os.environ), Tape(decode(kept, "x"), "x"))
    replayed = [player.run(commands[0], {}), player.run(commands[1], options), player.run(commands[2], {})]
    for result in (recorded[1], replayed[1]):
        assert result.previewed
        assert result.assert_ok is True
        assert result.stdout == "a\n"
        assert [(change.path, change.change, change.kind) for change in result.files_changed] == [
            ("b", "created", "file"),
            ("c", "renamed", "file"),
            ("d", "created", "dir"),
            ("l", "created", "symlink"),
        ]
        with pytest.raises(veil.Refused, match="preview"):
            expect(result).file("b").exists()
    assert recorded[2].stdout == replayed[2].stdout == "a\n"
    assert os.listdir(player.stage.root) == ["a"]
