"""``veil.checkpoint``, ``restore``, ``checkpoints``, ``diff``, ``drop`` and their commands."""

# over 300 lines because: it is one subject: the same promises, asked of functions, threads and commands

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import ROOT, veil_json
from command_line import veil as run_veil

import veil

#: Far more than anything here takes: it is there to tell a hang from a slow machine.
LONG = 60.0


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, outside of which the state folder lies."""
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "f").write_text("first\n")
    monkeypatch.chdir(folder)
    return folder


@contextmanager
def at_work(state: Path) -> Iterator[None]:
    """Another process is at work on the checkpoints of every folder: it holds their locks."""
    with contextmanager(_held)(list((state / "checkpoints").glob("*/lock"))):
        yield


def _held(paths: list[Path]) -> Iterator[None]:
    assert paths
    handles = [os.open(path, os.O_RDWR) for path in paths]
    for handle in handles:
        fcntl.flock(handle, fcntl.LOCK_EX)
    yield
    for handle in handles:
        os.close(handle)


# -- the functions


def test_there_and_back_again(ws: Path) -> None:
    made = veil.checkpoint("before the upgrade")
    assert isinstance(made, veil.Checkpoint)
    assert (made.label, made.files, made.bytes) == ("before the upgrade", 1, 6)
    (ws / "f").write_text("second\n")
    (ws / "late").mkdir()
    (ws / "late" / "g").write_text("g")
    assert [(c.path, c.change, c.kind) for c in veil.diff("before the upgrade")] == [
        ("f", "modified", "file"),
        ("late", "created", "dir"),
        ("late/g", "created", "file"),
    ]
    done = veil.restore("before the upgrade")
    assert isinstance(done, veil.Restored)
    assert (done.checkpoint.id, dict(done.left)) == (made.id, {})
    assert (done.counts["replaced"], done.counts["deleted"]) == (1, 2)
    assert [path.name for path in ws.iterdir()] == ["f"]
    assert (ws / "f").read_text() == "first\n"
    assert veil.diff("before the upgrade") == []
    # the displaced state is there
    veil.restore("before-restore")
    assert (ws / "late" / "g").read_text() == "g"


def test_the_newest_is_meant_when_none_is_named(ws: Path) -> None:
    first = veil.checkpoint()
    (ws / "f").write_text("second\n")
    second = veil.checkpoint()
    (ws / "f").write_text("third\n")
    assert [each.id for each in veil.checkpoints()] == [second.id, first.id]
    assert (veil.restore().checkpoint.id, (ws / "f").read_text()) == (second.id, "second\n")
    assert veil.diff() == []
    assert veil.drop(second.id) == 1
    assert (veil.restore().checkpoint.id, (ws / "f").read_text()) == (first.id, "first\n")


def test_answers_are_frozen_and_ready_for_json(ws: Path) -> None:
    made = veil.checkpoint("a")
    assert made.to_dict() == {"id": made.id, "label": "a", "created": made.created, "files": 1, "bytes": 6}
    assert veil.checkpoint().to_dict().keys() == {"id", "created", "files", "bytes"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.label = "b"  # type: ignore[misc]
    (ws / "f").unlink()
    done = veil.restore("a")
    before = veil.checkpoints()[0]
    assert done.to_dict() == {
        "id": made.id,
        "label": "a",
        "created": 1,
        "before": "before-restore",
        "before_id": before.id,
    }


def test_each_folder_has_its_own(ws: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    veil.checkpoint("a")
    veil.checkpoint("a", other)
    veil.checkpoint("only here")
    assert [each.label for each in veil.checkpoints(other)] == ["a"]
    assert [each.label for each in veil.checkpoints()] == ["only here", "a"]
    with pytest.raises(veil.Refused) as caught:
        veil.restore("only here", other)
    assert (caught.value.code, caught.value.facts["origins"]) == ("other_origin", [str(ws)])
    assert list(other.iterdir()) == []
    veil.restore("only here", other, force_origin=True)
    assert (other / "f").read_text() == "first\n"
    assert veil.checkpoints("../other") == veil.checkpoints(other)


def test_ckpt_09_odd_labels_are_labels_or_errors_and_never_paths(ws: Path, tmp_path: Path, own_state: Path) -> None:
    state = {path.name for path in tmp_path.iterdir()} | {own_state.name}
    labels = ["..", "../a", "/", "a/b", "A", "a", "-x", "\n", "\udcff", "it's \x1b[31m", "é" * 1000]
    for number, label in enumerate(labels):
        (ws / "f").write_text(str(number))
        assert veil.checkpoint(label).label == label
    for number, label in enumerate(labels):
        veil.restore(label)
        assert (ws / "f").read_text() == str(number), label
    bad: list[object] = ["", "e" * 1001, 7, "before-restore", "ckpt1-00000000"]
    for wrong in bad:
        with pytest.raises(veil.BadInput, match=r"^label"):
            veil.checkpoint(wrong)  # type: ignore[arg-type]
    assert {path.name for path in tmp_path.iterdir()} <= state
    places = list((own_state / "checkpoints").iterdir())
    assert len(places) == 1


def test_what_cannot_be_is_refused_by_its_code(ws: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(veil.NotFound) as missing:
        veil.restore("none")
    assert "none" in missing.value.facts["what"]
    for function in (veil.checkpoint, veil.diff):
        with pytest.raises(veil.BadInput, match=r"^dir"):
            function("a", tmp_path / "nowhere")
    with pytest.raises(veil.BadInput, match=r"^force_origin"):
        veil.restore("a", force_origin="yes")  # type: ignore[arg-type]
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(veil.BadInput, match=r"^dir"):
        veil.checkpoints(project=ws)


@pytest.mark.needs("root")
def test_a_state_folder_that_others_could_swap_is_refused(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    veil.checkpoint("a")
    public = ws.parent / "public"
    (public / "theirs").mkdir(parents=True)
    public.chmod(0o1777)
    os.chown(public / "theirs", 1001, 1001)
    monkeypatch.setenv("VEIL_STATE_DIR", str(public / "theirs" / "state"))
    for call in (veil.checkpoint, veil.restore, veil.checkpoints, veil.diff):
        with pytest.raises(veil.Refused) as caught:
            call()
        assert caught.value.code == "not_ours"
        assert "VEIL_STATE_DIR" in str(caught.value)


def test_without_a_place_to_keep_it_there_is_no_checkpoint(ws: Path) -> None:
    """Neither the home folder nor the temporary one is a folder."""
    code = """
