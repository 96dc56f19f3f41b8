"""A small tree for the tests of previews, and the code of a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

import veil


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a").write_text("a")
    return root


def code_of(refusal: pytest.ExceptionInfo[veil.VeilError]) -> str:
    return refusal.value.code
