"""The command line. This module is what the ``veil`` script imports first, so it imports next to nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code.

    Args:
        argv: arguments after the program's name (default: those of this process).
    """
    _fill_standard_descriptors()
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        import veil

        print(f"veil {veil.__version__}")
        return 0
    from veil.cli.program import execute

    return execute(words)


def _fill_standard_descriptors() -> None:
    """A standard descriptor that the caller closed is opened on nothing, or the next file would get its number.

    Before anything is imported: libffi, for one, keeps a file open, so that a later look would not tell.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
