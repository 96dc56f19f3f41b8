"""Where a look at what changed is not simple: what breaks, is too much or foreign, and runs at the same time."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from watching import REPOSITORY, WAYS, folder, layer_for, rows, shell, watch

from veil.layers.effects import EffectsLayer
from veil.model.command import Command, Effects, Request
from veil.model.outcome import Findings, Outcome
from veil.model.plan import Launch, Plan

__all__ = ["folder"]

pytestmark = pytest.mark.needs("git", "bash")


@pytest.mark.parametrize("way", WAYS)
def test_own_files_are_never_told(way: str, folder: Path) -> None:
    """fx-09: state and locks may lie in the tree itself."""
    shell(folder, REPOSITORY)
    state = folder / ".state"
    layer = EffectsLayer(state / "locks", own_paths=(str(state), str(folder / "own.db")), git_first=WAYS[way])
    findings = watch(
        layer, folder, f"mkdir -p {state}/deep; echo 1 > {state}/deep/x; echo 1 > own.db; echo 1 > own.db2"
    )
    assert rows(findings) == ["created own.db2"]
    assert rows(watch(layer, folder, "true")) == []


def test_a_broken_index_falls_back_to_the_scan(folder: Path, tmp_path: Path) -> None:
    """fx-10: git that fails is never "nothing changed"."""
    shell(folder, REPOSITORY)
    (folder / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\xff\xff\xff\xffgarbage")
    findings = watch(layer_for(tmp_path, "git"), folder, "echo 2 >> f; echo 1 > x.log")
    assert findings.source == "scan"
    assert rows(findings) == ["modified f", "created x.log"]
    assert any("ignored" in gap for gap in findings.notes["effects_gaps"])


def test_an_index_in_two_files_is_scanned(folder: Path, tmp_path: Path) -> None:
    shell(folder, REPOSITORY + "; git update-index --split-index")
    findings = watch(layer_for(tmp_path, "git"), folder, "echo 2 >> f; echo 1 > x.log; rm g")
    assert findings.source == "scan"
    assert rows(findings) == ["modified f", "deleted g"]


@pytest.mark.needs("root")
@pytest.mark.parametrize("way", WAYS)
def test_a_repository_of_somebody_else(way: str, folder: Path, tmp_path: Path) -> None:
    """fx-10: safe.directory makes git refuse."""
    shell(folder, REPOSITORY)
    shell(folder, "chown -R 65534:65534 .")
    findings = watch(layer_for(tmp_path, way), folder, "echo 2 >> f; echo 3 > n")
    assert findings.source == "scan"
    assert rows(findings) == ["modified f", "created n"]
    assert any("dubious ownership" in gap for gap in findings.notes["effects_gaps"])


def test_git_that_breaks_during_the_run_is_unknown(folder: Path, tmp_path: Path) -> None:
    shell(folder, REPOSITORY)
    findings = watch(layer_for(tmp_path, "git"), folder, "rm .git/HEAD")
    assert findings.changes is None
    assert findings.source is None
    assert "git" in findings.notes["effects_unavailable"]
    shell(folder, "rm -rf .git; " + REPOSITORY.replace("mkdir s; ", ""))
    scanned = watch(layer_for(tmp_path, "scan"), folder, "rm -rf .git; echo 2 >> f")
    assert rows(scanned) == ["modified f"]


@pytest.mark.parametrize("place", ["place", "place/in"])
def test_a_folder_that_became_a_link_is_unknown(place: str, folder: Path, tmp_path: Path) -> None:
    """What lies behind the link was there before, and is nobody's business."""
    shell(folder, "mkdir in; echo 1 > in/f; mkdir -p ../other/in; echo 1 > ../other/in/old")
    findings = watch(layer_for(tmp_path, "scan"), tmp_path / place, f"cd {tmp_path}; mv place was; ln -s other place")
    assert findings.changes is None
    assert "link" in findings.notes["effects_unavailable"]


def test_a_folder_that_was_made_anew_is_compared(folder: Path, tmp_path: Path) -> None:
    shell(folder, "echo 1 > f")
    findings = watch(layer_for(tmp_path, "scan"), folder, "cd ..; mv place was; mkdir place; echo 2 > place/n")
    assert rows(findings) == ["deleted f", "created n"]


def test_a_folder_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    findings = watch(layer_for(tmp_path, "scan"), tmp_path, "true")
    assert findings.changes == ()
    launch = Launch(("true",), "/nul\0byte", {})
    entered = layer_for(tmp_path, "scan").enter(Effects(), launch, Plan(Request(Command(("true",), "/"))))
    next(entered)
    with pytest.raises(StopIteration) as end:
        entered.send(Outcome("exited", 0))
    assert end.value.value.changes is None
    assert "NUL" in end.value.value.notes["effects_unavailable"]


def test_a_big_ignored_folder_hands_over_to_git(folder: Path, tmp_path: Path) -> None:
    shell(folder, REPOSITORY)
    build = folder / "build"
    build.mkdir()
    for number in range(12_100):
        (build / f"{number}.o").touch()
    findings = watch(EffectsLayer(tmp_path / "locks"), folder, "echo 2 >> f; echo 3 > n")
    assert findings.source == "git"
    assert rows(findings) == ["modified f", "created n"]


