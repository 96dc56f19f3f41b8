"""The pytest plugin.

``from pytest_veil import expect`` works with and without a pytest session. Names are looked up when they are first
used, because every pytest session imports this package, also one that never uses veil.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_veil.expecting import (
        Expect,
        Expectation,
        ExpectationError,
        FileExpectation,
        FileFact,
        StreamExpectation,
        expect,
    )

_EXPECTING = (
    "Expect",
    "Expectation",
    "ExpectationError",
    "FileExpectation",
    "FileFact",
    "StreamExpectation",
    "expect",
)

__all__ = [
    "Expect",
    "Expectation",
    "ExpectationError",
    "FileExpectation",
    "FileFact",
    "StreamExpectation",
    "expect",
]


def __getattr__(name: str) -> object:
    if name not in _EXPECTING:
        raise AttributeError(f"module 'pytest_veil' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module("pytest_veil.expecting"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
