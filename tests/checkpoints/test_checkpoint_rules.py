"""What a checkpoint refuses and tells, and how checkpoints live together."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ckpt_trees import ROOT, snapshot

from veil.model.errors import BadInput, NotFound, Refused
from veil.model.outcome import Change
from veil.snapshots import Checkpoints


def test_order_within_one_second_and_before_restore_not_counted(kept: Checkpoints, ws: Path) -> None:
    ids = []
    for number in range(5):
        (ws / "f").write_text(str(number))
        ids.append(kept.take(ws).id)
    (ws / "f").write_text("late")
    for _ in range(2):
        assert kept.restore(ws).checkpoint.id == ids[-1]
        assert (ws / "f").read_text() == "4"
    assert [each.id for each in kept.list(ws) if each.label is None] == ids[::-1]
    done = kept.restore(ws, ids[1])
    assert (ws / "f").read_text() == "1"
    assert done.before_id == kept.list(ws)[0].id
    kept.restore(ws, "before-restore")
    assert (ws / "f").read_text() == "4"


def test_another_folder_only_when_told(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("of ws")
    there = kept.take(ws, "a")
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("mine")
    for name in ("a", there.id):
        with pytest.raises(Refused) as caught:
            kept.restore(other, name)
        assert (caught.value.code, caught.value.facts["origins"]) == ("other_origin", [str(ws)])
    assert (other / "mine").read_text() == "mine"
    kept.restore(other, "a", force_origin=True)
    assert sorted(os.listdir(other)) == ["f"]
    kept.restore(other, "before-restore")
    assert (other / "mine").read_text() == "mine"
    with pytest.raises(NotFound, match="nowhere"):
        kept.restore(ws, "nowhere")
    with pytest.raises(NotFound):
        kept.restore(tmp_path / "other2")


def test_a_link_to_the_folder_is_the_folder(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(ws)
    (ws / "f").write_text("old")
    kept.take(tmp_path / "alias", "a")
    (ws / "f").write_text("new")
    kept.restore(ws, "a")
    assert (ws / "f").read_text() == "old"


def test_diff_in_the_words_of_a_run(kept: Checkpoints, ws: Path) -> None:
    for name in ("same", "mod", "gone", "mode", "type"):
        (ws / name).write_text(name)
    (ws / "dir").mkdir()
    (ws / "dir" / "in").write_text("x")
    kept.take(ws, "a")
    os.utime(ws / "same", (5, 5))
    (ws / "mod").write_text("MOD")
    (ws / "gone").unlink()
    (ws / "mode").chmod(0o777)
    (ws / "type").unlink()
    (ws / "type").symlink_to("mod")
    shutil.rmtree(ws / "dir")
    (ws / "new").mkdir()
    before, stored = snapshot(ws), snapshot(ws.parent / "state")
    assert kept.diff(ws, "a") == [
        Change("dir", "deleted", "dir"),
        Change("dir/in", "deleted", "file"),
        Change("gone", "deleted", "file"),
        Change("mod", "modified", "file"),
        Change("mode", "mode", "file"),
        Change("new", "created", "dir"),
        Change("type", "modified", "symlink"),
    ]
    assert (snapshot(ws), snapshot(ws.parent / "state")) == (before, stored)


def test_a_file_that_does_not_hold_still_is_named(kept: Checkpoints, ws: Path) -> None:
    (ws / "log").write_bytes(b"x" * 200_000)
    stop = threading.Event()

    def scribble() -> None:
        with (ws / "log").open("r+b", buffering=0) as file:
            while not stop.is_set():
                file.seek(0)
                file.write(b"y" * 10)

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        for _ in range(5):
            try:
                made = kept.take(ws)
            except Refused as refusal:
                assert (refusal.code, refusal.facts["path"]) == ("changing", "log")  # noqa: PT017
                break
            assert made.files == 1  # a moment of rest was found
    finally:
        stop.set()
        writer.join()
    assert kept.take(ws, "quiet").files == 1


def test_bad_folders_are_bad_input(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    for directory in (tmp_path / "none", ws / "f", "", "a\0b", 7):
        with pytest.raises(BadInput, match=r"^dir: "):
            kept.take(directory)  # type: ignore[arg-type]
    assert kept.list(tmp_path / "none") == []


def test_many_at_once_keep_their_order_and_their_contents(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    code = (
        "import sys; from pathlib import Path; from veil.snapshots import Checkpoints\n"
        "for n in range(8): print(Checkpoints(Path(sys.argv[1])).take(sys.argv[2], sys.argv[3]).number)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    def other(name: str) -> str:
        argv = [sys.executable, "-c", code, str(tmp_path / "state"), str(ws), name]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=120).stdout

    with ThreadPoolExecutor(6) as pool:
        processes = [pool.submit(other, f"p{number}") for number in range(3)]
        threads = [pool.submit(kept.take, ws, f"t{number}") for number in range(12)]
        numbers = [int(word) for each in processes for word in each.result().split()]
        numbers += [each.result().number for each in threads]
    assert sorted(numbers) == list(range(1, 37))
    assert [each.number for each in kept.list(ws)] == list(range(36, 0, -1))


def test_two_restores_at_once_leave_one_whole_state(kept: Checkpoints, ws: Path) -> None:
    states = {}
    for name in "ab":
        for number in range(30):
            (ws / f"f{number}").write_text(name)
        kept.take(ws, name)
        states[name] = snapshot(ws)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(kept.restore, ws, name) for name in "abab"]:
            done.result()
    assert snapshot(ws) in states.values()


def test_somebody_at_work_for_too_long_is_said(ws: Path, tmp_path: Path) -> None:
    patient = Checkpoints(tmp_path / "state")
    patient.take(ws)
    lock = next((tmp_path / "state").rglob("lock"))
    code = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdin is not None
    try:
        holder.stdout.readline()
        with pytest.raises(Refused) as caught:
            Checkpoints(tmp_path / "state", wait_seconds=0.05).take(ws)
        assert caught.value.code == "busy"
        assert len(patient.list(ws)) == 1
    finally:
        holder.kill()
        holder.communicate()
    assert patient.take(ws).number == 2


@pytest.mark.parametrize("below", ["", "checkpoints", "elsewhere"])
def test_veils_own_state_is_never_checkpointed_nor_restored(kept: Checkpoints, ws: Path, below: str) -> None:
    kept.take(ws, "a")
    own = ws.parent / "state" / below
    own.mkdir(exist_ok=True)
    before = snapshot(ws.parent / "state")
    (ws / "way in").symlink_to(own)
    for directory in (own, ws / "way in"):
        for call in (kept.take, kept.restore):
            with pytest.raises(Refused) as caught:
                call(directory, "a")
            assert caught.value.code == "own_state"
    assert snapshot(ws.parent / "state") == before


def test_a_long_label_does_not_fill_the_message(kept: Checkpoints, ws: Path) -> None:
    for number in range(20):
        kept.take(ws, f"{number:03}" + "x" * 997)
    with pytest.raises(NotFound) as caught:
        kept.restore(ws, "y" * 1000)
    assert len(str(caught.value)) < 3_000
    assert "019xxx" in str(caught.value)


def test_a_label_of_control_characters_stays_in_its_line_of_the_message(kept: Checkpoints, ws: Path) -> None:
    kept.take(ws, "red \x1b[31m and\nmore")
    with pytest.raises(NotFound) as missing:
        kept.restore(ws, "nothing")
    assert str(missing.value).isprintable()
    assert r"'red \x1b[31m and\nmore'" in str(missing.value)


UNWRITABLE = """
import sys
from pathlib import Path
from veil.host import prctl
from veil.model.errors import Refused
from veil.snapshots import Checkpoints
prctl.drop_capabilities()
kept, folder = Checkpoints(Path(sys.argv[1])), sys.argv[2]
kept.take(folder, "label")
print(sum(kept.restore(folder, "label").counts.values()), [one.label for one in kept.list(folder)])
Path(folder, "mine", "new").write_text("x")
try:
    kept.restore(folder, "label")
except Refused as refusal:
    print(refusal.code)
"""


@pytest.mark.linux
@pytest.mark.needs("root")
def test_what_is_as_it_was_needs_nothing_to_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "another user's"
    (folder / "mine").mkdir(parents=True)
    (folder / "f").write_text("f")
    os.chown(folder, 12345, 12345)
    argv = [sys.executable, "-c", UNWRITABLE, str(tmp_path / "state"), str(folder)]
    done = subprocess.run(
        argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["0 ['before-restore', 'label']", "not_restored"], done.stderr
    assert (folder / "mine" / "new").exists()
