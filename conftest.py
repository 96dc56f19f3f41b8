"""What the whole suite shares. Tests never use the developer's own record store."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = "pytester"


@pytest.fixture(autouse=True, scope="session")
def one_project() -> None:
    """A process's project is where it first used veil: here, not in the folder of whichever test comes first."""
    from veil import wiring

    wiring.session({})


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a state directory of its own, and no ``VEIL_*`` variable of the caller's."""
    import os

    for name in list(os.environ):
        if name.startswith("VEIL_"):
            monkeypatch.delenv(name)
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("VEIL_STATE_DIR", str(state))
    return state
