"""Where the calls of these tests work, and a client of the raw protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_client import Client


@pytest.fixture
def here(tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def client(here: Path) -> Iterator[Client]:
    """Ready to be asked."""
    made = Client()
    try:
        made.hello()
        yield made
    finally:
        made.end()
