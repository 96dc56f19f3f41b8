"""Where checkpoints are kept: content once, damage found, room given back, a disk or folder that refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ckpt_trees import HERE, ROOT, powerless, snapshot

from veil.model.errors import BadInput, NotFound, Refused
from veil.snapshots import Checkpoints


def test_a_second_checkpoint_of_the_same_writes_no_content(kept: Checkpoints, ws: Path) -> None:
    for number in range(50):
        (ws / f"f{number}").write_bytes(os.urandom(100))
    time.sleep(0.1)
    kept.take(ws)
    packs = {path: path.stat().st_size for path in (ws.parent / "state").rglob("packs/*")}
    kept.take(ws)
    (ws / "copy").write_bytes((ws / "f1").read_bytes())
    assert kept.take(ws).files == 51
    grown = {path: path.stat().st_size for path in (ws.parent / "state").rglob("packs/*")}
    assert len(packs) == 1
    assert len(grown) == 2  # a listing and a manifest
    assert sum(grown.values()) - sum(packs.values()) < 20_000


def test_the_store_is_for_its_owner_alone(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    (ws / "large").write_bytes(b"x" * 1_000_000)
    old = os.umask(0)
    try:
        kept.take(ws)
    finally:
        os.umask(old)
    for path in (tmp_path / "state").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_damage_is_found_before_anything_is_touched(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("the old content")
    (ws / "large").write_bytes(b"y" * 1_000_000)
    kept.take(ws, "a")
    (ws / "f").write_text("new")
    (ws / "large").write_text("new")
    (ws / "late").write_text("late")
    before = snapshot(ws)
    for file in (next((tmp_path / "state").rglob("packs/*")), next((tmp_path / "state").rglob("objects/*"))):
        whole = file.read_bytes()
        file.write_bytes(whole.replace(b"the old", b"the odd").replace(b"yy", b"zy", 1))
        with pytest.raises(Refused) as caught:
            kept.restore(ws, "a")
        assert caught.value.code == "damaged"
        assert snapshot(ws) == before
        file.write_bytes(whole)
    kept.restore(ws, "a")
    assert (ws / "f").read_text() == "the old content"


def test_a_damaged_cache_costs_nothing_but_time(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    kept.take(ws)
    cache = next((tmp_path / "state").rglob("cache"))
    whole = cache.read_bytes()
    for content in (b"", whole[:40], whole[:-1] + b"\xff", b"veil checkpoint cache 1\n" + b"x" * 64):
        cache.write_bytes(content)
        kept.take(ws, "a")
        (ws / "f").write_text("y")
        kept.restore(ws, "a")
        assert (ws / "f").read_text() == "x"


def test_a_cache_from_before_a_clearing_is_not_believed(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("content")
    time.sleep(0.1)
    kept.take(ws, "a")
    cache = next((tmp_path / "state").rglob("cache"))
    whole = cache.read_bytes()
    kept.drop(ws, "a")
    cache.write_bytes(whole)
    kept.take(ws, "b")
    (ws / "f").unlink()
    kept.restore(ws, "b")
    assert (ws / "f").read_text() == "content"


def test_drop_and_gc_give_room_back_and_keep_what_must_be_kept(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    def stored() -> int:
        return sum(path.stat().st_size for path in (tmp_path / "state").rglob("*") if path.is_file())

    ids = []
    for number in range(6):
        (ws / "f").write_bytes(os.urandom(100_000))
        (ws / "large").write_bytes(os.urandom(400_000))
        ids.append(kept.take(ws, "named" if number == 2 else None).id)
    named = kept.list(ws)[3]
    assert (named.label, stored() > 3_000_000) == ("named", True)
    assert kept.gc(10_000_000)["removed"] == 0
    done = kept.gc(2_100_000)
    assert done["removed"] == 2  # the oldest without a label
    assert done["bytes_left"] == stored() < 2_300_000
    assert [each.id for each in kept.list(ws)] == [ids[5], ids[4], ids[3], ids[2]]
    assert kept.gc(0)["left"] == 2
    assert [each.id for each in kept.list(ws)] == [ids[5], ids[2]]
    for name in ("named", ids[5]):
        kept.restore(ws, name)
        assert kept.diff(ws, name) == []
    assert kept.drop(ws, "named") == 1
    with pytest.raises(NotFound):
        kept.drop(ws, "named")
    kept.drop(ws, "before-restore")
    assert stored() < 700_000
    kept.restore(ws, ids[5])
    with pytest.raises(BadInput, match="max_bytes"):
        kept.gc(-1)


def test_a_pack_written_anew_holds_what_it_held(kept: Checkpoints, ws: Path) -> None:
    for number in range(20):
        (ws / f"f{number}").write_bytes(os.urandom(10_000))
    kept.take(ws, "a")
    for number in range(18):
        (ws / f"f{number}").unlink()
    before = snapshot(ws)
    kept.take(ws, "b")
    kept.drop(ws, "a")
    shutil.rmtree(ws)
    kept.restore(ws, "b")
    assert snapshot(ws) == before


@pytest.mark.parametrize("kind", ["read-only", "full"])
def test_a_store_that_cannot_be_written_says_so(kind: str, ws: Path, tmp_path: Path) -> None:
    """``full``: the process may write no large file, which ends a write in the middle as a full disk does."""
    (ws / "f").write_bytes(b"x" * 200_000)
    Checkpoints(tmp_path / "state").take(ws, "a")
    (ws / "f").write_bytes(os.urandom(200_000))
    (ws / "large").write_bytes(os.urandom(900_000))
    before = snapshot(ws)
    told = powerless(
        """
