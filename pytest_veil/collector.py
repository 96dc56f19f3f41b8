"""Recordings that stand alone as tests: ``*.veil.txtar`` outside a folder ``cassettes``. Imports only pytest.

Nothing is read while collecting: a file that is torn is a test that fails, and ten thousand files cost their names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: Folders of this name hold the recordings of Python tests.
FOLDER = "cassettes"
SUFFIX = ".veil.txtar"


class Collector:
    """The plugin; registered while the eval mode is on.

    Args:
        cassettes: the root of the recordings of Python tests, when one was chosen.
    """

    def __init__(self, cassettes: Path | None) -> None:
        self._cassettes = None if cassettes is None else str(cassettes) + os.sep

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if not file_path.name.endswith(SUFFIX) or self._of_a_test(file_path, parent.config.rootpath):
            return None
        node: pytest.Collector = CassetteFile.from_parent(parent, path=file_path)
        return node

    def _of_a_test(self, path: Path, root: Path) -> bool:
        """Folders above the root of the run say nothing: somebody may keep the whole project in a ``cassettes``."""
        text = str(path)
        if self._cassettes is not None and text.startswith(self._cassettes):
            return True
        above = str(root) + os.sep
        inner = text[len(above) :] if text.startswith(above) else text
        return FOLDER in inner.split(os.sep)[:-1]


class CassetteFile(pytest.File):
    """One file."""

    def collect(self) -> Iterator[CassetteItem]:
        yield CassetteItem.from_parent(self, name=self.path.name.removesuffix(SUFFIX))


class CassetteItem(pytest.Item):
    """The trajectory in one file."""

    def runtest(self) -> None:
        from pytest_veil.trajectories import run

        run(self)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from pytest_veil.substeps import StepsFailed
        from pytest_veil.trajectories import shown_failure
        from veil import VeilError

        if not isinstance(excinfo.value, (StepsFailed, VeilError, pytest.UsageError)):
            return super().repr_failure(excinfo, style)
        return shown_failure(self.location[0], str(excinfo.value))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name
