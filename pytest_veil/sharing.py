"""Runners that several tests share: whose they are, and whether all of those tests ran, here, to their end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_veil.pruning import collected_whole, part_chosen

if TYPE_CHECKING:
    from pytest_veil.grounds import Grounds

#: In what a worker of xdist is told: a folder that all workers see.
_COMMON = "veil_common"


def owner_of(request: pytest.FixtureRequest | None) -> Path | None:
    """Whose tests share what is made for a request: those of a file, of a folder, or (None) all."""
    if request is None or request.scope == "session":
        return None
    return Path(request.node.path if request.scope == "package" else request.path)


class Sharing:
    """A plugin; in every process that runs tests."""

    def __init__(self, config: pytest.Config, grounds: Grounds) -> None:
        self._config = config
        self._grounds = grounds
        self._items: list[pytest.Item] = []
        self._deselected: list[Path] = []
        self._failed: dict[str, Path] = {}
        self._ran: set[str] = set()

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._deselected += [item.path for item in items]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._items = session.items

    def hear(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """One more report of a test; a test that is set up again has not failed yet."""
        if report.when == "setup":
            self._failed.pop(item.nodeid, None)
        if report.failed:
            self.fail(item)
        if report.when == "call" and (not report.skipped or hasattr(report, "wasxfail")):
            self._ran.add(item.nodeid)

    def fail(self, item: pytest.Item) -> None:
        """The test failed."""
        self._failed[item.nodeid] = item.path

    def failed(self, owner: Path | None) -> bool:
        """Whether a test of the owner did."""
        return any(_shares(path, owner) for path in self._failed.values())

    def part(self, owner: Path | None) -> str | None:
        """Why not all tests of the owner ran here, in words; None when they did."""
        chosen = part_chosen(self._config, but=["maxfail"])
        if chosen is not None:
            return chosen
        if any(_shares(path, owner) for path in self._deselected):
            return "tests were deselected"
        if not collected_whole(self._config, owner or self._config.rootpath):
            return "a part of the tests was named"
        late = [item.nodeid for item in self._items if item.nodeid not in self._ran and _shares(item.path, owner)]
        return f"{late[0]} did not run to its end here" if late else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker of xdist learns of a folder that all of them see."""
        node.workerinput[_COMMON] = str(self._grounds.folder())

    @property
    def common(self) -> Path | None:
        """The folder that all workers see; None where there are none."""
        told = getattr(self._config, "workerinput", None)
        return None if told is None else Path(told[_COMMON])


def _shares(path: Path, owner: Path | None) -> bool:
    return owner is None or path == owner or owner in path.parents