from pathlib import Path
import resource
kept, ws = Checkpoints(Path(sys.argv[1])), Path(sys.argv[2])
if sys.argv[3] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
else:
    for folder, _, files in os.walk(sys.argv[1], topdown=False):
        for name in files:
            os.chmod(os.path.join(folder, name), 0o400)
        os.chmod(folder, 0o500)
for call in (lambda: kept.take(ws, "b"), lambda: kept.restore(ws, "a")):
    try:
        call()
    except VeilError as error:
        print(error.code)
print([each.label for each in kept.list(ws)], [change.path for change in kept.diff(ws, "a")])
""",
        tmp_path / "state",
        ws,
        kind,
    )
    assert told == "store_failed\nstore_failed\n['a'] ['f', 'large']\n"
    assert snapshot(ws) == before


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
def test_a_full_disk_leaves_the_tree_and_the_older_checkpoints(tmp_path: Path) -> None:
    code = f"""
import os, sys
sys.path[:0] = [{str(HERE)!r}, {str(ROOT)!r}]
from pathlib import Path
from ckpt_trees import snapshot
from veil.snapshots import Checkpoints
from veil.model.errors import VeilError
base = Path(sys.argv[1])
kept, ws = Checkpoints(base / "store" / "state"), base / "tree" / "ws"
ws.mkdir()
(ws / "f").write_bytes(os.urandom(600_000))
(ws / "g").write_bytes(os.urandom(200_000))
old = snapshot(ws)
kept.take(ws, "a")
(ws / "f").write_bytes(os.urandom(500_000)); (ws / "g").write_bytes(b"")
new = snapshot(ws)
for place in ("store", "tree"):
    filler = base / place / "filler"
    try:
        with open(filler, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
    except OSError as error:
        print(error.strerror)
    for call in (lambda: kept.take(ws, "b"), lambda: kept.restore(ws, "a")):
        try:
            call()
            print("done")
        except VeilError as error:
            print(place, error.code)
    assert snapshot(ws) == new
    filler.unlink()
kept.restore(ws, "a")
assert snapshot(ws) == old
kept.restore(ws, "before-restore")
assert snapshot(ws) == new
"""
    script = (
        'mkdir "$2/store" "$2/tree" && mount -t tmpfs -o size=4m none "$2/store" && '
        'mount -t tmpfs -o size=2m none "$2/tree" && exec "$0" -c "$1" "$2"'
    )
    argv = ["unshare", "-Urm", "sh", "-c", script, sys.executable, code, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    full = "No space left on device"
    assert done.stdout.split("\n")[:-1] == [
        full,
        "store store_failed",
        "store store_failed",
        full,
        "done",
        "tree not_restored",
    ]


def test_a_state_folder_that_is_closed_to_us_is_refused_by_name(ws: Path, tmp_path: Path) -> None:
    state = tmp_path / "closed"
    (state / "checkpoints").mkdir(parents=True)
    state.chmod(0)
    code = """
os.environ["VEIL_STATE_DIR"] = sys.argv[1]
import veil
for call in (veil.checkpoints, veil.checkpoint, veil.diff, veil.restore, lambda dir: veil.drop("a", dir)):
    try:
        call(dir=sys.argv[2])
    except VeilError as error:
        print(error.code, sys.argv[1] in str(error))
"""
    try:
        assert powerless(code, state, ws) == "not_ours True\n" * 5
    finally:
        state.chmod(0o700)


def test_what_is_damaged_can_be_dropped(kept: Checkpoints, ws: Path, tmp_path: Path) -> None:
    (ws / "f").write_text("x")
    kept.take(ws, "bad")
    kept.take(ws, "bad too")
    for pack in tmp_path.glob("state/checkpoints/*/packs/*"):
        pack.write_bytes(bytes(byte ^ 1 for byte in pack.read_bytes()))
    with pytest.raises(Refused, match=r"damaged|cannot be read"):
        kept.restore(ws, "bad")
    assert kept.drop(ws, "bad") == 1
    assert [each.label for each in kept.list(ws)] == ["bad too"]
    assert kept.drop(ws, "bad too") == 1
    kept.take(ws, "good")
    shutil.rmtree(ws)
    kept.restore(ws, "good")
    assert (ws / "f").read_text() == "x"
