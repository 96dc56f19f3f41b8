"""What is closed to us when a restore comes: it is never touched, all the rest comes back, and nothing stays opened."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ckpt_trees import ROOT, powerless
from killing import REFUSED, Killer, started

sys.path.append(str(ROOT / "tests" / "host"))
from confinements import PLAIN, Place, as_user, place_for

PROLOGUE = """
import json, os, sys
from pathlib import Path
from veil.model.errors import VeilError
from veil.snapshots import Checkpoints
kept, ws = Checkpoints(Path(sys.argv[1])), Path(sys.argv[2])
"""
RESTORE = """
try:
    done = kept.restore(ws, sys.argv[3])
    print("done", dict(done.left))
except VeilError as error:
    print(error.code, json.dumps(error.facts["paths"]))
"""


@pytest.fixture
def place() -> Iterator[Place]:
    yield from place_for(PLAIN)


@pytest.fixture
def killer() -> Iterator[Killer]:
    with started() as process:
        yield process


def plain(place: Place, code: str, *arguments: str) -> str:
    """What ``code`` prints when somebody without powers runs it."""
    argv = [place.python, "-B", "-c", PROLOGUE + code, str(place.temp), str(place.cwd), *arguments]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(place.base / "code")}
    done = subprocess.run(
        argv, cwd=place.base, env=env, capture_output=True, text=True, timeout=120, **as_user(place.user)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.linux
@pytest.mark.needs("root")
def test_what_another_user_closed_stays_and_the_rest_comes_back(place: Place) -> None:
    ws = place.cwd
    plain(
        place,
        """
(ws / "kept").write_text("old"); (ws / "ours").write_text("ours"); (ws / "d").mkdir(); (ws / "d/f").write_text("f")
kept.take(ws, "a")
(ws / "kept").write_text("new"); (ws / "d/f").unlink(); (ws / "late").mkdir(); (ws / "late/x").write_text("x")
""",
    )
    # by then root was here
    for name in ("secret", "late/secret", "ours"):
        (ws / name).write_text(f"precious {name}")
        os.chown(ws / name, 0, 0)
        (ws / name).chmod(0)
    (ws / "theirs").mkdir()
    (ws / "theirs" / "deep").write_text("precious deep")
    (ws / "theirs").chmod(0)
    told = plain(place, RESTORE, "a")
    code, _, paths = told.partition(" ")
    assert code == "not_restored"
    assert sorted(json.loads(paths)) == ["late/secret", "ours", "secret", "theirs"]
    assert paths.count("make it readable or take it away, and restore again") == 4
    assert ((ws / "kept").read_text(), (ws / "d" / "f").read_text()) == ("old", "f")
    assert sorted(os.listdir(ws / "late")) == ["secret"]
    for name in ("secret", "late/secret", "ours"):
        assert (ws / name).read_text() == f"precious {name}"
        assert stat.S_IMODE((ws / name).stat().st_mode) == 0
    assert (ws / "theirs" / "deep").read_text() == "precious deep"

    # what was displaced comes back, and what is closed stays where it is
    undone = plain(place, RESTORE, "before-restore")
    assert undone == "done {}\n"
    assert ((ws / "kept").read_text(), (ws / "late" / "x").read_text()) == ("new", "x")
    assert (ws / "secret").read_text() == "precious secret"

    # the way out that the message names
    shutil.rmtree(ws / "theirs")
    for name in ("secret", "late/secret", "ours"):
        os.chown(ws / name, place.user, place.user)
    assert plain(place, RESTORE, "a") == "done {}\n"
    assert sorted(os.listdir(ws)) == ["d", "kept", "ours"]
    assert (ws / "ours").read_text() == "ours"
    assert plain(place, RESTORE, "before-restore") == "done {}\n"
    for name in ("secret", "late/secret", "ours"):
        assert (ws / name).read_text() == f"precious {name}"


def modes(ws: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((ws / name).stat().st_mode) for name in (".", "d", "d/e", "d/f")}


@pytest.mark.needs("root")
def test_what_a_killed_restore_opened_for_its_look_is_closed_by_the_next_call(tmp_path: Path, killer: Killer) -> None:
    """Killed at every single system call of the look in turn (each of those that Python tells its audit hooks of)."""
    ws, state = tmp_path / "ws", tmp_path / "state"
    (ws / "d" / "e").mkdir(parents=True)
    (ws / "d" / "f").write_text("f")
    powerless("kept = Checkpoints(__import__('pathlib').Path(sys.argv[1])); kept.take(sys.argv[2], 'a')", state, ws)
    (ws / "late").write_text("late")
    (ws / "d" / "f").chmod(0)
    closed = {".": 0o755, "d": 0, "d/e": 0o500, "d/f": 0}
    (ws / "d" / "e").chmod(0o500)
    (ws / "d").chmod(0)
    opened = 0
    for moment in range(1, 400):
        if killer.done(state, ws, "restore", "a", moment=moment, powers=False) or not (ws / "late").exists():
            break
        opened += modes(ws) != closed
        # the next call that is no restore finds the folders as they were
        assert killer.ends(state, ws, "take", "b", powers=False) == REFUSED
        assert modes(ws) == closed
    else:
        pytest.fail("the restore never came to its end")
    assert opened > 3
    powerless("Checkpoints(__import__('pathlib').Path(sys.argv[1])).restore(sys.argv[2], 'before-restore')", state, ws)
    assert modes(ws) == closed
