"""The fixtures: workspaces, shared runners, the end of a test, failures; with pyfakefs and coverage about."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sessions import Suite, suite

from pytest_veil.real_disk import real_disk

__all__ = ["suite"]


def test_a_workspace_of_its_own(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        SEEN = []

        def test_one(veil_run):
            assert veil_run("ls -A").stdout == ""
            veil_run("mkdir -p d; touch d/f; chmod 0 d")
            SEEN.append(veil_run.root)

        def test_two(veil_run):
            assert veil_run("ls -A").stdout == ""
            assert veil_run.root.is_dir()
            assert [run.command for run in veil_run.results] == ["ls -A"]
        """,
    )
    for mode in ("live", "record", "replay"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=2)
    suite.run().assert_outcomes(passed=2)
    assert os.listdir(suite.path).count("d") == 0


SHARED = """
    import pytest

    @pytest.fixture(scope="module")
    def server(veil_run_factory, request):
        run = veil_run_factory.make("server", request)
        run("echo built > built")
        with run.start("echo up; sleep 100") as handle:
            handle.wait_for(pattern="up")
            yield run

    @pytest.fixture(scope="session")
    def tool(veil_run_factory):
        run = veil_run_factory.make("tool")
        run("echo tool > tool")
        return run

    def test_one(server, tool, veil_run):
        assert server("cat built").stdout == "built\\n"
        assert tool("cat tool").stdout == "tool\\n"
        assert veil_run("ls").stdout == ""

    def test_two(server):
        assert server("cat built; ls").stdout == "built\\nbuilt\\n"
"""


def test_shared_runners_have_recordings_of_their_own(suite: Suite) -> None:
    suite.write("test_it.py", SHARED)
    suite.run().assert_outcomes(passed=2)
    suite.run("--veil-mode=record").assert_outcomes(passed=2)
    assert set(suite.cassettes()) == {
        "test_it.server.veil.txtar",
        "session.tool.veil.txtar",
        "test_it.test_one.veil.txtar",
    }
    before = suite.cassettes()
    suite.run("--veil", "--veil-unused=error").assert_outcomes(passed=2)
    suite.run("--veil-mode=verify").assert_outcomes(passed=2)
    suite.run("--veil-mode=record").assert_outcomes(passed=2)
    assert suite.cassettes() == before
    suite.write("test_it.py", SHARED.replace("cat built; ls", "cat built; ls -A"))
    suite.run("--veil").assert_outcomes(passed=1, failed=1)
    suite.write("test_it.py", SHARED.replace('"built\\nbuilt\\n"', '"other"').replace("echo built >", "echo other >"))
    suite.run("--veil-mode=record").assert_outcomes(failed=2)
    assert suite.cassettes() == before


def test_two_shared_runners_need_two_names(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        def test_it(veil_run_factory):
            veil_run_factory.make("a")("echo 1")
            veil_run_factory.make("a")
        """,
    )
    result = suite.run("--veil-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*cassettes/session.a.veil.txtar: it is the recording of *"])


def test_what_is_left_in_the_background_ends_with_the_test(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        import os
        PIDS = []

        def test_one(veil_run):
            for _ in range(3):
                PIDS.append(veil_run.start("sleep 1000").pid)
            assert 0

        def test_two():
            for pid in PIDS:
                try:
                    os.kill(pid, 0)
                except ProcessLookupError:
                    continue
                raise AssertionError(pid)
        """,
    )
    for mode in ("off", "live", "record"):
        options = [] if mode == "off" else [f"--veil-mode={mode}"]
        suite.run(*options).assert_outcomes(failed=1, passed=1)


