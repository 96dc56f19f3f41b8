"""Tries everything in one backend as the user who runs this, and prints what came of it as JSON.

``python try_all.py BASE BACKEND [WORDS...]`` with facts in the environment (``ESCAPE_...``). ``BASE``: a folder of this
user's, with the attempts in ``attempts`` and veil in ``code``. ``BACKEND``: a backend's name, or ``none`` for no
sandbox at all: then everything that is harmless has to get through, or an attempt that is held elsewhere shows nothing.
``WORDS``: only attempts with one of these in their names.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from attempts import Attempt, everything
from scene import Scene

import veil
from veil.host.confine import backends

_CARRY_OUT = "import sys; sys.path.insert(0, {!r}); from calls import carry_out; carry_out({!r}, {!r})"
_KILLED_BY_THE_FILTER = (-signal.SIGSYS, 128 + signal.SIGSYS)


def command(attempt: Attempt, attempts: str) -> str | list[str]:
    if attempt.code:
        return attempt.code
    code = _CARRY_OUT.format(attempts, attempt.module, attempt.function)
    return [sys.executable, "-I", "-S", "-B", "-c", code]


def tried(scene: Scene, attempt: Attempt, backend: str) -> dict[str, Any]:
    """One attempt, and what is to be said of it: ``verdict``, ``evidence``, ``gaps``, ``told``."""
    scene.restore()
    stay = f"37.{os.getpid()}{time.monotonic_ns() % 10**9}"
    facts = {f"ESCAPE_{name}": value for name, value in scene.facts.items()} | {"ESCAPE_STAY": stay}
    sandbox = {"network": attempt.network, "protect_secrets": True, "backend": backend} if backend != "none" else None
    result = veil.run(
        command(attempt, str(scene.base / "attempts")),
        cwd=scene.work,
        env=facts,
        sandbox=sandbox,
        effects=False,
        no_store=True,
        timeout=60,
    )
    told = result.stdout_bytes + result.stderr_bytes
    if attempt.function == "clearing":
        time.sleep(0.6)  # as long as it goes on
    evidence = [line for line in told.decode("utf-8", "replace").splitlines() if line.startswith("THROUGH")]
    if attempt.later:
        _look_later(scene, backend)
    evidence += [f"told: {name}" for name in scene.leaked(told)]
    evidence += scene.differences()
    evidence += _stayed(stay)
    if evidence:
        verdict = "through"
    elif b"\nCANNOT" in b"\n" + told:
        verdict = "unmade"
    elif _was_made(attempt, result, told):
        verdict = "held"
    else:
        verdict = "faulty"
    gaps = result.sandbox["gaps"] if result.sandbox else []
    return {"verdict": verdict, "evidence": evidence[:20], "gaps": gaps, "told": told.decode("utf-8", "replace")[-600:]}


def _was_made(attempt: Attempt, result: veil.Result, told: bytes) -> bool:
    """Whether it came to the point, and not to grief over a mistake of its own."""
    if result.ended not in ("exited", "signaled"):
        return False
    if attempt.later:
        return result.exit == 0  # it was left behind
    if attempt.code:
        return b"command not found" not in told and b"syntax error" not in told
    return b"\nTRIED" in b"\n" + told or result.exit in _KILLED_BY_THE_FILTER


def _look_later(scene: Scene, backend: str) -> None:
    """Somebody comes to the folder when the attempt is over."""
    if backend != "none":
        veil.run("true", cwd=scene.work, effects=True, no_store=True)
        return
    for words in ("status", "diff", "log -p -1"):
        subprocess.run(["git", *words.split()], cwd=scene.work, capture_output=True, timeout=60)


def _stayed(stay: str) -> list[str]:
    """Processes that an attempt left; they are ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has just ended
            continue
        if words[:2] == [b"sleep", stay.encode()]:
            os.kill(int(path.parent.name), signal.SIGKILL)
            found.append(f"{shlex.quote(' '.join(map(os.fsdecode, words)))} is still there")
    return found


def main() -> None:
    base, backend = Path(sys.argv[1]), sys.argv[2]
    given = {name[7:]: os.environ.pop(name) for name in list(os.environ) if name.startswith("ESCAPE_")}
    wanted = sys.argv[3:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the scene is cleared away
    answers: dict[str, Any] = {}
    if backend != "none" and (reason := backends.backend(backend).unavailable()) is not None:
        json.dump({"unavailable": reason}, sys.stdout)
        return
    with Scene(base, given) as scene:
        for attempt in everything():
            name = f"{attempt.module}: {attempt.name}"
            if (backend == "none" and not attempt.harmless) or (wanted and not any(word in name for word in wanted)):
                continue
            begun = time.monotonic()
            try:
                answers[name] = tried(scene, attempt, backend)
            except Exception as error:
                raise RuntimeError(f"the scene did not survive what came before, or this: {name}") from error
            answers[name]["ms"] = round((time.monotonic() - begun) * 1000)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
