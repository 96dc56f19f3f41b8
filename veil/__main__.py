"""``python -m veil`` is the ``veil`` command."""

from __future__ import annotations

import sys

from veil.cli import main

if __name__ == "__main__":
    sys.exit(main())
