"""The entry point: options, marker and fixtures. Everything else is imported by the first test that needs it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_veil import options
from pytest_veil.real_disk import real_disk

if TYPE_CHECKING:
    from pytest_veil.confining import VeilSandbox
    from pytest_veil.expecting import Expect
    from pytest_veil.governing import VeilBoundary
    from pytest_veil.in_session import VeilShell
    from pytest_veil.rewinding import VeilCheckpoint
    from pytest_veil.running import AsyncRun, RunFactory, VeilRun
    from pytest_veil.tooling import VeilTools


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_veil import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", options.MARKER)
    said = {**options.said_in_ini(config), **options.said_on_line(config)}
    if said:
        from pytest_veil.config import settings_of

        settings_of(config)  # a wrong value is told now, not by the first test that would use it
    if said.get("veil_short_fixtures", True):
        from pytest_veil import short_names

        short_names.register(config.pluginmanager)
    if options.turned_on(config):
        from pytest_veil.collector import Collector
        from pytest_veil.session import session_of

        cassettes = session_of(config).settings.cassettes
        config.pluginmanager.register(Collector(cassettes), "veil-collector")


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    import sys

    if "veil.result" not in sys.modules:  # then neither side can be a result
        return None
    with real_disk():
        from pytest_veil.expecting import explain
    return explain(op, left, right)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    import sys

    if call.excinfo is not None and "veil.result" in sys.modules:
        with real_disk():
            from pytest_veil.explaining import explain_failure
        explain_failure(report, call.excinfo.value)
    return report


@pytest.fixture
def veil_run(request: pytest.FixtureRequest) -> Iterator[VeilRun]:
    """Run commands in the test's own workspace: ``veil_run("make", expect={"exit": 0})``, as ``veil.run``.

    ``veil_run.start(...)`` runs in the background; whatever is left is ended with the test. ``veil_run.root`` is the
    workspace.
    """
    with real_disk():  # an import on a fake disk finds nothing, or stays fake for ever
        from pytest_veil.fixtures import of_test
    yield from of_test(request)


@pytest.fixture
def veil_arun(veil_run: VeilRun) -> AsyncRun:
    """``veil_run`` for asyncio: ``await veil_arun("make")``. Same workspace and recording as ``veil_run``."""
    return veil_run.arun


@pytest.fixture
def veil_checkpoint(request: pytest.FixtureRequest, veil_run: VeilRun) -> Iterator[VeilCheckpoint]:
    """Keep the workspace of ``veil_run`` and bring it back.

    ``with veil_checkpoint(): ...`` rolls back at the end of the block; ``kept = veil_checkpoint("label")`` has
    ``restore()`` and ``diff()``.
    """
    with real_disk():
        from pytest_veil.fixtures import checkpoints_of
    yield from checkpoints_of(request)


@pytest.fixture
def veil_sandbox(veil_run: VeilRun) -> VeilSandbox:
    """The workspace of ``veil_run``, confined: ``box = veil_sandbox(network=False)`` has ``run``, ``root`` and
    ``populate``; the options are those of ``veil.run(sandbox={...})``."""
    with real_disk():
        from pytest_veil.confining import VeilSandbox
    return VeilSandbox(veil_run)


@pytest.fixture
def veil_shell(veil_run: VeilRun) -> Iterator[VeilShell]:
    """A shell session in the workspace of ``veil_run``: ``veil_shell("cd sub && export A=1")``, then
    ``veil_shell("pwd; echo $A")``. Recorded and replayed like ``veil_run``; ``veil_shell.cwd`` is where it is."""
    with real_disk():
        from pytest_veil.in_session import VeilShell

        shell = VeilShell(veil_run)
    yield shell
    shell.close()


@pytest.fixture
def veil_tools(veil_run: VeilRun, veil_checkpoint: VeilCheckpoint) -> Iterator[VeilTools]:
    """The tools of ``veil.tools`` for an agent, in the workspace of ``veil_run``: ``veil_tools.call(name, arguments)``.

    What the agent runs is recorded, replayed and verified like ``veil_run``; ``veil_tools.calls`` are its calls.
    """
    with real_disk():
        from pytest_veil.tooling import VeilTools

        tools = VeilTools(veil_run, veil_checkpoint)
    yield tools
    tools.close()


@pytest.fixture
def veil_boundary(veil_run: VeilRun) -> Iterator[VeilBoundary]:
    """A governed boundary around the workspace of ``veil_run``: ``veil_boundary(policy, answers=[True]).run(argv)``.

    ``answers`` are what the approver says, one after the other; then it denies. Recorded and replayed like
    ``veil_run``.
    """
    with real_disk():
        from pytest_veil.governing import VeilBoundary

        maker = VeilBoundary(veil_run)
    yield maker
    maker.close()


@pytest.fixture(scope="session")
def veil_run_factory(request: pytest.FixtureRequest) -> Iterator[RunFactory]:
    """Makes runners that outlive a test, each with a workspace and a recording of its own.

    ``veil_run_factory.make("server", request)`` in a fixture of any scope lives as long as that fixture;
    ``veil_run_factory.make("server")`` lives as long as the session.
    """
    with real_disk():
        from pytest_veil.fixtures import of_session
    yield from of_session(request)


@pytest.fixture(scope="session")
def expect() -> Expect:
    """``expect(result).exit(0).stdout.contains("done")``: the same as ``from pytest_veil import expect``."""
    with real_disk():
        from pytest_veil import expect as found
    return found
