"""With xdist: the same recordings, one report, and nothing torn when a worker dies."""

from __future__ import annotations

import json

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

pytest.importorskip("xdist")

MANY = """
    import pytest

    @pytest.mark.parametrize("n", range(12))
    def test_it(veil_run, n):
        veil_run(f"echo {n} > f; pwd; echo $HOME $TMPDIR")
        assert veil_run("cat f; ls -a").ok
        with veil_run.start("echo up; sleep 100") as handle:
            handle.wait_for(pattern="up")
"""


def test_four_workers_record_what_one_process_records(suite: Suite) -> None:
    suite.write("test_it.py", MANY)
    suite.run("--veil-mode=record").assert_outcomes(passed=12)
    alone = suite.cassettes()
    assert len(alone) == 12
    for path in (suite.path / "cassettes").iterdir():
        path.unlink()
    suite.run("-n4", "--veil-mode=record", "--veil-report=out.json").assert_outcomes(passed=12)
    assert suite.cassettes() == alone
    report = json.loads((suite.path / "out.json").read_text())
    assert sorted(item["verdict"] for item in report["items"]) == ["recorded"] * 12
    suite.run("-n4", "--veil", "--veil-unused=error").assert_outcomes(passed=12)
    suite.run("-n2", "--veil-mode=verify").assert_outcomes(passed=12)


def test_wrong_options_are_told_by_the_controller(suite: Suite) -> None:
    suite.write("test_it.py", MANY)
    result = suite.run("-n2", "--veil", "--veil-runs=0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    suite.write("test_it.py", "import pytest\n@pytest.mark.veil(mode='x')\ndef test_it(veil_run): pass\n")
    marked = suite.run("-n2", "--veil")
    marked.assert_outcomes(errors=1)
    marked.stdout.fnmatch_lines(["*veil(mode=...): expected one of*"])


def test_a_worker_that_dies_leaves_no_half_file(suite: Suite) -> None:
    suite.write("test_it.py", MANY)
    suite.write(
        "test_dies.py",
        """
        import os, signal

        def test_dies(veil_run):
            veil_run("echo 1")
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    result = suite.run("-n2", "--veil-mode=record", "--veil-report=out.json")
    assert result.ret != 0
    report = json.loads((suite.path / "out.json").read_text())
    assert len(report["items"]) == 13
    assert [item["nodeid"] for item in report["items"] if item["verdict"] == "error"] == ["test_dies.py::test_dies"]
    names = {path.name for path in (suite.path / "cassettes").iterdir()}
    assert "test_dies.test_dies.veil.txtar" not in names
    assert all(data.endswith(b"-- end --\n") for data in suite.cassettes().values())
    suite.run("-n2", "--veil", "test_it.py").assert_outcomes(passed=12)


def test_stale_recordings_are_removed_by_the_controller(suite: Suite) -> None:
    suite.write("test_it.py", MANY)
    suite.run("--veil-mode=record").assert_outcomes(passed=12)
    suite.write("test_it.py", MANY.replace("range(12)", "range(3)"))
    suite.run("-n2", "--veil-mode=record", "-k", "1").assert_outcomes(passed=1)
    assert len(suite.cassettes()) == 12
    suite.run("-n2", "--veil-mode=record").assert_outcomes(passed=3)
    assert len(suite.cassettes()) == 3


SHARED = """
    import os
    import pytest

    @pytest.fixture(scope="module")
    def server(veil_run_factory, request):
        return veil_run_factory.make("server", request)

    @pytest.mark.parametrize("n", range(4))
    def test_it(server, n):
        server(f"echo {n}")
"""


def test_a_shared_recording_belongs_to_one_worker(suite: Suite) -> None:
    suite.write("test_it.py", SHARED)
    suite.run("--veil-mode=record").assert_outcomes(passed=4)
    alone = suite.cassettes()
    torn = suite.run("-n2", "--dist=load", "--veil-mode=record")
    assert torn.ret != 0
    torn.stdout.fnmatch_lines(["*test_it.server.veil.txtar: two workers recorded*--dist=loadfile*"])
    suite.run("-n2", "--dist=loadfile", "--veil-mode=record").assert_outcomes(passed=4)
    assert suite.cassettes() == alone
    suite.run("-n2", "--dist=load", "--veil", "--veil-unused=error").assert_outcomes(passed=4)
