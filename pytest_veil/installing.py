"""Turning on everything that says something of the tests."""

from __future__ import annotations

import pytest

from pytest_veil.outcomes import ACTIVE, Active
from pytest_veil.report import GATHERED, Carrier, Gathered
from pytest_veil.rerunning import Verify
from pytest_veil.terminal import Terminal


def install(config: pytest.Config, active: Active) -> None:
    """Turn on everything that says something.

    To be called after the registration of whatever calls ``note`` while a report is made: what is registered last
    comes to a report last.
    """
    config.stash[ACTIVE] = active
    config.pluginmanager.register(Carrier(), "veil-carrier")
    config.pluginmanager.register(Verify(config), "veil-verify")
    if not hasattr(config, "workerinput"):
        gathered = config.stash[GATHERED] = Gathered(config)
        config.pluginmanager.register(gathered, "veil-report")
        config.pluginmanager.register(Terminal(gathered), "veil-terminal")
