"""Commands that were under way together: whose a change is does not depend on which of them ended first."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from veil.model.outcome import Change
from veil.taping import DETERMINISTIC, Cassette, Header, Player, Recorder, Stage, Tape, decode, encode
from veil.taping.ledger import Ledger
from veil.taping.recorder import StageRunner

HEADER = Header("deterministic", DETERMINISTIC.version)


class Tree:
    """A workspace and its ledger; runs are what the test does in between."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage.make(folder, DETERMINISTIC, os.environ)
        self.hidden = self.stage.hidden("")
        self.ledger = Ledger()
        self.steps: dict[int, dict[str, tuple[str, str]]] = {}

    def begin(self, place: int) -> None:
        self.ledger.begin(place, self.stage.contents(self.hidden), self.hidden, "", background=False)

    def end(self, place: int, *told: str) -> None:
        booked = self.ledger.end(place, tuple(Change(path, "created") for path in told))
        rows = (*(booked.changes or ()), *booked.quiet)
        self.steps[place] = {row.path: (row.before, row.after) for row in rows if row.before != row.after}
        for other, path in booked.given:
            del self.steps[other][path]

    def write(self, path: str) -> None:
        (self.stage.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.stage.root / path).write_text(f"{path}\n")

    def paths(self) -> dict[int, list[str]]:
        return {place: sorted(rows) for place, rows in sorted(self.steps.items())}


@pytest.mark.parametrize("ends", list(itertools.permutations((1, 2, 3))))
@pytest.mark.parametrize("begins", [(1, 2, 3), (3, 1, 2)])
def test_each_has_what_it_told_of(tmp_path: Path, begins: tuple[int, ...], ends: tuple[int, ...]) -> None:
    tree = Tree(tmp_path)
    for place in begins:
        tree.begin(place)
    for place in (1, 2, 3):
        tree.write(f"new/f{place}")
    for place in ends:
        tree.end(place, f"new/f{place}")
    # the folder belongs to the one that a replay asks for first
    assert tree.paths() == {1: ["new", "new/f1"], 2: ["new/f2"], 3: ["new/f3"]}


