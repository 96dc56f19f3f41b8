"""The backends of the sandbox, one after the other, and a folder that all of them leave where it is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confining import HERE

from veil.host.confine.backends import backend


@pytest.fixture(params=HERE)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    reason = backend(chosen).unavailable()
    if reason is not None:
        pytest.skip(f"needs {chosen}: {reason}")
    return chosen


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder outside of every temporary folder that a backend may put something else in the place of."""
    with tempfile.TemporaryDirectory(prefix="veil-test-", dir="/var/tmp") as made:
        yield Path(made).resolve()
