"""What hooks of others make of keys and steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from veil.taping import Key, Step


def rekey_of(config: pytest.Config, nodeid: str) -> Callable[[Key], Key]:
    """The hook ``pytest_veil_key``, for what identifies the steps of a test."""

    def rekey(key: Key) -> Key:
        found: Key | None = config.hook.pytest_veil_key(config=config, nodeid=nodeid, key=key)
        return key if found is None else found

    return rekey


def edit_of(config: pytest.Config, nodeid: str) -> Callable[[Step], Step]:
    """The hook ``pytest_veil_record``, for the steps of a test before they are written."""

    def edit(step: Step) -> Step:
        found: Step | None = config.hook.pytest_veil_record(config=config, nodeid=nodeid, step=step)
        return step if found is None else found

    return edit
