"""A store of checkpoints and a folder to keep, for each test of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from veil.snapshots import Checkpoints


@pytest.fixture
def kept(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "state")


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder
