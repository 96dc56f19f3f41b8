"""A repository with a history of two commits, for recordings that start from a revision."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def repository(root: Path) -> Path:
    """Makes ``root`` one, whose file ``f`` was 1 and is 2."""
    root.mkdir()
    script = "git init -q . && echo 1 > f && git add f && git commit -qm one && echo 2 > f && git commit -qam two"
    names = {f"GIT_{who}_{what}": "t@e.st" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(script, shell=True, cwd=root, check=True, env={**os.environ, **names})
    return root
