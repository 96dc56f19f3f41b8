"""A folder, a repository, and the layer that watches what a real command changes in them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from veil.layers.effects import EffectsLayer
from veil.model.command import Command, Effects, Request
from veil.model.outcome import Findings, Outcome
from veil.model.plan import Launch, Plan

#: Forces the stat scan, forces git.
WAYS = {"scan": 1_000_000, "git": -1}
IDENTITY = "git config user.name tester; git config user.email tester@example.org; "


def shell(cwd: Path, script: str) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "file"}
    subprocess.run(["bash", "-c", script], cwd=cwd, env=env, check=True, capture_output=True)


def watch(layer: EffectsLayer, cwd: Path, script: str, *, ignored: bool = False) -> Findings:
    """The findings of the layer around a real run of ``script``."""
    launch = Launch(("bash", "-c", script), str(cwd), {})
    plan = Plan(Request(Command(launch.argv, launch.cwd)))
    entered = layer.enter(Effects(ignored), launch, plan)
    assert next(entered) is launch
    shell(cwd, script)
    with pytest.raises(StopIteration) as end:
        entered.send(Outcome("exited", 0))
    findings = end.value.value
    assert isinstance(findings, Findings)
    return findings


def rows(findings: Findings) -> list[str]:
    """``word path`` and more where it says something: ``renamed old>path``, ``created link (symlink)``."""
    assert findings.changes is not None, findings.notes
    told = []
    for change in findings.changes:
        name = change.path if change.old is None else f"{change.old}>{change.path}"
        told.append(f"{change.change} {name}" + ("" if change.kind == "file" else f" ({change.kind})"))
    return told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "place"
    place.mkdir()
    return place


def layer_for(tmp_path: Path, way: str, **options: object) -> EffectsLayer:
    return EffectsLayer(tmp_path / "locks", git_first=WAYS[way], **options)  # type: ignore[arg-type]


REPOSITORY = (
    "git init -q -b main; " + IDENTITY + "mkdir s; echo 1 > f; echo 2 > g; echo a > s/a; echo b > s/b; "
    "printf '*.log\\nbuild/\\n' > .gitignore; git add .; git commit -qm one"
)
INNER = (
    "git init -q inner; (cd inner; " + IDENTITY + "echo z > z; echo '*.tmp' > .gitignore; git add .; git commit -qm i)"
)
