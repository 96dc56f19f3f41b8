"""Commands under way beside commands that come and go meanwhile: what each is booked for, a replay can do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from veil.host.contents import Contents
from veil.model.errors import Refused
from veil.model.outcome import Change
from veil.taping import DETERMINISTIC, Header, Player, Recorder, Stage, Tape, decode, encode
from veil.taping.ledger import Ledger
from veil.taping.recorder import StageRunner

HEADER = Header("deterministic", DETERMINISTIC.version)
EFFECTS = {"effects": True}
Scene = Callable[[StageRunner, Path], Coroutine[Any, Any, None]]


def wait(signs: Path, name: str) -> str:
    return f"until test -e {signs}/{name}; do sleep 0.01; done; "


async def there(runner: StageRunner, sign: Path) -> None:
    """Nothing runs in a replay, so nothing is waited for."""
    while isinstance(runner, Recorder) and not sign.exists():
        await asyncio.sleep(0.01)
    await asyncio.sleep(0)


async def beside(runner: StageRunner, signs: Path) -> asyncio.Task[object]:
    """A command that is under way until the sign ``end``."""
    command = f"touch {signs}/begun; {wait(signs, 'end')}touch beside"
    task = asyncio.create_task(runner.arun(command, EFFECTS))
    await asyncio.sleep(0)
    await there(runner, signs / "begun")
    return task


async def made_and_removed(runner: StageRunner, signs: Path) -> None:
    task = await beside(runner, signs)
    await runner.arun("echo hi > f", EFFECTS)
    assert (runner.stage.root / "f").read_text() == "hi\n"
    last = asyncio.create_task(
        runner.arun(f"rm f; touch {signs}/end; {wait(signs, 'over')}true", EFFECTS),
    )
    await asyncio.sleep(0)
    await task
    (signs / "over").touch()
    await last


async def made_and_removed_where_git_looks_away(runner: StageRunner, signs: Path) -> None:
    await runner.arun("git init -q .; echo out > .gitignore", EFFECTS)
    task = await beside(runner, signs)
    await runner.arun("echo 1 > out", EFFECTS)
    assert (runner.stage.root / "out").read_text() == "1\n"
    await runner.arun("rm out", EFFECTS)
    assert not (runner.stage.root / "out").exists()
    (signs / "end").touch()
    await task


async def written_again_in_the_background(runner: StageRunner, signs: Path) -> None:
    task = await beside(runner, signs)
    await runner.arun("echo 1 > f", EFFECTS)
    handle = runner.start(f"echo 2 > f; touch {signs}/end; sleep 60", {})
    await task
    handle.kill()


async def a_link_beside_the_background(runner: StageRunner, signs: Path) -> None:
    await runner.arun("ln -s x link; mv link renamed; ln -s x link", EFFECTS)
    handle = runner.start("sleep 60", {})
    task = await beside(runner, signs)
    await runner.arun("ln -sfn y link; mv renamed again", EFFECTS)
    assert os.readlink(runner.stage.root / "link") == "y"
    assert os.readlink(runner.stage.root / "again") == "x"
    (signs / "end").touch()
    await task
    handle.kill()


def tree(root: Path) -> dict[str, str]:
    found = {}
    for path in sorted(root.rglob("*")):
        if ".git" not in path.parts:
            found[str(path.relative_to(root))] = os.readlink(path) if path.is_symlink() else path.read_text()
    return found


@pytest.mark.parametrize(
    "scene",
    [
        made_and_removed,
        pytest.param(made_and_removed_where_git_looks_away, marks=pytest.mark.needs("git")),
        written_again_in_the_background,
        a_link_beside_the_background,
    ],
)
def test_a_replay_leaves_what_was_left(tmp_path: Path, scene: Scene) -> None:
    signs = tmp_path / "signs"
    signs.mkdir()
    recorder = Recorder(Stage.make(tmp_path / "live", DETERMINISTIC, os.environ))
    asyncio.run(scene(recorder, signs))
    tape = recorder.cassette(HEADER)
    player = Player(Stage.make(tmp_path / "replay", DETERMINISTIC, os.environ), Tape(decode(encode(tape), "x"), "x"))
    asyncio.run(scene(player, signs))
    assert tree(player.stage.root) == tree(recorder.stage.root)


def test_the_tag_of_another_run_is_no_part_of_a_recording(tmp_path: Path) -> None:
    async def scene(recorder: Recorder) -> None:
        short = "echo $VEIL_RUN > tag; touch x"
        await asyncio.gather(recorder.arun(short, EFFECTS), recorder.arun("until test -e x; do :; done", EFFECTS))

    recorder = Recorder(Stage.make(tmp_path, DETERMINISTIC, os.environ))
    asyncio.run(scene(recorder))
    tag = (recorder.stage.root / "tag").read_bytes().strip()
    assert len(tag) == 16
    assert tag not in encode(recorder.cassette(HEADER))


def test_a_run_that_is_refused_last_takes_nothing_with_it(tmp_path: Path) -> None:
    stage = Stage.make(tmp_path, DETERMINISTIC, os.environ)
    hidden, ledger, log = stage.hidden(), Ledger(), stage.root / "log"
    for place in (1, 2, 3):
        ledger.begin(place, stage.contents(hidden), hidden, "", background=False)
    log.write_text("2\n")
    ledger.end(2, (Change("log", "created"),))
    log.write_text("2\n1\n")
    ledger.end(1, (Change("log", "created"),))
    ((place, row),) = ledger.drop(3)
    assert (place, row.path, row.content) == (2, "log", b"2\n1\n")
    assert ledger.idle


def test_a_workspace_that_cannot_be_looked_at_is_refused_by_name(tmp_path: Path) -> None:
    stage = Stage.make(tmp_path, DETERMINISTIC, os.environ)
    hidden, ledger = stage.hidden(), Ledger()
    nowhere = Contents(f"{tmp_path}/{'x' * 300}", lambda *seen: str(seen))
    with pytest.raises(Refused, match="File name too long") as refusal:
        ledger.begin(1, nowhere, hidden, "", background=False)
    assert refusal.value.code == "not_recorded"
    assert ledger.idle
