"""What the eval mode says of every test: carried from where the test ran, gathered and written by the controller."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_veil.carrying import CARRIED, attach
from pytest_veil.outcomes import ACTIVE, PRUNING, ItemOutcome

#: Version of the JSON report's shape.
FORMAT = 1
#: Verdicts of tests about which nothing can be said: with one of them the exit status is not 0.
UNJUDGED = ("error", "not-run")
#: Options of pytest with which tests are collected and not run.
_NOTHING_RUNS = ("collectonly", "setuponly", "setupplan", "showfixtures", "show_fixtures_per_test")


class Carrier:
    """Puts what was said into reports; in every process that runs tests."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        from pytest_veil.rerunning import under_way

        if call.when == "teardown" and not under_way(item):
            attach(item, report)
        return report


class Gathered:
    """The controller's knowledge of every test.

    Attributes:
        troubles: what went wrong with the report itself; any of them makes the exit status 1.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.active = config.stash[ACTIVE]
        self.troubles: list[str] = []
        self._collected: dict[str, None] = {}
        self._phases: dict[str, dict[str, str]] = {}
        self._crashed: dict[str, str] = {}
        self._said: dict[str, ItemOutcome] = {}
        self._shared: dict[tuple[str, str | None], ItemOutcome] = {}
        self._judging = not any(config.getoption(name, False) for name in _NOTHING_RUNS)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected.update((item.nodeid, None) for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        self._collected.update((nodeid, None) for nodeid in ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._collected.setdefault(report.nodeid)
        if report.when not in ("setup", "call", "teardown"):  # told by the controller of a worker that is gone
            self._crashed[report.nodeid] = first_line(str(report.longrepr))
            return
        phases = self._phases.setdefault(report.nodeid, {})
        if phases.get(report.when) != "failed":  # subtests say call again and again
            phases[report.when] = report.outcome
        for data in json.loads(getattr(report, CARRIED, "[]")):
            outcome = ItemOutcome.from_data(data)
            if outcome.scope == "function":
                self._said[report.nodeid] = outcome
            else:
                self._shared[outcome.nodeid, outcome.cassette] = outcome

    @property
    def items(self) -> list[ItemOutcome]:
        """One for each collected test, in the order of collection."""
        return [self._item(nodeid) for nodeid in self._collected]

    @property
    def shared(self) -> list[ItemOutcome]:
        """Recordings that several tests share."""
        return list(self._shared.values())

    def _item(self, nodeid: str) -> ItemOutcome:
        said = self._said.get(nodeid)
        mode = self.active.mode if said is None else said.mode
        phases = self._phases.get(nodeid, {})
        if nodeid in self._crashed:
            return ItemOutcome(nodeid, mode, "error", "error", why=self._crashed[nodeid])
        if "teardown" not in phases:
            why = "it was not run" if not phases else "it did not come to its end"
            return ItemOutcome(nodeid, mode, "error", "not-run", why=why)
        if "failed" in (phases["teardown"], phases.get("setup")) and phases.get("call") != "failed":
            outcome = "error"
        else:
            outcome = phases.get("call", phases.get("setup", "error"))
        if said is None:
            return ItemOutcome(nodeid, mode, outcome, "none")
        return replace(said, nodeid=nodeid, outcome=outcome)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self._judging:
            return
        items = self.items
        for outcome in (*items, *self.shared):
            try:
                self.config.hook.pytest_veil_verdict(config=self.config, outcome=outcome)
            except Exception as error:  # of another plugin: told, and it must not cost the report
                self.troubles.append(f"pytest_veil_verdict for {outcome.nodeid}: {type(error).__name__}: {error}")
        if session.exitstatus == 0 and (self.troubles or any(item.verdict in UNJUDGED for item in items)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.active.report is not None:
            try:
                _write(Path(self.active.report), self.document(int(session.exitstatus)))
            except OSError as error:
                self.troubles.append(f"--veil-report={self.active.report}: {error.strerror or error}")
                if session.exitstatus == 0:
                    session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def document(self, exit_status: int) -> dict[str, Any]:
        """The report, JSON-ready; see docs/report.md."""
        import veil

        items, shared, active = self.items, self.shared, self.active
        pruning = self.config.stash.get(PRUNING, None)
        return {
            "format": FORMAT,
            "veil": veil.__version__,
            "pytest": pytest.__version__,
            "mode": active.mode,
            "runs": active.runs,
            "profile": {"name": active.profile, "version": active.profile_version},
            "cassettes": active.cassettes,
            "normalisers": self.normalisers(),
            "exit_status": exit_status,
            "outcomes": dict(Counter(item.outcome for item in items)),
            "verdicts": dict(Counter(item.verdict for item in items)),
            "steps": step_counts((*items, *shared)),
            "items": [_plain(item) for item in items],
            "shared": [_plain(item) for item in shared],
            "pruning": None
            if pruning is None
            else {
                "judged": pruning.judged,
                "why": pruning.why,
                "stale": list(pruning.stale),
                "removed": pruning.removed,
            },
            "troubles": list(self.troubles),
        }

    def normalisers(self) -> list[dict[str, Any]]:
        """Those that might be used, and whether they found anything in any test."""
        fired = {name for item in (*self.items, *self.shared) for name in item.fired}
        return [
            {"name": name, "version": version, "erases": erases, "fired": name in fired}
            for name, version, erases in self.active.normalisers
        ]


GATHERED = pytest.StashKey[Gathered]()


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line for line in text.splitlines() if line.strip()), "")


def step_counts(items: Iterable[ItemOutcome]) -> dict[str, int]:
    """Steps per word, the most frequent first."""
    return dict(Counter(step.word for item in items for step in item.steps).most_common())


def _plain(outcome: ItemOutcome) -> dict[str, Any]:
    data = outcome.to_data()
    for step in data["steps"]:
        runs = step["runs"]
        step["runs"] = None if runs is None else {"as_recorded": runs[0], "of": runs[1]}
    return data


def _write(path: Path, document: dict[str, Any]) -> None:
    """The whole file or none: whoever reads it never sees a half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(document, indent=1).encode("ascii") + b"\n"
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
