"""The protocol of a test whose verdict is known only when its fixtures are gone.

In verify mode it runs, it is judged, and a difference makes the whole of it run again. In a replay that is to fail when
recorded steps are left over it runs once: its fixtures may still ask for them. Whatever is run, pytest hears of one
setup, one call and one teardown: those of the first run, with the verdict in them.
"""

from __future__ import annotations

import copy
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback
from _pytest.runner import runtestprotocol

from pytest_veil.carrying import attach
from pytest_veil.config import REPLAYING, settings_for, settings_of
from pytest_veil.outcomes import ItemOutcome, StepRow, Take, left, note
from pytest_veil.substeps import subtests_of, tell_steps
from pytest_veil.telling import first_line, told, told_step
from pytest_veil.verifying import Verified, verify_steps

if TYPE_CHECKING:
    from veil.taping import Cassette


@dataclass
class _Judged:
    """One test, over all its runs.

    Attributes:
        nextitem: what pytest runs after it.
        takes: what each run left, by cassette. verified: the judgement so far, by cassette.
        calls: how the body ended in each run; a setup that failed stands for it.
        done: runs that are over. again: whether one more is needed. trouble: why nothing can be said.
    """

    nextitem: pytest.Item | None
    takes: dict[str, list[Take]] = field(default_factory=dict)
    verified: dict[str, Verified] = field(default_factory=dict)
    calls: list[pytest.TestReport] = field(default_factory=list)
    done: int = 0
    again: bool = False
    trouble: str | None = None

    def judge(self, item: pytest.Item) -> None:
        """The run is over, and its fixtures are."""
        self.done += 1
        self.again = False
        for take in left(item):
            self.takes.setdefault(take.file, []).append(replace(take, recorded=_recorded(take)))
        known = {file: takes for file, takes in self.takes.items() if takes[0].recorded is not None}
        asked = bool(known) and not (self.calls and self.calls[0].skipped)
        wanted = max((take.runs for takes in known.values() for take in takes), default=1)
        if asked and self.done < wanted:
            self.again = True  # whatever came out
            return
        try:
            self.verified = {file: verify_steps(takes) for file, takes in known.items()}
        except Exception as error:
            self.trouble = f"it was not judged: {type(error).__name__}: {error}"
            raise
        if wanted == 1 and asked and not all(found.same for found in self.verified.values()):
            self.again = self.done < 2


_JUDGED = pytest.StashKey[_Judged]()


