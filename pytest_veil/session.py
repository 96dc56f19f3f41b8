"""What one process of pytest holds for veil: settings, places, open scenes; and the end of each test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_veil import concealing
from pytest_veil.cassettes import cassette_of, shared_cassette
from pytest_veil.conclusions import claimed_twice, conclude, hear, machines, plainly_passed, word_of
from pytest_veil.config import WRITING, Settings, settings_for, settings_of
from pytest_veil.grounds import Grounds, import_all
from pytest_veil.keeping import leave_place, tell_places
from pytest_veil.outcomes import Active, ItemOutcome, Take, leave, note
from pytest_veil.real_disk import real_disk
from pytest_veil.rerunning import under_way
from pytest_veil.rewording import edit_of, rekey_of
from pytest_veil.scenes import Opening, Scene
from pytest_veil.sharing import Sharing, owner_of

if TYPE_CHECKING:
    from pytest_veil.pruning import Pruner
    from veil.taping import Rules, Slot

#: On an item: its scene, from the fixture's setup to the end of the test.
SCENE = pytest.StashKey[Scene]()
#: On an item: reports of its phases so far.
PHASES = pytest.StashKey[dict[str, pytest.TestReport]]()
_SESSION = pytest.StashKey["VeilSession"]()


def session_of(config: pytest.Config) -> VeilSession:
    """The session's one; made and registered as the plugin ``veil-session`` by whoever needs it first."""
    found = config.stash.get(_SESSION, None)
    if found is None:
        found = config.stash[_SESSION] = VeilSession(config)
        config.pluginmanager.register(found, "veil-session")
        if found.settings.mode != "off":
            found.begin()  # after its own registration: what says something of a test comes after what ends it
    return found


