"""A workspace for each test of the boundary."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    """A workspace with a file and a folder; beside it a folder ``outside`` with a file ``secret``."""
    made = tmp_path / "ws"
    (made / "sub").mkdir(parents=True)
    (made / "in").write_text("inside\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret\n")
    return made
