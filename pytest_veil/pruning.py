"""Recordings without a test: told by a run of everything, and removed by one that records."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_veil.cassettes import cassette_of, stale_cassettes
from pytest_veil.config import Settings, settings_for
from pytest_veil.outcomes import PRUNING, Pruning
from pytest_veil.real_disk import real_disk

#: Modes that remove them; the others only tell.
REMOVING = ("record", "refresh")
#: Options of pytest with which a run is one of a part, and how they are written.
_CHOOSING = {
    "keyword": "-k",
    "markexpr": "-m",
    "maxfail": "-x or --maxfail",
    "lf": "--lf",
    "last_failed": "--lf",
    "stepwise": "--sw",
    "collectonly": "--collect-only",
    "deselect": "--deselect",
    "ignore": "--ignore",
    "ignore_glob": "--ignore-glob",
    "setuponly": "--setup-only",
    "setupplan": "--setup-plan",
    "pyargs": "--pyargs",
}
_KEPT = "veil_kept"


class Pruner:
    """The plugin. What workers of xdist collected and used comes to the controller, which alone removes anything."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._owned: set[str] = set()
        self._modules: set[str] = set()
        self._unsure: set[str] = set()
        self._partial: list[str] = []
        self._collected = 0
        self._said = False

    def owns(self, path: Path) -> None:
        """A runner of this process has its recording there."""
        self._owned.add(str(path))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._collected = len(items)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        if items:
            self._part("tests were deselected")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._said = True
        if len(session.items) < self._collected:
            self._part("a plugin took tests away")
        for item in session.items:
            path = getattr(item, "path", None)
            if path is None:
                continue
            self._modules.add(str(path))
            try:
                self._owned.add(str(cassette_of(item, settings_for(item, self._settings))))
            except pytest.UsageError:
                self._part(f"the marker of {item.nodeid} is wrong")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:  # what it would have used is not known
            self._unsure.add(str(self._config.rootpath / report.nodeid.partition("::")[0]))

    def _part(self, why: str) -> None:
        if why not in self._partial:
            self._partial.append(why)

    # -- from workers to the controller

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_KEPT] = [sorted(self._owned), sorted(self._modules), self._partial]
        elif not hasattr(self._config, "workerinput"):
            self.judge(int(session.exitstatus))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get(_KEPT)
        if told is None:
            self._part("a worker did not come to its end")
            return
        self._said = True
        self._owned.update(told[0])
        self._modules.update(told[1])
        for why in told[2]:
            self._part(why)

    # -- the end

    def judge(self, status: int) -> None:
        """Called once, by the controller, when all tests are over."""
        why = self._why_not(status)
        if why is not None:
            self._config.stash[PRUNING] = Pruning(False, why)
            return
        with real_disk():
            stale = [path for path in stale_cassettes(map(Path, self._owned)) if not self._may_be_used(path)]
            removing = self._settings.mode in REMOVING
            if removing:
                from pytest_veil.conclusions import facts_beside

                for path in stale:
                    path.unlink(missing_ok=True)
                    facts_beside(path).unlink(missing_ok=True)
        shown = tuple(Path(os.path.relpath(path, self._config.rootpath)).as_posix() for path in stale)
        self._config.stash[PRUNING] = Pruning(True, stale=shown, removed=removing and bool(stale))

    def _why_not(self, status: int) -> str | None:
        config = self._config
        if status != 0:
            return "not every test passed"
        if not self._said:
            return "nothing was collected"
        chosen = part_chosen(config)
        if chosen is not None:
            return chosen
        if self._partial:
            return self._partial[0]
        if config.args_source is pytest.Config.ArgsSource.ARGS:
            for text in config.args:
                if "::" in text or not (config.invocation_params.dir / text).is_dir():
                    return f"{text} is a part of the tests"
        return None

    def _may_be_used(self, path: Path) -> bool:
        """By a test that was skipped, or one that was not collected: what those use is not known here."""
        folder = _folder_of(path, self._config, self._settings)
        if not collected_whole(self._config, folder):
            return True
        known = {str(module) for module in folder.glob("*.py")}
        stems = {Path(module).name.removesuffix(".py") for module in self._unsure | (known - self._modules)}
        if self._unsure:
            stems |= {"session", "package"}
        # a name is the text itself, or a slug of it with a hash (``veil.taping.file_name``)
        return any(path.name.startswith((f"{stem}.", f"{_slug(stem)}-")) for stem in stems)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")


def _folder_of(path: Path, config: pytest.Config, settings: Settings) -> Path:
    """The folder of the tests whose recordings lie beside this one."""
    if settings.cassettes is None:
        return path.parent.parent
    return Path(os.path.normpath(config.rootpath / os.path.relpath(path.parent, settings.cassettes)))


def part_chosen(config: pytest.Config, *, but: Collection[str] = ()) -> str | None:
    """Which option makes this run one of a part of the tests, in words. ``but``: names of options that may."""
    used = [flag for name, flag in _CHOOSING.items() if name not in but and config.getoption(name, None)]
    return f"{used[0]} chose a part of the tests" if used else None


def collected_whole(config: pytest.Config, path: Path) -> bool:
    """Whether what stands on the command line has all the tests in a file or below a folder."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return True
    whole = (Path(os.path.normpath(config.invocation_params.dir / text)) for text in config.args if "::" not in text)
    return any(path == above or above in path.parents for above in whole)
