"""The life of the fixtures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from pytest_veil.real_disk import real_disk
from pytest_veil.rewinding import VeilCheckpoint
from pytest_veil.running import RunFactory, VeilRun
from pytest_veil.scenes import Scene
from pytest_veil.session import SCENE, VeilSession, session_of
from veil import BadInput, VeilError


@contextlib.contextmanager
def _told_plainly() -> Iterator[None]:
    """What is wrong with a marker, a recording or a secret is told in its own words."""
    try:
        yield
    except (pytest.UsageError, VeilError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def of_test(request: pytest.FixtureRequest) -> Iterator[VeilRun]:
    """``veil_run``."""
    item: pytest.Item = request.node
    with real_disk():
        from pytest_veil.looking import looking_from

        session = session_of(request.config)
        with _told_plainly():
            scene = session.open(item)
    item.stash[SCENE] = scene
    try:
        with looking_from(scene):
            yield VeilRun(scene)
    finally:
        session.close(scene)
        if scene.settings.mode == "verify":
            session.leave(item, scene)


def checkpoints_of(request: pytest.FixtureRequest) -> Iterator[VeilCheckpoint]:
    """``veil_checkpoint``; ``veil_run`` is there."""
    made = VeilCheckpoint(request.node.stash[SCENE], session_of(request.config).folder())
    try:
        yield made
    finally:
        made.close()


def of_session(request: pytest.FixtureRequest) -> Iterator[RunFactory]:
    """``veil_run_factory``."""
    with real_disk():
        session = session_of(request.config)
    mine: list[Scene] = []

    def make(name: str, asking: pytest.FixtureRequest | None) -> VeilRun:
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise BadInput("name", name, "a name")
        with real_disk(), _told_plainly():
            scene = session.open_shared(name, asking)
        if asking is None:
            mine.append(scene)
        else:
            asking.addfinalizer(lambda: _end(session, scene, asking))
        return VeilRun(scene)

    yield RunFactory(make)
    for scene in reversed(mine):
        _end(session, scene, request)


def _end(session: VeilSession, scene: Scene, request: pytest.FixtureRequest) -> None:
    session.close(scene)
    wrong = session.judge_shared(scene, request.node)
    if wrong is not None:
        pytest.fail(wrong, pytrace=False)
