"""What was kept of earlier runs, by id."""

from __future__ import annotations

import os
from typing import Any

from veil import wiring


class Detail:
    pass


def detail(id: str | None = None) -> Any: ...


def runs() -> Any: ...
