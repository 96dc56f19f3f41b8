"""Each step of a trajectory as a subtest, where pytest has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_veil.outcomes import StepRow

#: Characters of a command in the name of a subtest.
_NAME = 60


class StepsFailed(Exception):
    """A step, or several, that do not hold. Its text is for people; its first line alone tells what went wrong."""


def subtests_of(item: pytest.Item) -> Callable[[str], AbstractContextManager[object]] | None:
    """What makes a subtest of a name, where pytest has them (since 9.0) and nobody turned them off."""
    if not item.config.pluginmanager.hasplugin("subtests"):
        return None
    try:
        from _pytest.subtests import Subtests
    except ImportError:
        return None
    capture = item.config.pluginmanager.getplugin("capturemanager")
    suspend = nullcontext if capture is None else capture.global_and_fixture_disabled
    # the fixture is for functions; this is all that it asks of its request
    request: Any = SimpleNamespace(node=item, config=item.config, session=item.session)
    return Subtests(item.ihook, suspend, request, _ispytest=True).test


def name_of(number: int, command: str, word: str = "") -> str:
    """The name of the subtest of a step; a word would not look the same in every process if it were a keyword."""
    text = command.replace("\n", "\\n").encode("utf-8", "backslashreplace").decode("utf-8")  # it crosses processes
    return f"step {number}{word and f', {word}'}: {text if len(text) <= _NAME else text[: _NAME - 3] + '...'}"


def tell_steps(item: pytest.Item, rows: Iterable[tuple[StepRow, str | None]]) -> bool:
    """A subtest for each step, with its word; it fails where there is a message.

    Returns whether all of them were told: not where there are no subtests, nor after the last failure that is allowed.
    """
    test = subtests_of(item)
    if test is None:
        return False
    try:
        for row, message in rows:
            with test(name_of(row.number, row.command, row.word)):
                if message is not None:
                    raise StepsFailed(message)
    except StepsFailed:  # pytest lets it through when it is to stop
        return False
    return True
