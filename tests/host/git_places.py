"""A repository for the tests of internal git, made by the real one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from veil.host.repository import Repository, find

IDENTITY = ("-c", "user.name=tester", "-c", "user.email=tester@example.org")


def run(cwd: Path, *arguments: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=cwd, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path / "place"
    root.mkdir()
    run(root, "init", "-q", "-b", "main")
    for name in ("f", "g"):
        (root / name).write_text(f"{name}\n")
    run(root, "add", ".")
    run(root, "commit", "-q", "-m", "one")
    return root


def repository(root: Path) -> Repository:
    found = find(str(root))
    assert found is not None
    return found
