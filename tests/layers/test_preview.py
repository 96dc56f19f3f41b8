"""Previews beside what every method keeps (``tests/contracts/test_preview_contract.py``): refusals, limits, company."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from previewing import code_of, tree

import veil
from pytest_veil import expect
from veil.host.differing import Difference, Touched, state_of
from veil.host.rooms import Room, Rooms
from veil.host.views import CannotView, Method, open_view
from veil.model.plan import Launch
from veil.previews import Previews

__all__ = ["tree"]


OVERLAY = [pytest.mark.linux, pytest.mark.needs("user namespaces")]
ROOT = Path(__file__).parents[2]


def test_the_background_has_no_previews(tree: Path) -> None:
    with pytest.raises(veil.Refused) as refusal:
        veil.start("true", cwd=tree, preview=True)
    assert code_of(refusal) == "background_incompatible"


def test_nothing_is_left_running_in_a_view_that_is_gone(tree: Path) -> None:
    with pytest.raises(veil.BadInput, match="left_running"):
        veil.run("true", cwd=tree, preview=True, left_running="keep")
    with pytest.raises(veil.BadInput, match="preview"):
        veil.run("true", cwd=tree, preview="yes")  # type: ignore[arg-type]


def test_the_root_folder_is_refused() -> None:
    with pytest.raises(veil.Refused, match="root folder") as refusal:
        veil.run("true", cwd="/", preview=True)
    assert code_of(refusal) == "layer_unavailable"


def test_a_copy_has_a_limit_and_is_refused_before_anything_runs(tree: Path, tmp_path: Path) -> None:
    (tree / "large").write_bytes(b"x" * 5000)
    with pytest.raises(CannotView, match="more than 4999 bytes"):
        open_view(str(tree), Rooms(tmp_path / "rooms"), most_bytes=4999, methods=["copy"])
    assert os.listdir(tmp_path / "rooms") == [".veil-owned"]
    open_view(str(tree), Rooms(tmp_path / "rooms"), most_bytes=5001, methods=["copy"]).close()


@pytest.mark.parametrize("method", [pytest.param("overlay", marks=OVERLAY), "copy"])
def test_a_run_that_cannot_have_a_view_is_refused(tmp_path: Path, method: Method) -> None:
    """A folder that goes away before the view is made."""
    tree = tmp_path / "tree"
    tree.mkdir()
    tree.rmdir()
    with pytest.raises(CannotView):
        open_view(str(tree), Rooms(None), most_bytes=9, methods=[method])


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
def test_a_view_that_does_not_stand_runs_nothing(tree: Path, tmp_path: Path) -> None:
    view = open_view(str(tree), Rooms(tmp_path / "rooms"), most_bytes=9, methods=["overlay"])
    try:
        launch = view.launch(Launch(("touch", "b"), str(tree), dict(os.environ)))
        Path(view.room.path, "work").rename(Path(view.room.path, "away"))
        done = subprocess.run([*launch.outside, *launch.argv], cwd=launch.cwd, check=False)
        assert done.returncode == 125
        assert view.broken() == "No such file or directory"
    finally:
        view.close()
    assert os.listdir(tree) == ["a"]


@pytest.mark.parametrize("method", [pytest.param("overlay", marks=OVERLAY), "copy"])
def test_veils_own_state_is_no_part_of_a_view(
    tree: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    """A state folder within the folder, as when a home is previewed."""
    state = tree / ".local" / "state"
    monkeypatch.setenv("VEIL_STATE_DIR", str(state))
    veil.run("true", cwd=tree)
    view = open_view(
        str(tree),
        Rooms(state / "previews"),
        most_bytes=10**6,
        methods=[method],
        own=[str(state)],
    )
    try:
        launch = view.launch(Launch(("sh", "-c", "ls -A .local/state; echo b > b"), str(tree), dict(os.environ)))
        done = subprocess.run([*launch.outside, *launch.argv], cwd=launch.cwd, capture_output=True, check=False)
        assert b"projects" not in done.stdout
        assert [each.path for each in view.difference().touched] == ["b"]
        assert not view.room.path.startswith(str(tree))
    finally:
        view.close()
    result = veil.run("echo b > b", cwd=tree, preview=True)
    assert [change.path for change in result.files_changed] == ["b"]
    veil.apply(result.id)
    assert (tree / "b").read_text() == "b\n"


def test_rooms_of_killed_processes_are_swept_and_others_stay(tmp_path: Path) -> None:
    home = tmp_path / "rooms"
    rooms = Rooms(home)
    first = next(rooms.places(str(tmp_path / "tree")))
    assert isinstance(first, Room)
    program = (
        "import sys; from pathlib import Path; from veil.host.rooms import Room; room = Room(Path(sys.argv[1]));"
        "import os; os.makedirs(room.path + '/work/work'); os.chmod(room.path + '/work/work', 0); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, home], cwd=ROOT, check=False)
    left = [name for name in os.listdir(home) if name.startswith("room-") and not first.path.endswith(name)]
    assert len(left) == 1
    rooms.sweep()
    assert left[0] in os.listdir(home)  # it is young: perhaps somebody is just making it
    for name in (*left, os.path.basename(first.path)):
        os.utime(home / name, (1, 1))
    rooms.sweep()
    assert sorted(os.listdir(home)) == sorted([".veil-owned", os.path.basename(first.path)])
    first.close()
    assert os.listdir(home) == [".veil-owned"]


def a_difference(folder: Path, size: int) -> Difference:
    """One new file of so many bytes."""
    made = folder / f"made{size}-{time.monotonic_ns()}"
    made.write_bytes(b"x" * size)
    return Difference((Touched("new", None, state_of(str(made)), source=str(made)),))


def test_gc_clears_kept_previews(tree: Path, own_state: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    (kept,) = [each for each in (own_state / "previews" / "kept").iterdir() if each.is_dir()]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "veil", "gc", "--json"]
    told = json.loads(subprocess.run(words, cwd=tree, env=env, capture_output=True, check=True).stdout)
    assert (told["previews_removed"], told["previews_left"]) == (0, 1)
    os.utime(kept, (1, 1))
    told = json.loads(subprocess.run(words, cwd=tree, env=env, capture_output=True, check=True).stdout)
    assert (told["previews_removed"], told["previews_left"], told["previews_bytes_left"]) == (1, 0, 0)
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert code_of(refusal) == "not_kept"


def test_kept_previews_have_limits(tmp_path: Path) -> None:
    def kept(folder: Path) -> list[str]:
        return sorted(name for name in os.listdir(folder) if name != ".veil-owned")

    store = Previews(tmp_path / "kept", max_bytes=25_000, ttl_seconds=1000, most=3)
    token, why = store.keep(str(tmp_path), a_difference(tmp_path, 25_001), 0)
    assert token is None
    assert why is not None
    assert "VEIL_MAX_PREVIEW_BYTES" in why
    tokens = []
    for number in range(5):
        token, why = store.keep(str(tmp_path), a_difference(tmp_path, 100), 0)
        assert token is not None, why
        tokens.append(token)
        os.utime(tmp_path / "kept" / token, (time.time() - 100 + number,) * 2)
    assert kept(tmp_path / "kept") == sorted(tokens[-3:])
    os.utime(tmp_path / "kept" / tokens[-1], (1, 1))
    large, why = store.keep(str(tmp_path), a_difference(tmp_path, 20_000), 0)
    assert large is not None, why
    assert tokens[-1] not in kept(tmp_path / "kept")
    other, why = store.keep(str(tmp_path), a_difference(tmp_path, 20_000), 0)
    assert other is not None, why
    assert kept(tmp_path / "kept") == [other]
    with pytest.raises(veil.Refused) as refusal:
        store.apply(large, "cmd1")
    assert code_of(refusal) == "not_kept"


@pytest.mark.parametrize("token", ["", "..", "../x", "a" * 24 + "/", "A" * 24])
def test_no_name_of_a_preview_is_a_path(tmp_path: Path, token: str) -> None:
    (tmp_path / "kept").mkdir()
    with pytest.raises(veil.Refused) as refusal:
        Previews(tmp_path / "kept", max_bytes=1, ttl_seconds=1, most=1).apply(token, "cmd1")
    assert code_of(refusal) == "not_kept"


def test_previews_at_once_do_not_see_each_other(tree: Path) -> None:
    def one(number: int) -> veil.Result:
        return veil.run(f"echo {number} >> a; sleep 0.2; cat a; ls", cwd=tree, preview=True)

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(one, range(3)))
    assert [result.stdout for result in results] == [f"a{number}\na\n" for number in range(3)]
    veil.apply(results[1].id)
    assert (tree / "a").read_text() == "a1\n"
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(results[2].id)
    assert code_of(refusal) == "moved"


def test_no_file_of_a_preview_is_there_for_anybody_to_ask(tree: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    assert result.previewed
    expect(result).created("b")
    with pytest.raises(veil.Refused) as refusal:
        expect(result).file("b").exists()
    assert code_of(refusal) == "previewed"


def test_the_view_says_what_would_be_and_what_to_do(tree: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    data = result.to_dict()
    assert data["files_changed"] == [{"path": "b", "change": "created", "kind": "file"}]
    assert data["effects_source"] == data["preview_method"] == result.preview_method
    assert data["advice"] == f"nothing was changed, it was a preview; veil apply {result.id} makes it real"
    assert "preview_kept" not in data
    assert any("outside of the folder" in gap for gap in data["preview_gaps"])
    assert veil.detail(result.id).result.previewed
    applied = veil.apply(result.id)
    assert applied.to_dict() == {
        "id": result.id,
        "applied": True,
        "folder": os.path.realpath(tree),
        "files_changed": [{"path": "b", "change": "created", "kind": "file"}],
        "paths": 1,
    }
