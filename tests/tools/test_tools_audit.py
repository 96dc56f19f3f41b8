"""Of every governed request the audit has a line, also of one that no tool could read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from veil import tools
from veil.governed import Boundary, Policy

pytestmark = pytest.mark.linux


@pytest.mark.parametrize("arguments", [{"argv": ["true"], "cwd": "/"}, {}, {"argv": "true"}])
def test_a_call_that_cannot_be_read_leaves_a_line(tmp_path: Path, arguments: dict[str, object]) -> None:
    (tmp_path / "work").mkdir()
    audit = tmp_path / "audit.jsonl"
    boundary = Boundary(tmp_path / "work", Policy("always_deny"), audit=audit)
    box = tools.Toolbox(boundary=boundary)
    try:
        answer = box.call("run_shell_command", arguments)
    finally:
        box.close()
    assert answer["error"]
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line["kind"] for line in lines].count("request") == 1
