"""Hooks for other plugins and ``conftest.py`` files. Each is documented in docs/pytest.md.

All of them are called only while the eval mode is on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_veil.outcomes import ItemOutcome
    from veil.taping import Key, Normaliser, Step


@pytest.hookspec
def pytest_veil_normalisers(config: pytest.Config) -> Iterable[Normaliser]:  # type: ignore[empty-body]
    """Further normalisers, tried before those of veil. Made with ``veil.taping.numbered`` or ``erased``.

    Called once, when the eval mode starts.
    """


@pytest.hookspec
def pytest_veil_scrub(config: pytest.Config, nodeid: str) -> Iterable[str]:  # type: ignore[empty-body]
    """Further secret values that must not stand in the recording or the report of this test.

    Called when the test first uses veil. A value too short or too common to be replaced safely fails the test.
    """


@pytest.hookspec(firstresult=True)
def pytest_veil_key(config: pytest.Config, nodeid: str, key: Key) -> Key | None:
    """What makes two runs the same question, differently. ``None`` leaves it as it is.

    Called for every recorded step and for what is asked, so that both are changed alike.
    """


@pytest.hookspec(firstresult=True)
def pytest_veil_record(config: pytest.Config, nodeid: str, step: Step) -> Step | None:
    """A step is about to be written: return another one to write that instead, ``None`` to write it as it is.

    An exception fails the test, and nothing of it is written.
    """


@pytest.hookspec
def pytest_veil_verdict(config: pytest.Config, outcome: ItemOutcome) -> None:
    """What the eval mode says of one test. Called where the report is written, never in a worker of xdist."""