import sys, tempfile, veil
tempfile.tempdir = "/dev/null"
try:
    veil.checkpoint("a", sys.argv[1])
except veil.Refused as error:
    print(error.code, error.facts["why"])
"""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/dev/null"}
    done = subprocess.run([sys.executable, "-c", code, str(ws)], cwd=ws, env=env, capture_output=True, text=True)
    assert done.stdout.startswith("no_state_directory "), done.stderr
    assert "/dev/null" in done.stdout


# -- the limit


def test_the_limit_keeps_the_newest_and_those_with_a_label(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_MAX_CHECKPOINT_BYTES", "2000000")
    made = []
    for number in range(6):
        (ws / "large").write_bytes(os.urandom(600_000))
        made.append(veil.checkpoint("named" if number == 1 else None))
    assert [each.over_limit for each in made] == [None] * 6
    left = [each.id for each in veil.checkpoints()]
    assert {made[1].id, made[5].id} <= set(left)
    assert made[0].id not in left
    assert len(left) < 6
    veil.restore("named")
    for label in ("one", "two", "three"):
        (ws / "large").write_bytes(os.urandom(600_000))
        kept = veil.checkpoint(label)
    assert kept.over_limit is not None
    assert "label" in kept.over_limit
    assert kept.to_dict()["over_limit"] == kept.over_limit
    for label in ("named", "one", "two", "three"):
        veil.restore(label)
        assert veil.diff(label) == []


def test_clearing_waits_for_nobody(ws: Path, tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for _ in range(3):
        (other / "large").write_bytes(os.urandom(600_000))
        veil.checkpoint(dir=other)
    monkeypatch.setenv("VEIL_MAX_CHECKPOINT_BYTES", "1000000")
    with at_work(own_state):
        made = veil.checkpoint()
    assert made.over_limit is not None
    assert "at work" in made.over_limit
    assert len(veil.checkpoints(other)) == 3
    assert veil.checkpoint().over_limit is None
    assert len(veil.checkpoints(other)) == 1


def test_no_project_chooses_what_becomes_of_the_checkpoints_of_others(ws: Path) -> None:
    (ws / "pyproject.toml").write_text("[tool.veil]\nmax_checkpoint_bytes = 1\n")
    with pytest.raises(veil.BadInput, match="max_checkpoint_bytes"):
        veil.checkpoint(project=ws)


# -- beside other work


def test_a_checkpoint_in_the_background_never_blocks_runs_elsewhere(ws: Path, tmp_path: Path, own_state: Path) -> None:
    """It is held up by another process while runs and checkpoints elsewhere, and runs here, come to their end."""
    other = tmp_path / "other"
    other.mkdir()
    veil.checkpoint("a")
    done: list[veil.Checkpoint] = []
    background = threading.Thread(target=lambda: done.append(veil.checkpoint("b", ws)))
    with at_work(own_state):
        background.start()
        assert veil.run("echo x > made", cwd=other).created == ["made"]
        assert veil.checkpoint("elsewhere", other).files == 1
        veil.run("rm made", cwd=other)
        veil.restore("elsewhere", other)
        assert veil.run("echo y > made", cwd=ws).created == ["made"]
        assert (done, background.is_alive()) == ([], True)
    background.join(LONG)
    assert [each.files for each in done] == [2]


def test_the_loop_goes_on_while_a_checkpoint_is_made(ws: Path, own_state: Path) -> None:
    veil.checkpoint("a")

    async def both() -> tuple[veil.Result, veil.Checkpoint]:
        with at_work(own_state):
            kept = asyncio.create_task(asyncio.to_thread(veil.checkpoint, "b"))
            result = await veil.arun("echo x")
            assert not kept.done()
        return result, await kept

    result, kept = asyncio.run(both())
    assert (result.stdout, kept.label) == ("x\n", "b")


def test_threads_and_processes_take_turns(ws: Path) -> None:
    """Ten at once, half of them in processes of their own: each is whole, and each has its own number."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "veil", "checkpoint", f"p{n}"], env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        for n in range(5)
    ]
    threads = [threading.Thread(target=veil.checkpoint, args=(f"t{n}",)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert [process.wait(LONG) for process in processes] == [0] * 5
    found = veil.checkpoints()
    assert len({each.number for each in found}) == len(found) == 10
    assert {each.label for each in found} == {f"{kind}{n}" for kind in "pt" for n in range(5)}


# -- the command line


def test_the_commands(ws: Path) -> None:
    made = veil_json("checkpoint", "a label", cwd=ws)
    assert made == veil.checkpoints()[0].to_dict()
    assert veil_json("diff", "a label", cwd=ws) == {"files_changed": []}
    (ws / "g").write_text("g")
    assert veil_json("diff", cwd=ws, code=1) == {"files_changed": [{"path": "g", "change": "created", "kind": "file"}]}
    done = veil_json("restore", cwd=ws)
    assert (done["id"], done["deleted"], done["before"]) == (made["id"], 1, "before-restore")
    assert not (ws / "g").exists()
    assert [each["id"] for each in veil_json("checkpoints", cwd=ws)] == [done["before_id"], made["id"]]
    assert veil_json("drop", "a label", cwd=ws) == {"dropped": 1}
    assert veil_json("drop", "a label", cwd=ws, code=125)["error"] == "not_found"
    assert veil_json("restore", "a label", cwd=ws, code=125)["error"] == "not_found"
    assert veil_json("checkpoint", "--dir", "nowhere", cwd=ws, code=125)["facts"]["argument"] == "dir"


def test_the_commands_take_another_folder(ws: Path, tmp_path: Path) -> None:
    veil_json("checkpoint", "a", "--dir", str(ws), cwd=tmp_path)
    (ws / "f").unlink()
    assert len(veil_json("diff", "a", "--dir", "ws", cwd=tmp_path, code=1)["files_changed"]) == 1
    assert veil_json("restore", "a", cwd=tmp_path, code=125)["error"] == "other_origin"
    veil_json("restore", "a", "--dir", "ws", cwd=tmp_path)
    assert (ws / "f").read_text() == "first\n"
    other = tmp_path / "other"
    other.mkdir()
    veil_json("restore", "a", "--dir", "other", "--force-origin", cwd=tmp_path)
    assert (other / "f").read_text() == "first\n"


def test_many_changes_are_summed_up(ws: Path) -> None:
    veil.checkpoint()
    (ws / "many").mkdir()
    for number in range(300):
        (ws / "many" / f"f{number}").write_text("")
    told = veil_json("diff", cwd=ws, code=1)
    assert told["files_changed_total"] == 301
    assert len(told["files_changed"]) < 301


def test_people_get_it_told(ws: Path) -> None:
    assert run_veil("checkpoints", cwd=ws).stdout == b"none\n"
    made = run_veil("checkpoint", "one \x1b[31m", cwd=ws).stdout.decode()
    assert made.startswith("ckpt1-")
    assert "1 file, 6 bytes" in made
    assert run_veil("diff", cwd=ws).stdout == b"nothing is different\n"
    (ws / "f").write_text("second\n")
    shown = run_veil("diff", cwd=ws)
    assert (shown.returncode, shown.stdout) == (1, b"1 changed\nM f\n")
    done = run_veil("restore", cwd=ws).stdout.decode()
    assert "1 replaced" in done
    assert "takes it back" in done
    rows = run_veil("checkpoints", cwd=ws).stdout.decode()
    assert rows.splitlines()[0].split()[-1] == "before-restore"
    assert "\x1b" not in made + done + rows
    assert run_veil("drop", "before-restore", cwd=ws).stdout == b"1 checkpoint dropped\n"
    refused = run_veil("restore", "x", cwd=ws)
    assert (refused.returncode, refused.stdout, refused.stderr.count(b"\n")) == (125, b"", 1)


def test_gc_clears_checkpoints_of_all_folders(ws: Path, tmp_path: Path) -> None:
    for _ in range(3):
        (ws / "large").write_bytes(os.urandom(600_000))
        veil.checkpoint()
    assert veil_json("gc", cwd=tmp_path)["checkpoints_removed"] == 0
    done = veil_json("gc", cwd=tmp_path, env={"VEIL_MAX_CHECKPOINT_BYTES": "1"})
    assert (done["checkpoints_removed"], done["checkpoints_left"]) == (2, 1)
    assert done["checkpoints_bytes_freed"] > 1_000_000
    assert len(veil.checkpoints()) == 1
