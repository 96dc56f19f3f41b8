"""What the tests of the boundary share: a small workspace, programs of its own, and a boundary around it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from veil.governed import Audit, Boundary, Policy, Rule

FREE = Policy("always_allow", judgements={"interpreters": "allow"})
PYTHON = sys.executable


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def allow(*names: str) -> tuple[Rule, ...]:
    """A rule for each of these programs."""
    return tuple(Rule(f"allow {name}", "allow", prefix=(name,)) for name in names)


def bounded(workspace: Path, policy: Policy | tuple[Rule, ...] = (), **more: Any) -> Boundary:
    """A boundary that keeps its audit in memory and runs without a supervisor, unless told otherwise."""
    made = policy if isinstance(policy, Policy) else Policy("allowlist", policy)
    return Boundary(workspace, made, **{"audit": Audit(), "contain": False, "effects": False, **more})


def kinds(boundary: Boundary) -> list[str]:
    """The kinds of lines of its audit, in order."""
    return [line["kind"] for line in boundary.audit.lines()]


@pytest.fixture
def py(ws: Path) -> list[str]:
    """How these tests start Python: by its name in a PATH that holds it."""
    return [Path(PYTHON).name, "-c"]


def free(ws: Path, **more: object) -> Boundary:
    return bounded(ws, FREE, path=[str(Path(PYTHON).parent), "/usr/bin", "/bin"], **more)
