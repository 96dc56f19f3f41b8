"""The command line. This module is what the ``veil`` script imports first, so it imports next to nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code.

    Args:
        argv: arguments after the program's name (default: those of this process).
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        import veil

        print(f"veil {veil.__version__}")
        return 0
    from veil.cli.program import execute

    return execute(words)
