"""Taking a folder away that a command worked in: whatever its modes are, and whoever is still at work in it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from veil.host import removing
from veil.host.differing import Compared, state_of

ROOT = Path(__file__).parents[2]

#: Root without capabilities is held by modes as everybody is.
PROGRAM = """
import ctypes, os, sys, threading
from veil.host import prctl, removing
base = sys.argv[1]
prctl.drop_capabilities()
libc = ctypes.CDLL(None)
done = threading.Event()

def exchanging(one, other):
    while not done.is_set():
        libc.renameat2(-100, one, -100, other, 2)

for number in range(int(sys.argv[2])):
    tree = os.path.join(base, "tree")
    os.makedirs(os.path.join(tree, "a", "b"))
    os.mkdir(os.path.join(tree, "folder"))
    os.symlink(os.path.join(base, "outside"), os.path.join(tree, "link"))
    os.chmod(os.path.join(tree, "a", "b"), 0)
    os.chmod(os.path.join(tree, "a"), 0)
    done.clear()
    names = [os.fsencode(os.path.join(tree, name)) for name in ("folder", "link")]
    threads = [threading.Thread(target=exchanging, args=names)] if number else []
    for thread in threads:
        thread.start()
    try:
        removing.remove(tree)
    except OSError:
        if not number:
            raise
    done.set()
    for thread in threads:
        thread.join()
    if os.path.exists(tree):
        removing.remove(tree)
    mode = os.stat(os.path.join(base, "outside")).st_mode & 0o777
    if mode != 0o500:
        sys.exit(f"round {number}: the folder outside has mode {mode:o}")
print("held")
"""


@pytest.mark.linux
def test_modes_that_a_command_took_away_and_links_that_it_swaps_in(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (outside / "kept").touch() if os.geteuid() == 0 else None
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path), "60"]
    done = subprocess.run(
        argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == ("held\n", 0), done.stderr
    assert not (tmp_path / "tree").exists()
    assert outside.stat().st_mode & 0o777 == 0o500


#: Few descriptors, and more levels than Python calls itself.
DEEP = """
import os, resource, sys
from veil.host import removing
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
os.mkdir(sys.argv[1])
os.chdir(sys.argv[1])
os.symlink("../outside", "link")
for level in range(int(sys.argv[2])):
    for name in ("a", "b"):
        os.mkdir(name)
    open("file", "w").close()
    os.symlink(sys.argv[3], "link-too")
    os.chdir("a")
os.chdir("/")
opened = len(os.listdir("/dev/fd"))
removing.remove(sys.argv[1])
print(os.path.lexists(sys.argv[1]), len(os.listdir("/dev/fd")) - opened)
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """What a failing test leaves in it is gone before pytest, which calls itself for every level, gets there."""
    made = tmp_path / "place"
    made.mkdir()
    yield made
    subprocess.run(["rm", "-rf", "--", str(made)], check=True)


@pytest.mark.parametrize("levels", [3, 300, 2500])
def test_no_depth_is_too_deep_and_no_link_is_followed(place: Path, levels: int) -> None:
    outside = place / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    argv = [sys.executable, "-c", DEEP, str(place / "tree"), str(levels), str(outside)]
    done = subprocess.run(
        argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == ("False 0\n", 0), done.stderr[-2000:]
    assert (outside / "kept").exists()


def test_a_link_is_no_folder_to_take_away(place: Path) -> None:
    (place / "outside").mkdir()
    (place / "outside" / "kept").touch()
    (place / "link").symlink_to("outside")
    with pytest.raises(OSError, match="link"):
        removing.remove(str(place / "link"))
    assert (place / "outside" / "kept").exists()
    with pytest.raises(FileNotFoundError):
        removing.remove(str(place / "nothing"))


@pytest.mark.linux
@pytest.mark.needs("root")
def test_a_tree_of_a_lower_layer_in_which_nothing_can_be_moved(place: Path) -> None:
    """As in an image of a container: a folder of a layer below cannot be renamed (EXDEV)."""
    program = """
import os, sys
from veil.host import removing
try:
    os.rename("merged/tree/a", "merged/moved")
except OSError as error:
    print(error.strerror)
removing.remove("merged/tree")
print(os.listdir("merged"), os.path.exists("lower/tree/a/b/file"))
"""
    script = (
        'mount -t tmpfs none . && cd "$PWD" && mkdir -p lower/tree/a/b upper work merged && '
        "touch lower/tree/a/b/file && mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work merged && "
        'exec "$0" -c "$1"'
    )
    argv = ["unshare", "-m", "sh", "-c", script, sys.executable, program]
    done = subprocess.run(
        argv, cwd=place, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "Invalid cross-device link\n[] True\n", done.stderr


def test_somebody_else_who_deletes_in_it_meanwhile(place: Path) -> None:
    tree = place / "tree"
    for _ in range(30):
        names = [tree / f"folder{number % 20}" / f"file{number}" for number in range(400)]
        for name in names:
            name.parent.mkdir(parents=True, exist_ok=True)
            name.touch()
        other = threading.Thread(target=_delete, args=(names,))
        other.start()
        removing.remove(str(tree))
        other.join()
        assert not tree.exists()


def _delete(names: list[Path]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            name.unlink()
            name.parent.rmdir() if not os.listdir(name.parent) else None


def test_a_deep_tree_that_is_gone_in_a_view(place: Path) -> None:
    nested = place
    levels = (os.pathconf(place, "PC_PATH_MAX") - len(str(place)) - 20) // 2
    for _ in range(levels):
        nested /= "a"
        nested.mkdir()
    before = state_of(str(place / "a"))
    assert before is not None
    found = Compared()
    found.gone("a", str(place / "a"), before)
    assert [each.path for each in found.all().touched] == ["/".join("a" * number) for number in range(1, levels + 1)]
    assert found.gaps == []
