"""Expectations on the result of a run, with failures that tell the whole story.

    from pytest_veil import expect
    expect(result).exit(0).stdout.contains("done").created("dist/app.js").not_.stderr.contains("warning")

Works without a pytest session too. ``seams`` holds what a session may exchange; ``explain``, ``runs_behind``
and ``say_once`` are for a plugin.
"""

from __future__ import annotations

from pytest_veil.expecting.aspects import FileExpectation, StreamExpectation
from pytest_veil.expecting.asserts import explain, runs_behind, say_once, told
from pytest_veil.expecting.failures import ExpectationError, Failure
from pytest_veil.expecting.fluent import NOT, Expect, Expectation
from pytest_veil.expecting.seams import FileFact, Listener, Looker, look_on_disk, using
from pytest_veil.expecting.soft import Soft

__all__ = [
    "NOT",
    "Expect",
    "Expectation",
    "ExpectationError",
    "Failure",
    "FileExpectation",
    "FileFact",
    "Listener",
    "Looker",
    "Soft",
    "StreamExpectation",
    "expect",
    "explain",
    "look_on_disk",
    "runs_behind",
    "say_once",
    "told",
    "using",
]

expect = Expect()
