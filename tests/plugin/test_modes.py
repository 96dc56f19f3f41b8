"""What each mode does: what runs, what is answered, and what other plugins may say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

#: A command outside of any workspace leaves a line in a file of ours for each time that it really ran.
COUNTED = """
    import os

    RAN = os.environ["RAN"]

    def test_a(veil_run):
        assert veil_run(f"echo a >> {RAN}; echo a").stdout == "a\\n"

    def test_b(veil_run):
        assert veil_run(f"echo b >> {RAN}; echo b").stdout == "b\\n"
"""


@pytest.fixture
def ran(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What really ran, a line each."""
    path = tmp_path_factory.mktemp("ran") / "ran.txt"
    path.touch()
    monkeypatch.setenv("RAN", str(path))
    return path


def _took(ran: Path) -> str:
    """What ran since the last look."""
    found = "".join(sorted(ran.read_text().split()))
    ran.write_text("")
    return found


def test_what_runs_in_which_mode(suite: Suite, ran: Path) -> None:
    suite.write("test_it.py", COUNTED)
    suite.run().assert_outcomes(passed=2)
    assert _took(ran) == "ab"
    assert suite.cassettes() == {}
    suite.run("--veil-mode=live").assert_outcomes(passed=2)
    assert _took(ran) == "ab"
    assert suite.cassettes() == {}
    suite.run("--veil").assert_outcomes(failed=2)  # nothing is recorded, and nothing runs
    assert _took(ran) == ""
    suite.run("--veil-mode=record", "-k", "test_a").assert_outcomes(passed=1, deselected=1)
    assert _took(ran) == "a"
    assert list(suite.cassettes()) == ["test_it.test_a.veil.txtar"]
    suite.run("--veil-mode=record-missing").assert_outcomes(passed=2)
    assert _took(ran) == "b"
    suite.run("--veil").assert_outcomes(passed=2)
    assert _took(ran) == ""
    for mode in ("record", "refresh", "verify"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=2)
        assert _took(ran) == "ab"


def test_a_miss_fails_past_every_except_and_runs_nothing(suite: Suite, ran: Path) -> None:
    suite.write("test_it.py", COUNTED)
    suite.run("--veil-mode=record").assert_outcomes(passed=2)
    _took(ran)
    suite.write(
        "test_it.py",
        COUNTED.replace("echo a >>", "echo A >>").replace(
            'assert veil_run(f"echo b', 'veil_run(f"echo b >> {RAN}; echo b")\n        assert veil_run(f"echo b'
        )
        + """
    def test_swallowed(veil_run):
        try:
            veil_run("echo anything")
        except Exception:
            pass

    def test_swallowed_for_good(veil_run):
        try:
            veil_run("echo anything")
        except BaseException:
            pass
        """,
    )
    result = suite.run("--veil")
    result.assert_outcomes(failed=4)
    assert _took(ran) == ""
    shown = result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "*cassettes/test_it.test_a.veil.txtar: never recorded: echo A*",
            "*nearest is step 1; it differs in",
            "*command: asked 'echo A*recorded 'echo a*",
            "*nothing was run; unused steps: 1",
            "*test_it.test_b.veil.txtar: already used: it was recorded 1x and asked for once more*",
            "*no cassette file: echo anything*",
        ]
    )
    assert "(the test went on and passed, but nothing had answered)" in shown
    # the line of the test, and nothing of what is behind the fixture
    assert "> " in shown
    assert not re.search(r"^(\S*/)?(veil|pytest_veil)/\S+\.py:\d+", shown, re.MULTILINE)


def test_a_recording_of_another_profile_says_so(suite: Suite) -> None:
    suite.write("test_it.py", "def test_it(veil_run):\n    veil_run('echo x', env={'A': veil_run.mode})\n")
    suite.run("--veil-mode=record", "--veil-env=inherit").assert_outcomes(passed=1)
    result = suite.run("--veil")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*recorded under another version: profile inherit 1, now deterministic 1*"])


WATCHED = """
    import os
    import sys

    STARTED = []

    def watch(event, arguments):
        if event in ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"):
            STARTED.append((event, arguments))

    sys.addaudithook(watch)

    def pytest_unconfigure(config):
        with open("started.txt", "w") as file:
            file.write(str(len(STARTED)))
"""
STEPS = """
    import asyncio

    def test_it(veil_run, veil_arun, expect):
        expect(veil_run("my-tool > f; ls f", expect={"file_exists": "f"})).ok().file("f").exists()
        asyncio.run(veil_arun("my-tool"))
        with veil_run.start("my-tool; sleep 100") as handle:
            handle.wait_for(pattern="made")
        veil_run("git init -q .")
"""


