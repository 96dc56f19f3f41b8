"""A cassette that others wrote, or a workspace that is not as recorded: nothing outside the workspace is touched."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from veil.cassettes.steps import Cassette, TreeChange
from veil.model.errors import Refused
from veil.taping import DETERMINISTIC, Header, Player, Recorder, Stage, Tape, decode, encode

HEADER = Header("deterministic", DETERMINISTIC.version)


def recorded(tmp_path: Path, *commands: str) -> Cassette:
    recorder = Recorder(Stage.make(tmp_path / "live", DETERMINISTIC, os.environ))
    for command in commands:
        assert recorder.run(command, {}).ok
    return recorder.cassette(HEADER)


def test_a_file_behind_a_link_is_not_deleted_where_a_folder_was_recorded(tmp_path: Path) -> None:
    commands = "mkdir -m 755 a; echo 1 > a/x", "chmod 700 a && rm a/x"
    tape = Tape(decode(encode(recorded(tmp_path, *commands)), "x"), "x")
    player = Player(Stage.make(tmp_path / "replay", DETERMINISTIC, os.environ), tape, "apply")
    player.run(commands[0], {})
    inside, outside = player.stage.root / "a", tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("keep")
    (inside / "x").unlink()
    inside.rmdir()
    inside.symlink_to(outside)
    player.run(commands[1], {})
    assert (outside / "x").read_text() == "keep"
    assert inside.is_dir()
    assert not inside.is_symlink()
    assert os.listdir(inside) == []


def test_an_edited_cassette_writes_nothing_through_its_own_link(tmp_path: Path) -> None:
    command, outside = "mkdir a; echo evil > a/y", tmp_path / "outside"
    outside.mkdir()

    def edited(row: TreeChange) -> TreeChange:
        if row.path != "a":
            return row
        return replace(row, kind="symlink", after="symlink:777:0", mode=0, target=str(outside))

    cassette = recorded(tmp_path, command)
    step = cassette.steps[0]
    step = replace(step, changes=tuple(map(edited, step.changes or ())), quiet=tuple(map(edited, step.quiet)))
    assert "symlink" in {row.kind for row in step.delta}
    kept = encode(replace(cassette, steps=(step,)))
    player = Player(Stage.make(tmp_path / "replay", DETERMINISTIC, os.environ), Tape(decode(kept, "x"), "x"))
    with pytest.raises(Refused) as caught:
        player.run(command, {})
    assert caught.value.code == "not_applied"
    assert os.listdir(outside) == []
    assert os.listdir(player.stage.root) == []