class Verify:
    """The plugin; in every process that runs tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._session = settings_of(config)

    def _waits(self, item: pytest.Item) -> bool:
        if self._session.mode == "verify":
            return True
        if self._session.unused != "error" and item.get_closest_marker("veil") is None:
            return False
        try:
            settings = settings_for(item, self._session)
        except pytest.UsageError:  # told by the fixture
            return False
        return settings.mode == "verify" or (settings.unused == "error" and settings.mode in REPLAYING)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not self._waits(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        judged = item.stash[_JUDGED] = _Judged(nextitem)
        again = copy.copy(item)  # so that a teardown ends this test alone, whatever comes next
        reports = runtestprotocol(item, log=False, nextitem=again)
        while judged.again:
            *_, teardown = runtestprotocol(item, log=False, nextitem=again)
            if teardown.failed:  # also of what neighbours share: that ends with the last run
                reports[-1] = teardown
        del item.stash[_JUDGED]
        _tell(item, judged, reports)
        for report in reports:
            if report.when == "call":
                tell_steps(item, _steps(judged))
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        judged = item.stash.get(_JUDGED, None)
        if judged is not None and (call.when == "call" or (call.when == "setup" and report.failed)):
            judged.calls.append(report)
        return report

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Judge when the test's own fixtures are gone; then end what its neighbours share, if they are done too.

        What fails in that is part of this teardown, as it always is.
        """
        try:
            value = yield
        except BaseException as error:
            try:
                self._after(item, nextitem)
            except (Exception, pytest.fail.Exception) as other:
                raise other from error
            raise
        self._after(item, nextitem)
        return value

    def _after(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        judged = item.stash.get(_JUDGED, None)
        if judged is not None:
            try:
                judged.judge(item)
            finally:
                if nextitem is None:  # pytest stops, and ended everything
                    judged.again = False
                elif not judged.again:
                    item.session._setupstate.teardown_exact(_next(item, judged))
        wrong = [message for take in left(item.session) if (message := _shared(item, take)) is not None]
        if wrong:
            pytest.fail("\n".join(wrong), pytrace=False)


def _next(item: pytest.Item, judged: _Judged) -> pytest.Item | None:
    """What pytest runs next: nothing when this test is the last failure that it allows."""
    session = item.session
    failed = any(call.failed for call in judged.calls) or not all(found.same for found in judged.verified.values())
    most = item.config.getoption("maxfail", 0)
    failures = failed + (0 if subtests_of(item) is None else sum(why is not None for _, why in _steps(judged)))
    if session.shouldfail or session.shouldstop or (failed and most and session.testsfailed + failures >= most):
        return None
    return judged.nextitem


def _steps(judged: _Judged) -> list[tuple[StepRow, str | None]]:
    """The steps of a recording that is a test of its own, each with why it is not as recorded."""
    alone = [verified for file, verified in judged.verified.items() if judged.takes[file][0].stands_alone]
    return [(row, told_step(row, len(verified.rows))) for verified in alone for row in verified.rows]


def _recorded(take: Take) -> Cassette | None:
    """What it is compared with: a test that runs nothing, or is refused all it asks for, has no file and needs none."""
    if take.recorded is None and not take.fresh.steps:
        return take.fresh
    return take.recorded


def _outcome(take: Take, verified: Verified | None, outcome: str) -> ItemOutcome:
    if verified is None:
        return ItemOutcome(
            take.nodeid, "verify", "failed", "missing-cassette", take.file, scope=take.scope, why="no such file"
        )
    ran = bool(verified.rows)
    names = tuple(entry.name for entry in take.rules.registry.chosen(take.rules.names))
    return ItemOutcome(
        nodeid=take.nodeid,
        mode="verify",
        outcome=outcome,
        verdict=verified.word if ran else "none",
        cassette=take.file if ran else None,
        steps=verified.rows,
        first_divergence=None if verified.first is None else verified.first.number,
        unused=verified.skipped,
        fired=verified.fired,
        idle=tuple(name for name in names if name not in verified.fired),
        scope=take.scope,
    )


def _shared(item: pytest.Item, take: Take) -> str | None:
    """Judge a recording that several tests share: it is run once, since to run it again were to run all of them."""
    take = replace(take, recorded=_recorded(take))
    verified = None if take.recorded is None else verify_steps([take])
    same = verified is not None and verified.same
    note(item.session, _outcome(take, verified, "passed" if same else "failed"))
    return None if same else told(take, verified, 1)


def _tell(item: pytest.Item, judged: _Judged, reports: list[pytest.TestReport]) -> None:
    """Put the verdict into the reports of the first run."""
    call = next((report for report in reports if report.when == "call"), None)
    worst: list[str] = []
    for file, takes in judged.takes.items():
        if judged.trouble is not None:
            note(item, ItemOutcome(takes[0].nodeid, "verify", "error", "error", file, why=judged.trouble))
            continue
        verified = judged.verified.get(file)
        passed = call is not None and call.passed and verified is not None and verified.same
        note(item, _outcome(takes[0], verified, "passed" if passed else "failed"))
        if verified is None or not verified.same:
            worst.append(told(takes[0], verified, judged.done))
    failing = [run for run in judged.calls if run.failed]
    if call is not None and call.passed:
        if failing:
            worst.append(f"the test itself failed in {len(failing)} of {judged.done} runs:\n{failing[0].longreprtext}")
        if worst:
            _fail(item, call, "\n\n".join(worst))
    elif call is not None and call.failed and worst:
        call.sections.append(("veil verify", "\n\n".join(worst)))
    attach(item, reports[-1])


def _fail(item: pytest.Item, report: pytest.TestReport, message: str) -> None:
    """Make a report that passed one that failed, in pytest's own form, which crosses between processes."""
    path, line, _ = item.location
    where = ReprFileLocation(path, (line or 0) + 1, first_line(message))
    entry = ReprEntryNative([f"{text}\n" for text in message.splitlines()])
    report.outcome = "failed"
    report.longrepr = ReprExceptionInfo(ReprTraceback([entry], None, "native"), where)


def under_way(item: pytest.Item) -> bool:
    """Whether a verdict on this test is still to come."""
    return _JUDGED in item.stash
