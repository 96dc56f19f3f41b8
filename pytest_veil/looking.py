"""What ``expect(result)`` is given while a test runs: the real disk or the recording, and no secret in messages.

What it says goes into a recording that is made.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace

from pytest_veil.expecting import NOT, FileFact, look_on_disk, using
from pytest_veil.real_disk import real_disk
from pytest_veil.scenes import Scene
from veil import Judgement, Result
from veil.taping import Fact


@contextlib.contextmanager
def looking_from(scene: Scene) -> Iterator[None]:
    """Within the block, checks on files look through the scene, are kept by it, and messages keep its secrets."""

    def look(result: Result, path: str, *, content: bool) -> FileFact:
        with real_disk():
            if scene.player is not None:
                return _recorded(scene, result, path, content)
            fact = look_on_disk(result, path, content=content)
            if scene.recorder is not None:
                scene.recorder.add_look(result.record, path, Fact(fact.kind, fact.size, fact.mode))
            return fact

    def heard(result: Result, call: str, judgement: Judgement, held: bool) -> None:
        if scene.recorder is not None:
            scene.recorder.add_judgement(result.record, _as_asked(call, judgement, held))

    scrub = None if scene.settings.mode in ("off", "live") else scene.conceal()
    with using(looker=look, heard=heard, failure_lines=scene.settings.failure_lines, scrub=scrub):
        yield


def _as_asked(call: str, judgement: Judgement, held: bool) -> Judgement:
    """What a recording keeps of a check: with ``not_`` it holds when the check does not."""
    if not call.startswith(NOT):
        return judgement
    status = "passed" if held else "failed" if judgement.status == "passed" else judgement.status
    return replace(judgement, check=f"{NOT}{judgement.check}", status=status)


def _recorded(scene: Scene, result: Result, path: str, content: bool) -> FileFact:
    """A replay put the workspace as it was, so it is looked at; what lies outside of it is told by the recording."""
    place = os.path.normpath(os.path.join(result.cwd, path))
    inside = os.path.relpath(place, scene.stage.root)
    if not inside.startswith("..") and ".git" not in inside.split(os.sep):
        return look_on_disk(result, path, content=content)
    assert scene.player is not None
    fact = scene.player.looked(path)
    if fact is None:
        return FileFact(None, unreadable="nobody looked at it when this was recorded; record again")
    if fact.kind is None:
        return FileFact(None)
    return FileFact(fact.kind, fact.kind, fact.mode, fact.size, unreadable="its content is not in the recording")
