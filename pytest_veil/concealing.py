"""Secrets taken out of what a report of a test shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_veil.scenes import Scene


def conceal(report: pytest.TestReport, scene: Scene) -> None:
    """Take what the scene keeps secret out of the failure text and the captured output, in place."""
    if scene.settings.mode in ("off", "live") or not (report.longrepr or report.sections):
        return
    hide = scene.conceal()
    report.longrepr = _concealed(report.longrepr, hide)
    report.sections = [(hide(name), hide(text)) for name, text in report.sections]


def _concealed(value: Any, hide: Callable[[str], str]) -> Any:
    """Texts anywhere in pytest's own failure objects."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [_concealed(part, hide) for part in value]
    if isinstance(value, tuple):
        return tuple(_concealed(part, hide) for part in value)
    if type(value).__module__.startswith("_pytest."):
        for name, part in list(vars(value).items()):
            if isinstance(part, (str, list, tuple)) or type(part).__module__.startswith("_pytest."):
                setattr(value, name, _concealed(part, hide))
    return value
