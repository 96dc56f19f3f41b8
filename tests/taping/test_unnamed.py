"""Secrets in the names of files never reach a recording."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import veil
from veil.taping import DETERMINISTIC, Header, Player, Recorder, Stage, Tape, decode, encode

SECRET = "s3cr3t-Value-0815-xyz"


def stage(base: Path) -> Stage:
    return Stage.make(base, DETERMINISTIC, os.environ, secrets=[SECRET])


def test_a_file_named_by_a_secret_is_recorded_and_replayed_without_it(tmp_path: Path) -> None:
    recorder = Recorder(stage(tmp_path / "one"))
    recorder.run(f"echo x > {SECRET}.txt", {"expect": {"file_exists": f"{SECRET}.txt"}})
    recorder.run(f"mv {SECRET}.txt plain; ls", {})
    kept = encode(recorder.cassette(Header("deterministic", 1)))
    assert SECRET.encode() not in kept
    player = Player(stage(tmp_path / "one"), Tape(decode(kept, "x"), "x", Header("deterministic", 1)))
    assert player.run(f"echo x > {SECRET}.txt", {}).created == ["[redacted].txt"]
    result = player.run(f"mv {SECRET}.txt plain; ls", {})
    assert result.stdout == "plain\n"
    assert (player.stage.root / "plain").read_bytes() == b"x\n"


def test_two_files_that_only_secrets_tell_apart_are_refused(tmp_path: Path) -> None:
    other = SECRET.replace("0815", "4711")
    both = Stage.make(tmp_path / "one", DETERMINISTIC, os.environ, secrets=[SECRET, other])
    with pytest.raises(veil.Refused) as caught:
        Recorder(both).run(f"touch {SECRET} {other}", {})
    assert caught.value.code == "secret_in_names"