def test_a_tree_that_is_too_much_is_unknown_or_cut_down_to_the_cwd(folder: Path, tmp_path: Path) -> None:
    """A home folder under git, say."""
    shell(folder, "git init -q; mkdir sub; touch sub/{1..5} {1..40}")
    layer = EffectsLayer(tmp_path / "locks", git_first=-1, most_entries=30)
    whole = watch(layer, folder, "echo 1 > x")
    assert whole.changes is None
    assert "more than 30" in whole.notes["effects_unavailable"]
    part = watch(layer, folder / "sub", "echo 1 > x; echo 2 > ../y")
    assert rows(part) == ["created x"]
    assert part.notes["effects_gaps"][0].startswith("..: only the working directory was looked at")


def test_without_a_place_for_locks_it_says_so(folder: Path, tmp_path: Path) -> None:
    assert watch(EffectsLayer(None), folder, "true").notes == {"shared": "unknown"}
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    findings = watch(EffectsLayer(blocked / "locks"), folder, "echo 1 > x")
    assert rows(findings) == ["created x"]
    assert findings.notes == {"shared": "unknown"}


def test_threads_never_take_each_others_changes(folder: Path, tmp_path: Path) -> None:
    layer = layer_for(tmp_path, "scan", wait_seconds=60.0)
    told: dict[int, list[str]] = {}

    def one(number: int) -> None:
        told[number] = rows(watch(layer, folder, f"echo 1 > mine-{number}; sleep 0.02; echo 2 > also-{number}"))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == {n: [f"created also-{n}", f"created mine-{n}"] for n in range(8)}


def test_going_ahead_labels_both(folder: Path, tmp_path: Path) -> None:
    layer = layer_for(tmp_path, "scan", wait_seconds=0.05)
    holder: list[Findings] = []
    begun = folder.parent / "begun"
    done = folder.parent / "done"
    script = f"touch {begun}; until [ -e {done} ]; do sleep 0.01; done"
    thread = threading.Thread(target=lambda: holder.append(watch(layer, folder, script)))
    thread.start()
    until = time.monotonic() + 30
    while not begun.exists() and time.monotonic() < until:
        time.sleep(0.005)
    ahead = watch(layer, folder, "echo 1 > x")
    done.touch()
    thread.join()
    assert rows(ahead) == ["created x"]
    assert ahead.notes["shared"] is True
    assert holder[0].notes["shared"] is True
    assert "shared" not in watch(layer, folder, "true").notes


def test_beside_a_background_job(folder: Path, tmp_path: Path) -> None:
    layer = layer_for(tmp_path, "scan")
    with layer.mark_job(str(folder)) as job:
        assert job.seen
        assert watch(layer, folder, "true").notes["shared"] is True
    assert "shared" not in watch(layer, folder, "true").notes


def test_a_run_that_breaks_gives_its_turn_back(folder: Path, tmp_path: Path) -> None:
    layer = layer_for(tmp_path, "scan", wait_seconds=30.0)
    launch = Launch(("true",), str(folder), {})
    entered = layer.enter(Effects(), launch, Plan(Request(Command(("true",), str(folder)))))
    next(entered)
    entered.close()
    start = time.monotonic()
    assert "shared" not in watch(layer, folder, "true").notes
    assert time.monotonic() - start < 25


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "place"
    inner = place / "mnt"
    inner.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(inner)], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us mount")
    yield place
    subprocess.run(["umount", str(inner)], check=True)


@pytest.mark.linux
def test_other_file_systems_are_a_named_gap(mounted: Path, tmp_path: Path) -> None:
    findings = watch(layer_for(tmp_path, "scan"), mounted, "echo 1 > mnt/x; echo 1 > y")
    assert rows(findings) == ["created y"]
    assert findings.notes["effects_gaps"] == ["mnt: another file system"]


def test_a_harmless_command_is_not_looked_at_where_looking_is_dear(folder: Path) -> None:
    for number in range(20):
        (folder / f"f{number}").write_text("x")
    asked: list[Request] = []

    def harmless(request: Request) -> bool:
        asked.append(request)
        return request.command.argv[-1].startswith("cat")

    layer = EffectsLayer(None, git_first=10, harmless=harmless)
    assert rows(watch(layer, folder, "cat f1")) == []  # nobody knew yet that there is much to see
    assert asked == []
    assert watch(layer, folder, "cat f1").notes == {"effects": "read-only"}
    assert watch(layer, folder, "cat f1").changes is None
    assert rows(watch(layer, folder, "echo 1 > f1")) == ["modified f1"]
    assert len(asked) == 3


def test_a_large_repository_is_known_by_its_index(folder: Path) -> None:
    shell(folder, "git init -q; for n in $(seq 20); do echo $n > f$n; done; git add .")
    layer = EffectsLayer(None, git_first=10, harmless=lambda request: True)
    assert watch(layer, folder, "cat f1").notes == {"effects": "read-only"}
