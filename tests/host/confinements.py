"""Running something inside a backend as root or as a plain user, by a driver that has nothing but the package."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import veil

ROOT = pytest.param(0, id="root", marks=pytest.mark.needs("root"))
#: Somebody without powers.
PLAIN = 1001 if os.getuid() == 0 else os.getuid()
USER = pytest.param(PLAIN, id="user")

SYSTEM = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
#: Reads what to do, does it in a sandbox, and writes what came of it.
DRIVER = """
import json, os, subprocess, sys
from veil.host import restricted
from veil.host.confine.backends import backend, pick
from veil.host.confine.base import Bounds
from veil.model.errors import VeilError
from veil.model.outcome import Outcome, Stream
order = json.load(sys.stdin)
bounds = Bounds(**{name: tuple(value) if isinstance(value, list) else value for name, value in order["bounds"].items()})
chosen = pick(order["backend"], bounds)
environment = {**os.environ, **order["env"]}
answer = {"backend": chosen.name, "lacks": chosen.lacks(bounds), "gaps": chosen.gaps(bounds), "runs": []}
for argv in order["commands"]:
    try:
        with chosen.confine(tuple(argv), bounds) as wrapped:
            child = restricted.start(
                wrapped.restrict,
                lambda: subprocess.Popen(
                    wrapped.argv, cwd=bounds.cwd, pass_fds=wrapped.pass_fds, start_new_session=True,
                    env={**environment, "TMPDIR": wrapped.temp or bounds.temp},
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                ),
            )
            if wrapped.started is not None:
                wrapped.started()
            out, err = child.communicate(timeout=100)
            code = child.returncode
            outcome = Outcome(
                "exited" if code >= 0 else "signaled", code if code >= 0 else 128 - code,
                stdout=Stream(out, b"", len(out), 0), stderr=Stream(err, b"", len(err), 0),
            )
            if wrapped.settle is not None:
                outcome = wrapped.settle(outcome)
        answer["runs"].append([outcome.ended, outcome.exit, out.decode(), err.decode(), outcome.spawn_error])
    except VeilError as error:
        answer["runs"].append(["error", error.code, str(error), "", None])
json.dump(answer, sys.stdout)
"""


@dataclasses.dataclass(frozen=True)
class Ended:
    ended: str
    exit: Any
    stdout: str
    stderr: str
    spawn_error: str | None


@dataclasses.dataclass(frozen=True)
class Answer:
    backend: str
    lacks: str | None
    gaps: list[str]
    runs: list[Ended]


class Place:
    """A folder that everybody may enter, with a working folder, a temporary one and one outside, all of the user's."""

    def __init__(self, base: Path, user: int) -> None:
        self.user = user
        self.base = base
        self.python = python_for(user)
        self.cwd, self.temp, self.outside, self.home = (base / name for name in ("cwd", "temp", "outside", "home"))
        for folder in (self.cwd, self.temp, self.outside, self.home):
            folder.mkdir(mode=0o755)
        shutil.copytree(
            Path(veil.__file__).parent, base / "code" / "veil", ignore=shutil.ignore_patterns("__pycache__")
        )
        self.give(base)

    def give(self, path: Path) -> None:
        """Everything below becomes the user's."""
        if os.getuid() == 0:
            for below in (path, *path.rglob("*")):
                os.chown(below, self.user, self.user, follow_symlinks=False)

    def bounds(self, **more: Any) -> dict[str, Any]:
        given = {"cwd": str(self.cwd), "temp": str(self.temp), **more}
        return {
            name: [str(path) for path in value] if isinstance(value, (list, tuple)) else value
            for name, value in given.items()
        }

    def run(
        self,
        backend: str | None,
        *commands: list[str],
        around: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        **more: Any,
    ) -> Answer:
        """Each command confined, one after the other in one process. ``around``: words in front of the driver."""
        order = {"backend": backend, "bounds": self.bounds(**more), "commands": commands, "env": env or {}}
        done = subprocess.run(
            [*around, self.python, "-B", "-c", DRIVER],
            input=json.dumps(order),
            capture_output=True,
            text=True,
            timeout=150,
            cwd="/",
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "HOME": str(self.home),
                "PYTHONPATH": str(self.base / "code"),
            },
            **as_user(self.user),
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        return Answer(told["backend"], told["lacks"], told["gaps"], [Ended(*run) for run in told["runs"]])

    def script(self, backend: str, text: str, **more: Any) -> Ended:
        """One Python program confined, without any of the package's modules."""
        return self.run(backend, [self.python, "-I", "-S", "-B", "-c", text], **more).runs[0]

    def shell(self, backend: str, text: str, **more: Any) -> Ended:
        return self.run(backend, ["/bin/sh", "-c", text], **more).runs[0]


def as_user(user: int) -> dict[str, Any]:
    return {} if user == os.getuid() else {"user": user, "group": user, "extra_groups": []}


def python_for(user: int) -> str:
    """A Python that this user can run: the one under test may lie in somebody's home."""
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            if subprocess.run([candidate, "-I", "-S", "-c", ""], cwd="/", **as_user(user)).returncode == 0:
                return candidate
        except OSError:
            continue
    pytest.skip(f"needs a Python that user {user} can run: install python3 for all users")


def place_for(user: int) -> Iterator[Place]:
    """A place that is gone afterwards, outside of what a backend hides."""
    if os.getuid() not in (0, user):
        pytest.skip(f"needs root: to become user {user}")
    with tempfile.TemporaryDirectory(prefix="veil-test-", dir="/var/tmp") as made:
        os.chmod(made, 0o755)
        yield Place(Path(made).resolve(), user)