class VeilSession:
    """The plugin behind the fixtures. Every process that runs tests has its own.

    Attributes:
        settings: those of the session; a test may have others.
        rules: how steps are compared.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = settings_of(config)
        self._rules: Rules | None = None
        self._grounds = Grounds(config)
        self._open: list[Scene] = []
        self._sharing = Sharing(config, self._grounds)
        self._owners: dict[Path, str] = {}
        self._doubles: dict[str, list[str]] = {}
        self._pruner: Pruner | None = None
        import_all()

    def begin(self) -> None:
        """Turn the eval mode on.

        Raises ``pytest.UsageError`` for a normaliser that is unknown or a secret that cannot be replaced.
        """
        from pytest_veil.installing import install
        from pytest_veil.pruning import Pruner
        from veil import VeilError
        from veil.taping import PROFILES, Scrubbed

        try:
            Scrubbed.around((), os.environ, self.settings.secrets)
        except VeilError as error:
            raise pytest.UsageError(str(error)) from None
        profile = PROFILES[self.settings.env or "deterministic"]
        active = Active(
            mode=self.settings.mode,
            profile=profile.name,
            profile_version=profile.version,
            runs=self.settings.runs,
            cassettes=None if self.settings.cassettes is None else str(self.settings.cassettes),
            normalisers=tuple((n.name, n.version, n.erases) for n in self.rules.registry.chosen(self.rules.names)),
            chosen=self.settings.normalise != ("standard",),
            report=None if self.settings.report is None else str(self.settings.report),
        )
        install(self.config, active)
        self.config.pluginmanager.register(self._sharing, "veil-sharing")
        self._pruner = Pruner(self.config, self.settings)
        self.config.pluginmanager.register(self._pruner, "veil-pruner")

    @property
    def rules(self) -> Rules:
        if self._rules is None:
            self._rules = self.rules_for(self.settings)
        return self._rules

    def rules_for(self, settings: Settings) -> Rules:
        """Raises ``pytest.UsageError`` for an unknown normaliser."""
        from pytest_veil.verifying import rules_of

        if self._rules is not None and settings.normalise == self.settings.normalise:
            return self._rules
        return rules_of(self.config, settings.normalise)

    # -- scenes

    def folder(self) -> Path:
        """What the session keeps."""
        return self._grounds.folder()

    def open(self, item: pytest.Item) -> Scene:
        """The scene of one test. Raises ``pytest.UsageError``, ``VeilError``."""
        settings = settings_for(item, self.settings)
        path = None if settings.mode in ("off", "live") else cassette_of(item, settings)
        if path is not None and settings.mode in WRITING:
            owners = self._doubles.get(str(path), [])
            if len(owners) > 1:
                raise pytest.UsageError(f"{self.shown(path)}: {' and '.join(owners)} would all be recorded there")
        base, slot = self._grounds.base(settings, None)
        return self._made(item.nodeid, "function", settings, base, path, slot)

    def open_shared(self, name: str, request: pytest.FixtureRequest | None) -> Scene:
        """The scene of a runner that several tests share."""
        settings = self.settings
        owner = owner_of(request)
        scope = "session" if request is None else request.scope
        if settings.mode in ("off", "live"):
            path = None
        else:
            path = shared_cassette(name, owner, self.config.rootpath, settings)
            taken = next((scene for scene in self._open if scene.path == path), None)
            if taken is not None or (settings.mode in WRITING and path in self._owners):
                other = self._owners[path] if taken is None else taken.nodeid
                raise pytest.UsageError(f"{self.shown(path)}: it is the recording of {other}")
            self._owners[path] = name
            if self._pruner is not None:
                self._pruner.owns(path)
        base, slot = self._grounds.base(settings, name)
        nodeid = self.shown(owner) if owner is not None else "."
        scene = self._made(f"{nodeid}::{name}", scope, settings, base, path, slot)
        scene.owner, scene.elsewhere = owner, hasattr(self.config, "workerinput")
        return scene

    def _made(
        self, nodeid: str, scope: str, settings: Settings, base: Path, path: Path | None, slot: Slot | None
    ) -> Scene:
        secrets = list(settings.secrets)
        if settings.mode != "off":
            for more in self.config.hook.pytest_veil_scrub(config=self.config, nodeid=nodeid):
                secrets += more or ()
        shown = "" if path is None else self.shown(path)
        records = self.folder() / "records"
        opening = Opening(
            nodeid, scope, settings, base, records, path, shown, tuple(secrets), rekey_of(self.config, nodeid), slot
        )
        scene = opening.open()
        self._open.append(scene)
        return scene

    def base_for(self, settings: Settings) -> Path:
        """A folder for the stage of one test, which may be emptied: in the eval mode the same for each test here."""
        return self._grounds.base(settings, None)[0]

    def shown(self, path: Path) -> str:
        """Relative to the root folder of the run, POSIX separators."""
        return Path(os.path.relpath(path, self.config.rootpath)).as_posix()

    # -- ends

    def close(self, scene: Scene) -> None:
        """The fixture is over: nothing runs any more."""
        with real_disk():
            scene.close()
            self._open.remove(scene)

    def leave(self, item: pytest.Item, scene: Scene) -> None:
        """Verify mode: the run is over; whether it was as recorded is judged elsewhere."""
        with real_disk():
            leave(item, self._take(scene))

    def judge_shared(self, scene: Scene, node: pytest.Item | pytest.Collector) -> str | None:
        """The end of a shared runner; returns why it fails."""
        with real_disk():
            passed = not self._sharing.failed(scene.owner)
            wrong = None
            try:
                if scene.settings.mode == "verify":
                    leave(node, self._take(scene))
                elif scene.settings.mode != "off":
                    edit, word = edit_of(self.config, scene.nodeid), "passed" if passed else "failed"
                    said, wrong = conclude(scene, passed, word, self.rules, edit, self._sharing.part(scene.owner))
                    if self._sharing.common is not None:
                        wrong = wrong or claimed_twice(scene, self._sharing.common)
                    note(node, said)
            finally:
                if scene.slot is not None:
                    scene.slot.close()
            return wrong

    def _take(self, scene: Scene) -> Take:
        assert scene.recorder is not None
        then, now = machines(scene)
        edit, done = edit_of(self.config, scene.nodeid), scene.recorder.cassette(scene.header)
        return Take(
            file=scene.shown,
            recorded=scene.old,
            fresh=replace(done, steps=tuple(edit(step) for step in done.steps)),  # as a recording would have it
            rules=self.rules_for(scene.settings),
            nodeid=scene.nodeid,
            scope=scene.scope,
            runs=scene.settings.runs,
            rekey=rekey_of(self.config, scene.nodeid),
            refused=tuple(scene.recorder.refused),
            machine_then=then,
            machine_now=now,
        )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """A wrong marker is told before anything runs; two tests with one recording when either is recorded."""
        if self.settings.mode == "off":
            return
        worker = hasattr(self.config, "workerinput")  # there each test tells it when it runs: pytest cannot
        for item in session.items:
            if item.get_closest_marker("veil") is None:
                continue
            try:
                settings = settings_for(item, self.settings)
            except pytest.UsageError:
                if worker:
                    continue
                raise
            if settings.cassette is not None:
                self._doubles.setdefault(str(cassette_of(item, settings)), []).append(item.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        phases = item.stash.setdefault(PHASES, {})
        if report.when == "setup":
            phases.clear()
        scene = item.stash.get(SCENE, None)
        hear(phases, report, scene)
        self._sharing.hear(item, report)
        if scene is None:
            return report
        if report.failed:
            tell_places(scene, report, self.folder())
        if report.when == "teardown":
            del item.stash[SCENE]
            with real_disk():
                self._conclude(item, scene, phases, report)
                leave_place(scene, phases, self.folder())
        concealing.conceal(report, scene)
        return report

    def _conclude(
        self, item: pytest.Item, scene: Scene, phases: dict[str, pytest.TestReport], report: pytest.TestReport
    ) -> None:
        if scene.settings.mode in ("off", "verify"):
            return
        passed = all(phase.passed for phase in phases.values()) and "call" in phases
        word = word_of(phases)
        try:
            edit = edit_of(self.config, scene.nodeid)
            said, wrong = conclude(scene, passed, word, self.rules_for(scene.settings), edit)
        except Exception as error:  # whatever goes wrong is a failure of this test, never one of pytest
            wrong = f"the recording of this test was not written: {type(error).__name__}: {error}"
            said = ItemOutcome(item.nodeid, scene.settings.mode, "error", "not-written", scene.shown, why=str(error))
        note(item, said)
        if wrong is not None:
            call = phases.get("call")
            failing = call if call is not None and under_way(item) and plainly_passed(call) else report
            failing.outcome, failing.longrepr = "failed", wrong
            concealing.conceal(failing, scene)
            self._sharing.fail(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Last of all: at an interrupt it is only now that pytest ends fixtures, which may run something."""
        try:
            return (yield)
        finally:
            with real_disk():
                for scene in list(self._open):
                    with contextlib.suppress(Exception):
                        scene.close()
                self._grounds.close()
