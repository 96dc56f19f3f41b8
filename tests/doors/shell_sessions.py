"""Shell sessions for tests: one with bash that is closed at the end, and what a command in it writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import veil


@pytest.fixture
def sh(tmp_path: Path) -> Iterator[veil.Shell]:
    (tmp_path / "w").mkdir()
    with veil.shell(cwd=tmp_path / "w", effects=False) as session:
        yield session


def out(session: veil.Shell, command: str, **options: Any) -> str:
    """What it wrote to stdout; it must succeed and be silent on stderr."""
    result = session.run(command, **options)
    assert (result.exit, result.stderr) == (0, ""), result
    return result.stdout
