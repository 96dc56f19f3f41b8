"""Applying a preview: when it may be, by which way, and what is there when it is killed or refused half-way."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deeds import facts
from previewing import code_of, tree

import veil

__all__ = ["tree"]

ROOT = Path(__file__).parents[2]


def test_only_previews_can_be_applied(tree: Path) -> None:
    result = veil.run("echo b > b", cwd=tree)
    assert not result.previewed
    assert result.preview_method is None
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert code_of(refusal) == "no_preview"
    with pytest.raises(veil.NotFound):
        veil.apply("cmd99")
    for wrong in ("../x", None):
        with pytest.raises(veil.BadInput):
            veil.apply(wrong)  # type: ignore[arg-type]


def test_an_apply_waits_for_one_that_is_under_way(tree: Path, own_state: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    token = result.record.observation.findings.notes["preview_kept"]
    handle = os.open(own_state / "previews" / "kept" / token / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(veil.apply, result.id) for _ in range(2)]
        time.sleep(0.3)
        assert not (tree / "b").exists()
        os.close(handle)
        errors = [each.exception() for each in both]
    assert [getattr(error, "code", None) for error in errors if error] == ["already_applied"]
    assert (tree / "b").read_text() == "b\n"


def test_no_link_on_the_way_is_followed(tree: Path, tmp_path: Path) -> None:
    """What is written through a link that leads out is no part of the view, and nothing is put through one."""
    (tmp_path / "outside").mkdir()
    (tree / "folder").mkdir()
    (tree / "folder" / "x").write_text("x")
    result = veil.run("echo y > folder/x; echo n > folder/new; mkdir made; echo m > made/m", cwd=tree, preview=True)
    (tree / "folder").rename(tmp_path / "aside")
    (tree / "folder").symlink_to(tmp_path / "outside")
    (tree / "made").symlink_to(tmp_path / "outside")
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert sorted(refusal.value.facts["paths"]) == ["folder/new", "folder/x", "made"]
    assert os.listdir(tmp_path / "outside") == []


def test_a_folder_that_is_a_link_now_is_not_entered(tree: Path, tmp_path: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    tree.rename(tmp_path / "aside")
    with pytest.raises(veil.Refused) as gone:
        veil.apply(result.id)
    (tmp_path / "outside").mkdir()
    tree.symlink_to(tmp_path / "outside")
    with pytest.raises(veil.Refused) as link:
        veil.apply(result.id)
    assert code_of(gone) == code_of(link) == "moved"
    assert os.listdir(tmp_path / "outside") == []


def test_a_folder_reached_by_a_link_is_the_folder(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(tree)
    result = veil.run("echo b > b; pwd; echo c > '" + str(tree) + "/c'", cwd=tmp_path / "way", preview=True)
    assert [change.path for change in result.files_changed] == ["b", "c"]
    assert os.listdir(tree) == ["a"]
    assert veil.apply(result.id).folder == os.path.realpath(tree)
    assert sorted(os.listdir(tree)) == ["a", "b", "c"]


APPLY = "import sys, veil; print(veil.apply(sys.argv[1], sys.argv[2]).paths)"


def test_an_apply_that_is_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """At whatever moment: each file is the old or the new one, and the same call makes everything real."""
    text = """
        for i in $(seq 40); do echo new > file$i; rm old$i; mkdir -p made$i/deep; echo m > made$i/deep/m; done
        chmod 500 made1/deep; ln -sfn file2 link; rm -r turned; echo t > turned
    """
    rounds = int(os.environ.get("VEIL_TEST_KILLS", "8"))
    broken_off = 0
    for number in range(rounds):
        tree = tmp_path / f"tree{number}"
        (tree / "turned").mkdir(parents=True)
        (tree / "turned" / "x").write_text("x")
        (tree / "link").symlink_to("file1")
        for each in range(1, 41):
            (tree / f"file{each}").write_text("before")
            (tree / f"old{each}").write_text("old")
        result = veil.run(text, cwd=tree, preview=True, check=True)
        with subprocess.Popen([sys.executable, "-c", APPLY, result.id, ROOT], cwd=ROOT) as process:
            while process.poll() is None and not any(name.startswith(".veil-apply-") for name in os.listdir(tree)):
                time.sleep(0.0005)
            time.sleep(0.0015 * number)
            process.send_signal(signal.SIGKILL)
        for each in range(1, 41):
            assert (tree / f"file{each}").read_text() in ("before", "new\n")
        try:
            veil.apply(result.id)
            broken_off += 1
        except veil.Refused as refusal:
            if refusal.code != "already_applied":
                raise
        found = facts(tree, times=False)
        names = [f"made{each}{rest}" for each in range(1, 41) for rest in ("", "/deep", "/deep/m")]
        assert found.keys() == {"", "link", "turned", *names, *(f"file{each}" for each in range(1, 41))}
        assert {found[f"file{each}"][4] for each in range(1, 41)} == {b"new\n"}
        assert (found["made1/deep"][1], found["link"][4], found["turned"][4]) == (0o500, "file2", b"t\n")
    assert broken_off > 0


@pytest.mark.parametrize("back", [False, True])
def test_an_apply_that_was_killed_between_a_folder_and_its_file(tree: Path, own_state: Path, back: bool) -> None:
    """What the earlier try had taken away to make room counts as taken away by it, and by nobody else."""
    turned = tree / "turned"
    turned.mkdir()
    (turned / "x").write_text("x")
    text = "rm -r turned; echo t > turned"
    if back:
        (turned / "x").unlink()
        turned.rmdir()
        turned.write_text("t")
        text = "rm turned; mkdir turned; echo x > turned/x"
    result = veil.run(text, cwd=tree, preview=True, check=True)
    token = result.record.observation.findings.notes["preview_kept"]
    if back:
        turned.unlink()
    else:
        (turned / "x").unlink()
        turned.rmdir()
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert code_of(refusal) == "moved"
    (own_state / "previews" / "kept" / token / "begun").touch()  # as a killed try leaves it
    veil.apply(result.id)
    assert (turned / "x" if back else turned).read_text() == ("x\n" if back else "t\n")


def test_an_apply_that_the_disk_refuses_changes_nothing(tree: Path, own_state: Path) -> None:
    result = veil.run("echo more >> a; echo b > b", cwd=tree, preview=True)
    token = result.record.observation.findings.notes["preview_kept"]
    content = own_state / "previews" / "kept" / token / "content"
    (content / "1").rename(content / "away")
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert code_of(refusal) == "not_applied"
    assert {path.name: path.read_text() for path in tree.iterdir()} == {"a": "a"}
    (content / "away").rename(content / "1")
    assert veil.apply(result.id).paths == 2


def test_an_apply_that_runs_out_of_room_changes_nothing(tree: Path) -> None:
    result = veil.run(
        "echo more >> a; rm -f x; head -c 3000000 /dev/urandom > large", cwd=tree, preview=True, check=True
    )
    code = (
        "import resource, sys, veil\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "try:\n    veil.apply(sys.argv[1], sys.argv[2])\n"
        "except veil.Refused as refusal:\n    print(refusal.code)"
    )
    done = subprocess.run([sys.executable, "-c", code, result.id, ROOT], cwd=ROOT, capture_output=True)
    assert (done.stdout, done.stderr) == (b"not_applied\n", b"")
    assert {path.name: path.read_text() for path in tree.iterdir()} == {"a": "a"}
    assert veil.apply(result.id).paths == 2
    assert (tree / "large").stat().st_size == 3_000_000


def test_the_command_line_previews_and_applies(tree: Path) -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = [sys.executable, "-m", "veil", *words]
        return subprocess.run(done, cwd=tree, env=env, capture_output=True, text=True, check=False, timeout=120)

    told = call("preview", "--json", "--", "sh", "-c", "echo b > b; exit 4")
    assert told.returncode == 4, told.stderr
    data = json.loads(told.stdout)
    assert data["files_changed"] == [{"path": "b", "change": "created", "kind": "file"}]
    assert os.listdir(tree) == ["a"]
    shown = call("run", "--preview", "rm a")
    assert "D a" in shown.stdout
    assert "preview_method" in shown.stdout
    done = call("apply", data["id"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{data['id']} applied in {os.path.realpath(tree)}\n--- 1 changed\nA b\n"
    again = call("apply", data["id"], "--json")
    assert again.returncode == 125
    assert json.loads(again.stdout)["error"] == "already_applied"
    assert sorted(os.listdir(tree)) == ["a", "b"]
