"""The fixtures by their short names, each a plugin of its own, so that it can be left out.

A fixture of the same name in a test module or a conftest file comes before these, as pytest has it. One of another
plugin would lose against them only because of the order in which plugins are found: then these stay away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_veil.confining import VeilSandbox
    from pytest_veil.rewinding import VeilCheckpoint


class ShortCheckpoint:
    """Has the fixture ``checkpoint``."""

    @pytest.fixture
    def checkpoint(self, veil_checkpoint: VeilCheckpoint) -> VeilCheckpoint:
        """``veil_checkpoint`` by its short name."""
        return veil_checkpoint


class ShortSandbox:
    """Has the fixture ``sandbox``."""

    @pytest.fixture
    def sandbox(self, veil_sandbox: VeilSandbox) -> VeilSandbox:
        """``veil_sandbox`` by its short name."""
        return veil_sandbox


def register(manager: pytest.PytestPluginManager) -> None:
    """Add those that no other plugin has."""
    import inspect

    for name, plugin in (("checkpoint", ShortCheckpoint()), ("sandbox", ShortSandbox())):
        if not any(_is_fixture(inspect.getattr_static(other, name, None)) for other in manager.get_plugins()):
            manager.register(plugin, f"veil-{name}")


def _is_fixture(found: object) -> bool:
    # pytest before 8.4 marks the function, later ones have a class of which only the name is known to everybody
    return hasattr(found, "_pytestfixturefunction") or type(found).__name__ == "FixtureFunctionDefinition"
