"""Runs pytest on a small suite in a process of its own, as a user would."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

#: Plugins of this checkout's environment that have nothing to do with what is tested.
_QUIET = ("-p", "no:randomly", "-p", "no:asyncio", "-p", "no:cacheprovider")


class Suite:
    """A folder with tests."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        pytester.makeini("[pytest]\n")

    def write(self, name: str, text: str) -> Path:
        """A file below the folder."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run(self, *arguments: str, timeout: float = 120) -> pytest.RunResult:
        """pytest; never with an error inside."""
        result = self.pytester.runpytest_subprocess(*_QUIET, *arguments, timeout=timeout)
        assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
        return result

    def cassettes(self, folder: str = "cassettes") -> dict[str, bytes]:
        """Name and content of each recording."""
        return {path.name: path.read_bytes() for path in sorted((self.path / folder).glob("*.veil.txtar"))}


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Suite:
    return Suite(pytester)
