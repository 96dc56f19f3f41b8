"""Taking a folder away that a command worked in: whatever its modes are, and whoever is still at work in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
