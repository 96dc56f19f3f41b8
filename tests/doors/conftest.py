"""A test of the command line that fails half-way must not leave its background runs to the machine."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

_OWNER = b"veil.cli.owner"


@pytest.fixture(autouse=True)
def no_owner_left(own_state: Path) -> Iterator[None]:
    """Owners of ``veil start`` below this test's state folder are ended with it; their commands die with them."""
    yield
    mark = b"VEIL_STATE_DIR=" + os.fsencode(own_state)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if _OWNER in (process / "cmdline").read_bytes() and mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
