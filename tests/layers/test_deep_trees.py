"""Trees nested deeper than Python calls itself: every door takes them, and nothing of them stays."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import veil
from veil.host.rooms import Rooms
from veil.host.views import Method, open_view
from veil.model.plan import Launch
from veil.snapshots import Checkpoints

OVERLAY = [pytest.mark.linux, pytest.mark.needs("user namespaces")]
DEPTH = 1500
NEST = f"""
import os, sys
os.chdir(os.environ.get(sys.argv[1], '.'))
for _ in range({DEPTH}):
    os.mkdir('a')
    os.chdir('a')
open('file', 'w').close()
"""
#: On macOS no path of such a length can be named.
pytestmark = pytest.mark.linux


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A folder with one such tree, ``a``, in it. It is taken away by other means than those under test."""
    root = tmp_path / "deep"
    root.mkdir()
    nest(root)
    yield root
    subprocess.run(["rm", "-rf", "--", str(root)], check=True)


def nest(root: Path) -> None:
    subprocess.run([sys.executable, "-c", NEST, "nowhere"], cwd=root, check=True)


@pytest.mark.needs("user namespaces")
def test_a_sandboxed_command_that_nests_in_its_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "work").mkdir()
    done = veil.run([sys.executable, "-c", NEST, "TMPDIR"], cwd=tmp_path / "work", sandbox=True)
    assert (done.exit, done.stderr) == (0, "")
    assert [path.name for path in temporary.rglob("veil-tmp-*/*")] == []


@pytest.mark.needs("user namespaces")
def test_a_preview_of_nesting_and_its_apply(deep: Path, own_state: Path) -> None:
    (deep / "b").mkdir()
    made = veil.run([sys.executable, "-c", NEST, "nowhere"], cwd=deep / "b", preview=True)
    assert made.previewed
    assert [each.path.count("/") for each in made.files_changed] == [DEPTH]
    assert not (deep / "b" / "a").exists()
    assert [path.name for path in (own_state / "previews" / "rooms").glob("room-*")] == []
    veil.apply(made.id)
    assert (deep / "b" / "/".join("a" * DEPTH) / "file").exists()


@pytest.mark.parametrize("method", [pytest.param("overlay", marks=OVERLAY), "copy"])
@pytest.mark.parametrize("instead", ["", "mkdir a", "touch a"])
def test_a_view_in_which_it_is_taken_away(deep: Path, tmp_path: Path, method: Method, instead: str) -> None:
    rooms = tmp_path / "rooms"
    view = open_view(str(deep), Rooms(rooms), most_bytes=10**6, methods=[method])
    try:
        launch = view.launch(Launch(("sh", "-c", f"rm -rf a; {instead}"), str(deep), dict(os.environ)))
        subprocess.run([*launch.outside, *launch.argv], cwd=launch.cwd, env=dict(launch.env), check=True)
        difference = view.difference()
    finally:
        view.close()
    assert sum(each.after is None for each in difference.touched) == DEPTH + (not instead)
    assert (deep / "a").exists()
    assert [path.name for path in rooms.glob("room-*")] == []


def test_changes_of_the_real_tree_and_checkpoints(deep: Path, tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "state")
    kept.take(deep, "all")
    done = veil.run("rm -rf a", cwd=deep)
    assert [(each.path.count("/"), each.change) for each in done.files_changed] == [(DEPTH, "deleted")]
    assert len(kept.diff(deep, "all")) == DEPTH + 1
    kept.restore(deep, "all")
    assert kept.diff(deep, "all") == []
    assert (deep / "/".join("a" * DEPTH) / "file").exists()
