"""All that a checkpoint promises to bring back, in one value that can be compared; and a process without powers."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def snapshot(root: Path, skip: str = "") -> dict[str, Any]:
    """Facts by path below ``root`` (sockets by name only), and the groups of paths that are one file."""
    found: dict[str, Any] = {}
    inodes: dict[int, list[str]] = {}

    def look(path: str, shown: str) -> None:
        s = os.lstat(path)
        facts: list[Any] = [stat.S_IFMT(s.st_mode), s.st_uid, s.st_gid]
        if not stat.S_ISSOCK(s.st_mode):
            facts += [stat.S_IMODE(s.st_mode), s.st_mtime_ns]
        if stat.S_ISLNK(s.st_mode):
            facts.append(os.readlink(path))
        elif stat.S_ISREG(s.st_mode):
            facts.append(Path(path).read_bytes())
            inodes.setdefault(s.st_ino, []).append(shown)
        if hasattr(os, "listxattr") and (stat.S_ISREG(s.st_mode) or stat.S_ISDIR(s.st_mode)):
            facts.append({name: os.getxattr(path, name) for name in os.listxattr(path)})
        found[shown] = facts
        if stat.S_ISDIR(s.st_mode):
            for name in sorted(os.listdir(path)):
                below = f"{shown}/{name}" if shown else name
                if below != skip:
                    look(os.path.join(path, name), below)

    look(str(root), "")
    found["links"] = sorted(sorted(group) for group in inodes.values() if len(group) > 1)
    return found


def give_up_powers() -> None:
    """Make this process an ordinary one: root without capabilities is refused what modes refuse."""
    if os.geteuid() == 0:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        nothing = (ctypes.c_uint32 * 6)()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.capset(header, nothing) != 0:
            raise OSError(ctypes.get_errno(), "capset")


def powerless(code: str, *arguments: object) -> str:
    """What ``code`` prints in a process of its own without powers. ``sys.argv[1:]`` are the arguments."""
    lines = f"import sys\nsys.path[:0] = [{str(HERE)!r}, {str(ROOT)!r}]\n"
    lines += "from ckpt_trees import give_up_powers\nfrom veil.snapshots import Checkpoints\n"
    lines += "from veil.model.errors import VeilError\nimport os\ngive_up_powers()\n"
    argv = [sys.executable, "-c", lines + code, *map(str, arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