def test_a_failure_shows_the_line_of_the_test_and_the_run(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        def test_plain(veil_run):
            result = veil_run("echo it went wrong here >&2; exit 3")
            assert result.ok

        def test_compared(veil_run):
            assert veil_run("echo a") == veil_run("echo b")

        def test_expected(veil_run, expect):
            expect(veil_run("echo a")).stdout.contains("b")

        def test_wrong_word(veil_run):
            veil_run("true", timout=3)
        """,
    )
    result = suite.run()
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            ">       assert result.ok",
            "*veil run cmd1*",
            "*it went wrong here",
            "records: VEIL_STATE_DIR=*",
            "E*runs cmd2 and cmd3 are not equal",
            '>       expect(veil_run("echo a")).stdout.contains("b")',
            "E*check: stdout.contains('b')",
            '>       veil_run("true", timout=3)',
            "E*timout: expected an option that veil knows (did you mean 'timeout'[?]), got 3",
        ]
    )


def test_an_id_in_a_failure_resolves(suite: Suite) -> None:
    suite.write("test_it.py", 'def test_it(veil_run):\n    assert not veil_run("echo found again").ok\n')
    for options in ((), ("--veil-mode=live",), ("--veil-mode=record",)):
        lines = suite.run(*options).stdout.lines
        state = next(line for line in lines if line.startswith("records: ")).split("VEIL_STATE_DIR=")[1].split()[0]
        done = subprocess.run(
            [sys.executable, "-m", "veil", "detail", "cmd1"],
            cwd=suite.path,
            env={**os.environ, "VEIL_STATE_DIR": state},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "found again" in done.stdout


def test_the_users_own_store_is_left_alone(suite: Suite) -> None:
    suite.write("test_it.py", 'def test_it(veil_run):\n    veil_run("echo x")\n')
    for options in ((), ("--veil-mode=record",), ("--veil",)):
        suite.run(*options).assert_outcomes(passed=1)
    assert os.listdir(os.environ["VEIL_STATE_DIR"]) == []


def test_a_runner_that_outlives_its_test_runs_nothing(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        KEPT = []

        def test_one(veil_run):
            KEPT.append(veil_run)

        def test_two():
            KEPT[0]("echo x")
        """,
    )
    result = suite.run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*the runner of test_it.py::test_one was used after its end"])


FAKE = """
    import os

    def test_before(veil_run, fs):
        body(veil_run, fs)

    def test_after(fs, veil_run):
        body(veil_run, fs)

    def body(veil_run, fs):
        fs.create_file("/data/x.txt", contents="fake\\n")
        assert veil_run("echo hi > f; cat f; ls /data 2>&1 | wc -l").stdout == "hi\\n1\\n"
        assert not os.path.exists("/bin/sh")
        assert os.listdir("/data") == ["x.txt"]
        with veil_run.start("echo up; sleep 0.3; echo later; sleep 100") as handle:
            handle.wait_for(pattern="later")
            assert handle.logs().stdout == "up\\nlater\\n"
        veil_run.copy_in("/data/x.txt", "/data", into="got")
        assert veil_run("cat got/x.txt got/data/x.txt").stdout == "fake\\nfake\\n"

    def test_expect(fs, veil_run, expect):
        result = veil_run("echo hi > f", expect={"file_exists": "f"})
        expect(result).created("f").file("f").contains("hi")
"""


def test_with_pyfakefs_everything_is_on_the_real_disk(suite: Suite) -> None:
    suite.write("test_it.py", FAKE)
    for mode in ("off", "record", "replay", "verify"):
        options = [] if mode == "off" else [f"--veil-mode={mode}"]
        suite.run(*options).assert_outcomes(passed=3)
    assert len(suite.cassettes()) == 3
    for name in ("test_before", "test_after", "test_expect"):  # whichever is the first that uses veil
        suite.run("-k", name).assert_outcomes(passed=1, deselected=2)


def test_the_real_disk_may_be_asked_for_twice(fs: object) -> None:
    assert not Path(__file__).exists()
    with real_disk():
        with real_disk():
            assert Path(__file__).exists()
        assert Path(__file__).exists()
    assert not Path(__file__).exists()


COVERED = """
    def test_it(veil_run):
        (veil_run.root / "program.py").write_text("import sys\\nprint('hi')\\nprint('bye', file=sys.stderr)\\n")
        result = veil_run("python program.py")
        assert (result.stdout, result.stderr) == ("hi\\n", "bye\\n")
        assert result.files_changed == []
"""


def test_with_coverage_children_are_measured_and_recordings_are_the_same(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    suite.write("test_it.py", COVERED)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    plain = suite.cassettes()
    suite.write("cov.ini", "[run]\npatch = subprocess\nparallel = true\nsource_pkgs =\n")
    coverage_ = [sys.executable, "-m", "coverage"]
    run = [*coverage_, "run", "--rcfile=cov.ini", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    for mode in ("record", "replay"):
        done = subprocess.run(
            [*run, f"--veil-mode={mode}"], cwd=suite.path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert suite.cassettes() == plain
        if mode == "record":
            subprocess.run([*coverage_, "combine", "--rcfile=cov.ini", "-q"], cwd=suite.path, check=True)
            import coverage

            data = coverage.CoverageData(str(suite.path / ".coverage"))
            data.read()
            assert any(file.endswith("/w/program.py") for file in data.measured_files())
