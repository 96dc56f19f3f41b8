"""Recordings that several tests share, when only some of those tests run: nothing that was recorded is lost."""

from __future__ import annotations

import json
import os
import signal

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

TWO = """
    import os
    import pytest

    @pytest.fixture(scope="module")
    def server(veil_run_factory, request):
        return veil_run_factory.make("server", request)

    def test_a(server):
        server("echo a")

    def test_b(server):
        if os.path.exists("interrupt"):
            raise KeyboardInterrupt
        if os.path.exists("skip"):
            pytest.skip("not today")
        server("echo b")
"""


@pytest.mark.parametrize("part", [["-k", "test_a"], ["test_it.py::test_a"], ["--deselect=test_it.py::test_b"]])
def test_a_part_of_a_module_leaves_its_recording_whole(suite: Suite, part: list[str]) -> None:
    suite.write("test_it.py", TWO)
    suite.run("--veil-mode=record").assert_outcomes(passed=2)
    whole = suite.cassettes()
    for mode in ("record", "refresh"):
        result = suite.run(f"--veil-mode={mode}", "--veil-report=out.json", *part)
        assert result.parseoutcomes()["passed"] == 1
        assert suite.cassettes() == whole
        (said,) = json.loads((suite.path / "out.json").read_text())["shared"]
        assert said["verdict"] == "not-written"
        assert said["why"].endswith(", and 1 step that it has was not asked for")
        result.stdout.fnmatch_lines(["*test_it.py::server: not-written: *1 step that it has was not asked for"])


def test_a_part_that_asks_for_all_steps_is_written(suite: Suite) -> None:
    suite.write("test_it.py", TWO)
    suite.run("--veil-mode=record", "-k", "test_a").assert_outcomes(passed=1, deselected=1)
    one = suite.cassettes()
    assert one["test_it.server.veil.txtar"].count(b"/command") == 1
    suite.run("--veil-mode=record", "test_it.py").assert_outcomes(passed=2)
    both = suite.cassettes()
    assert both["test_it.server.veil.txtar"].count(b"/command") == 2
    suite.write("test_it.py", TWO.replace("echo b", "echo c"))
    suite.run("--veil-mode=record", "-x", "test_it.py").assert_outcomes(passed=2)
    assert b"echo c" in suite.cassettes()["test_it.server.veil.txtar"]


@pytest.mark.parametrize("how", ["interrupt", "skip"])
def test_a_test_that_did_not_come_to_its_end_loses_nothing(suite: Suite, how: str) -> None:
    suite.write("test_it.py", TWO)
    suite.run("--veil-mode=record").assert_outcomes(passed=2)
    whole = suite.cassettes()
    suite.write(how, "")
    suite.run("--veil-mode=record")
    assert suite.cassettes() == whole


def test_a_runner_of_the_session_keeps_what_other_folders_recorded(suite: Suite) -> None:
    suite.write(
        "conftest.py",
        """
        import pytest

        @pytest.fixture(scope="session")
        def one(veil_run_factory):
            return veil_run_factory.make("one")

        @pytest.fixture(scope="session")
        def two(veil_run_factory):
            return veil_run_factory.make("two")
        """,
    )
    for folder, name in (("a", "one"), ("b", "two"), ("c", "one")):
        suite.write(f"{folder}/test_{folder}.py", f"def test_it({name}):\n    {name}('echo {folder}')\n")
    suite.run("--veil-mode=record").assert_outcomes(passed=3)
    whole = suite.cassettes()
    assert set(whole) == {"session.one.veil.txtar", "session.two.veil.txtar"}
    suite.run("--veil-mode=record", "a").assert_outcomes(passed=1)
    assert suite.cassettes() == whole
    (suite.path / "b/test_b.py").unlink()
    suite.run("--veil-mode=record", ".").assert_outcomes(passed=2)
    assert set(suite.cassettes()) == {"session.one.veil.txtar"}


PACKAGE = """
    import pytest

    @pytest.fixture(scope="package")
    def tool(veil_run_factory, request):
        return veil_run_factory.make("tool", request)
"""


def test_a_package_has_one_recording_whichever_test_comes_first(suite: Suite) -> None:
    suite.write("p/__init__.py", "")
    suite.write("p/conftest.py", PACKAGE)
    for name in "xy":
        suite.write(f"p/test_{name}.py", f"def test_it(tool):\n    tool('echo {name}')\n")
    suite.run("--veil-mode=record").assert_outcomes(passed=2)
    assert set(suite.cassettes("p/cassettes")) == {"package.tool.veil.txtar"}
    suite.run("--veil", "p/test_y.py", "p/test_x.py").assert_outcomes(passed=2)
    suite.run("--veil-mode=verify").assert_outcomes(passed=2)
    before = suite.cassettes("p/cassettes")
    suite.write("p/test_y.py", "def test_it(tool):\n    tool('echo z')\n    assert 0\n")
    suite.run("--veil-mode=record").assert_outcomes(passed=1, failed=1)
    assert suite.cassettes("p/cassettes") == before, "recorded although a test of the package failed"


INTERRUPTED = """
    import os
    import pytest

    @pytest.fixture
    def server(veil_run):
        veil_run("echo up")
        yield
        veil_run(["touch", os.environ["WORLD"]])

    def test_it(server, veil_run):
        os.kill(os.getpid(), {signal})
"""


def test_an_interrupted_test_can_still_clean_up(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write("test_it.py", INTERRUPTED.format(signal=int(signal.SIGINT)))
    down = suite.path / "down"
    monkeypatch.setenv("WORLD", str(down))
    for mode in ("live", "record"):
        result = suite.run(f"--veil-mode={mode}", "--veil-env=inherit")
        assert result.ret == pytest.ExitCode.INTERRUPTED
        assert down.exists()
        down.unlink()
    assert suite.cassettes() == {}


def test_workers_share_a_folder_without_the_one_of_pytest(suite: Suite) -> None:
    pytest.importorskip("xdist")
    suite.write("test_it.py", TWO)
    above = set(os.listdir("/"))
    suite.run("-n2", "--dist=loadfile", "-p", "no:tmpdir", "--veil-mode=record").assert_outcomes(passed=2)
    assert set(os.listdir("/")) == above
    assert len(suite.cassettes()) == 1
