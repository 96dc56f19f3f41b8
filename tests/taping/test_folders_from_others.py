"""What was something else becomes a folder with something in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from veil.taping import DETERMINISTIC, Header, Player, Recorder, Stage, Tape, decode, encode

HEADER = Header("deterministic", DETERMINISTIC.version)


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ("echo 1 > y", "rm y; mkdir -p y/sub; echo 2 > y/sub/z"),
        ("mkdir -p d/sub; echo 1 > d/sub/f; ln -s d l", "rm l; cp -r d l; echo 2 >> l/sub/f"),
        ("mkdir d; echo 1 > d/f; ln -s d l", "echo 2 >> l/f; cat l/f"),
        ("mkdir -p y; echo 1 > y/z", "rm -r y; echo 2 > y"),
    ],
)
def test_it_replays_to_the_same_tree(tmp_path: Path, before: str, command: str) -> None:
    recorder = Recorder(Stage.make(tmp_path / "live", DETERMINISTIC, os.environ))
    for text in (before, command, "cat */* || true"):
        assert recorder.run(text, {}).ok
    tape = Tape(decode(encode(recorder.cassette(HEADER)), "x"), "x")
    player = Player(Stage.make(tmp_path / "replay", DETERMINISTIC, os.environ), tape)
    for text in (before, command, "cat */* || true"):
        player.run(text, {})
    assert tape.unused == ()
    assert _tree(player.stage.root) == _tree(recorder.stage.root)


def _tree(root: Path) -> dict[str, object]:
    return {
        str(path.relative_to(root)): os.readlink(path) if path.is_symlink() else path.is_dir() or path.read_bytes()
        for path in sorted(root.rglob("*"))
    }
