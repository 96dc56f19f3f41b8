"""Write ``docs/tools.json``, the schemas of all tools: ``python docs/make_tools.py``. A test holds it to the code."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from veil import tools
from veil.governed import Audit, Boundary


def table() -> list[dict[str, Any]]:
    """Every tool as plain data, the governed one too."""
    with tempfile.TemporaryDirectory() as folder:
        box = tools.Toolbox(boundary=Boundary(folder, audit=Audit()))
        found = [tool.to_dict() for tool in box.tools]
        box.close()
    return found


def render() -> str:
    """The whole file."""
    return json.dumps(table(), indent=1) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("tools.json").write_text(render(), encoding="utf-8")
