"""What a report of a failed test says besides: the runs that a plain assert spoke of, and where records are."""

from __future__ import annotations

import pytest

from pytest_veil.expecting import runs_behind, say_once, told


def explain_failure(report: pytest.TestReport, error: BaseException) -> None:
    """Add a section for each run that the failed ``assert`` speaks of, and say nothing twice."""
    say_once(getattr(report.longrepr, "reprcrash", None))
    for result in runs_behind(error):
        report.sections.append((f"veil run {result.id}", told(result)))