def test_what_nobody_tells_of_is_with_the_first_that_ends(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.begin(1)
    tree.begin(2)
    tree.write("ignored.log")
    tree.end(2)
    tree.end(1)
    assert tree.paths() == {1: [], 2: ["ignored.log"]}


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("late", [False, True])
def test_a_file_that_comes_and_goes_is_nobodys(tmp_path: Path, order: tuple[int, int], late: bool) -> None:
    """Run 1 has a temporary file while run 2 begins, or ends."""
    tree = Tree(tmp_path)
    tree.begin(1)
    if not late:
        tree.begin(2)
    tree.write("temporary")
    if late:
        tree.begin(2)
    if order == (2, 1) and not late:
        tree.end(2)
        (tree.stage.root / "temporary").unlink()
        tree.end(1)
    else:
        (tree.stage.root / "temporary").unlink()
        for place in order:
            tree.end(place)
    assert tree.paths() == {1: [], 2: []}


@pytest.mark.parametrize("order", list(itertools.permutations((1, 2, 3, 4))))
def test_a_file_that_came_and_went_is_nobodys_whoever_saw_it(tmp_path: Path, order: tuple[int, ...]) -> None:
    """The first to end sees it, and then all the others see that it is gone."""
    tree = Tree(tmp_path)
    for place in (1, 2, 3, 4):
        tree.begin(place)
    tree.write("temporary")
    tree.end(order[0])
    (tree.stage.root / "temporary").unlink()
    for place in order[1:]:
        tree.end(place)
    assert tree.paths() == {1: [], 2: [], 3: [], 4: []}


def test_a_folder_that_one_found_when_it_began_is_no_passing_state(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.begin(3)
    tree.write("new/f3")
    tree.begin(4)
    tree.begin(1)
    tree.write("new/f1")
    tree.end(3, "new/f3")
    tree.end(1, "new/f1")
    tree.end(4)
    assert tree.paths() == {1: ["new", "new/f1"], 3: ["new/f3"], 4: []}


def test_a_file_that_one_wrote_and_another_wrote_again(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.begin(1)
    tree.write("f")
    tree.end(1, "f")
    tree.begin(2)
    tree.begin(3)
    (tree.stage.root / "f").write_text("again\n")
    tree.end(2)
    tree.end(3, "f")
    assert tree.paths() == {1: ["f"], 2: [], 3: ["f"]}
    assert tree.steps[3]["f"][0] == tree.steps[1]["f"][1]


def test_what_the_first_writes_after_the_others_is_left_by_the_last(tmp_path: Path) -> None:
    """As a replay, which does all of the first before the second, has to leave what was left when it was recorded."""
    tree = Tree(tmp_path)
    for place in (1, 2, 3):
        tree.begin(place)
    log = tree.stage.root / "log"
    log.write_text("2\n")
    tree.end(2, "log")
    log.write_text("2\n3\n")
    tree.end(3, "log")
    log.write_text("2\n3\n1\n")
    booked = tree.ledger.end(1, (Change("log", "modified"),))
    ((place, row),) = booked.amended
    assert (place, row.path, row.content) == (3, "log", b"2\n3\n1\n")
    assert row.before == tree.steps[2]["log"][1]
    assert all(row.before == row.after for row in (*(booked.changes or ()), *booked.quiet))


async def _in_turns(runner: StageRunner, order: tuple[int, ...], end: str) -> None:
    """Asked in the order of their numbers, each writes when the one before it in ``order`` has; all, or only the last
    in that order, ``end`` so."""
    before = dict(zip(order[1:], order, strict=False))

    def one(number: int) -> str:
        wait = f"until test -e done{before[number]}; do sleep 0.01; done; " if number in before else ""
        return f"{wait}echo {number} >> log; touch done{number}{end if number == order[-1] else ''}"

    await asyncio.gather(*(runner.arun(one(number), {"effects": True}) for number in sorted(order)))


@pytest.mark.parametrize("end", ["", "; rm log", "; chmod 600 log"])
@pytest.mark.parametrize("order", list(itertools.permutations((1, 2, 3))))
def test_what_several_write_to_is_whole_after_a_replay(tmp_path: Path, order: tuple[int, ...], end: str) -> None:
    recorder = Recorder(Stage.make(tmp_path / "live", DETERMINISTIC, os.environ))
    asyncio.run(_in_turns(recorder, order, end))
    tape = recorder.cassette(HEADER)
    player = Player(Stage.make(tmp_path / "replay", DETERMINISTIC, os.environ), Tape(decode(encode(tape), "x"), "x"))
    asyncio.run(_in_turns(player, order, end))
    assert _files(player.stage.root) == _files(recorder.stage.root)
    if not end:
        assert _files(recorder.stage.root)["log"] == "".join(f"{number}\n" for number in order)


COMMAND = "mkdir -p d/e; echo {0} > d/e/f{0}; echo x >> d/e/g{0}; mv d/e/g{0} h{0}"


async def _together(runner: StageRunner) -> list[Any]:
    return list(await asyncio.gather(*(runner.arun(COMMAND.format(number), {"effects": True}) for number in range(4))))


def test_commands_of_one_gather_are_recorded_the_same_and_replay(tmp_path: Path) -> None:
    tapes = []
    for number in range(4):
        recorder = Recorder(Stage.make(tmp_path / str(number), DETERMINISTIC, os.environ))
        results = asyncio.run(_together(recorder))
        tapes.append(recorder.cassette(HEADER))
        player = Player(Stage.make(tmp_path / f"replay{number}", DETERMINISTIC, os.environ), Tape(tapes[-1], "x"))
        played = asyncio.run(_together(player))
        assert [one.files_changed for one in played] == [one.files_changed for one in results]
        assert player.used == [1, 2, 3, 4]
        assert _files(player.stage.root) == _files(recorder.stage.root)
    assert tapes[1:] == tapes[:-1]
    assert isinstance(tapes[0], Cassette)


def _files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_file_that_is_written_to_while_it_is_recorded_is_of_one_piece(tmp_path: Path) -> None:
    """What a step has of a file is read later than it is looked at: content and id belong together all the same."""
    recorder = Recorder(Stage.make(tmp_path / "live", DETERMINISTIC, os.environ))
    busy = "i=0; while :; do echo $((i+=1)) >> log; echo $i > new$((i%7)); rm -f new$(((i+3)%7)); done"
    writer = recorder.start(busy, {})
    try:
        for number in range(25):
            recorder.run(f"echo {number} > f{number}", {"effects": True})
    finally:
        writer.kill()
    tape = recorder.cassette(HEADER)
    assert decode(encode(tape), "x") == tape  # refused where content and id are not of each other