@pytest.mark.needs("git")
def test_a_replay_starts_no_process(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = suite.write("bin/my-tool", "#!/bin/sh\necho made\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    suite.write("conftest.py", WATCHED)
    suite.write("test_it.py", STEPS)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    assert int((suite.path / "started.txt").read_text()) > 0  # the watch sees what there is to see
    tool.unlink()
    suite.run("--veil").assert_outcomes(passed=1)
    assert (suite.path / "started.txt").read_text() == "0"


@pytest.mark.needs("strace")
def test_a_replay_makes_no_system_call_that_starts_a_process(suite: Suite, tmp_path: Path) -> None:
    import subprocess
    import sys

    suite.write("test_it.py", 'def test_it(veil_run):\n    assert veil_run("echo 1").stdout == "1\\n"\n')
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    log = tmp_path / "calls"
    command = ["strace", "-f", "-o", log, "-e", "trace=execve,fork,vfork,clone,clone3", sys.executable, "-m", "pytest"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--veil"], cwd=suite.path, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stdout
    calls = [line for line in log.read_text().splitlines() if re.search(r"\b(execve|v?fork|clone3?)\(", line)]
    assert len([line for line in calls if "CLONE_THREAD" not in line]) == 1  # that of strace for Python itself


def test_the_same_command_with_other_answers_replays_in_order(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case rr-01."""
    suite.write(
        "test_it.py",
        """
        import os
        TIMES = int(os.environ["TIMES"])

        def test_it(veil_run):
            count = "cat n 2>/dev/null; echo $(( $(cat n 2>/dev/null || echo 0) + 1 )) > n"
            seen = [veil_run(count) for _ in range(TIMES)]
            assert [run.stdout for run in seen] == ["", "1\\n", "2\\n"][:TIMES]
        """,
    )
    monkeypatch.setenv("TIMES", "2")
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    suite.run("--veil").assert_outcomes(passed=1)
    monkeypatch.setenv("TIMES", "3")
    suite.run("--veil").assert_outcomes(failed=1)


def test_what_other_plugins_may_say(suite: Suite) -> None:
    suite.write(
        "conftest.py",
        """
        import dataclasses
        import pytest

        def pytest_veil_scrub(config, nodeid):
            assert nodeid == "test_it.py::test_it"
            return ["of-another-plugin"]

        def pytest_veil_key(config, nodeid, key):
            if isinstance(key.command, str):
                return dataclasses.replace(key, command=key.command.replace("--quick ", ""))

        def pytest_veil_record(config, nodeid, step):
            if step.text and "refuse" in step.text:
                raise RuntimeError("not to be recorded")
            return dataclasses.replace(step, notes={"seen": True})

        def pytest_veil_normalisers(config):
            from veil.taping import numbered
            return [numbered("tickets", 1, "numbers of tickets", "ticket", rb"ticket-(?P<value>[0-9]+)")]

        def pytest_veil_verdict(config, outcome):
            print("verdict", outcome.nodeid, outcome.verdict)
        """,
    )
    suite.write("test_it.py", 'def test_it(veil_run):\n    veil_run("echo --quick of-another-plugin ticket-$$")\n')
    suite.run("--veil-mode=record", "-s").stdout.fnmatch_lines(["*verdict test_it.py::test_it recorded"])
    (tape,) = suite.cassettes().values()
    assert b"of-another-plugin" not in tape
    assert b'"seen": true' in tape
    suite.run("--veil-mode=verify").stdout.fnmatch_lines(["1 recording: 1 normalised"])
    suite.write("test_it.py", 'def test_it(veil_run):\n    veil_run("echo of-another-plugin ticket-$$")\n')
    suite.run("--veil").assert_outcomes(passed=1)
    suite.write("test_it.py", 'def test_it(veil_run):\n    veil_run("echo refuse")\n')
    refused = suite.run("--veil-mode=record")
    refused.assert_outcomes(passed=1, errors=1)
    refused.stdout.fnmatch_lines(["*was not written: RuntimeError: not to be recorded*"])
    assert list(suite.cassettes().values()) == [tape]


def test_the_report_of_a_test_has_plain_values(suite: Suite) -> None:
    suite.write("test_it.py", 'def test_it(veil_run):\n    veil_run("echo 1")\n')
    suite.run("--veil-mode=record", "--junitxml=out.xml", "--veil-report=out.json").assert_outcomes(passed=1)
    xml = (suite.path / "out.xml").read_text()
    assert '<property name="veil_verdict" value="recorded"' in xml
    assert '<property name="veil_cassette" value="cassettes/test_it.test_it.veil.txtar"' in xml
    (item,) = json.loads((suite.path / "out.json").read_text())["items"]
    assert item["steps"][0]["word"] == "recorded"
