"""The fixture ``veil_shell``: one recording of a session, played with no process, the same state at every step."""

from __future__ import annotations

import re

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

pytestmark = pytest.mark.needs("bash")

SESSION = """
    import os

    def test_build(veil_shell, veil_run):
        assert veil_shell("mkdir -p src/lib && cd src && export MODE=fast; count=1; hi() { echo hi $1; }").ok
        assert veil_shell.cwd == veil_run.root / "src"
        assert veil_shell.results[-1].cwd_after == str(veil_run.root / "src")
        assert veil_shell("echo $MODE $count; hi you; pwd").stdout == f"fast 1\\nhi you\\n{veil_run.root}/src\\n"
        assert veil_shell("cd lib; touch made; exit 3").exit == 3
        assert veil_shell.cwd == veil_run.root / "src" / "lib"
        assert veil_shell("cd /; kill -9 $$").signal == "SIGKILL"
        assert veil_shell.cwd == veil_run.root / "src" / "lib"
        assert veil_shell("ls").stdout == "made\\n"
        assert veil_run("pwd").stdout == f"{veil_run.root}\\n"
        assert [run.session for run in veil_run.results] == ["s1"] * 5 + [None]
        assert os.path.exists(veil_run.root / "src/lib/made")
    """


def test_recorded_replayed_verified(suite: Suite) -> None:
    suite.write("test_it.py", SESSION)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    recorded = suite.cassettes()
    suite.run("--veil-mode=replay").assert_outcomes(passed=1)
    suite.run("--veil-mode=replay", "--basetemp=other place").assert_outcomes(passed=1)
    suite.run("--veil-mode=live").assert_outcomes(passed=1)
    suite.run().assert_outcomes(passed=1)
    suite.run("--veil-mode=verify").assert_outcomes(passed=1)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    assert suite.cassettes() == recorded
    (text,) = recorded.values()
    assert str(suite.path).encode() not in text
    assert b"BASH_ENV" not in text
    assert b"/dev/fd" not in text


def test_a_replay_starts_nothing(suite: Suite) -> None:
    suite.write("test_it.py", SESSION)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    suite.write(
        "conftest.py",
        """
        import subprocess

        def refuse(*words, **options):
            raise AssertionError(f"a process: {words}")

        subprocess.Popen.__init__ = refuse
        """,
    )
    suite.run("--veil-mode=replay").assert_outcomes(passed=1)


def test_what_a_step_stands_on_is_part_of_the_question(suite: Suite) -> None:
    """The same words after another command that changed the state are another question; after one that did not, the
    same."""
    body = """
    def test_it(veil_shell):
        {first}
        assert veil_shell("echo $A").stdout == "{value}\\n"
    """
    suite.write("test_it.py", body.format(first='veil_shell("true"); veil_shell("A=1"); veil_shell("true")', value="1"))
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    suite.write("test_it.py", body.format(first='veil_shell("A=1")', value="1"))
    suite.run("--veil-mode=replay").assert_outcomes(passed=1)
    suite.write("test_it.py", body.format(first='veil_shell("true")', value="1"))
    told = suite.run("--veil-mode=replay")
    told.assert_outcomes(failed=1)
    assert re.search(r"never recorded: echo \$A", told.stdout.str())


def test_two_sessions_and_a_background_run(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        import asyncio
        import pytest
        from veil import BadInput

        def test_it(veil_shell):
            other = veil_shell.open("db", env={"A": "theirs"})
            other("true")
            other(["true"])
            veil_shell("export A=ours; mkdir d; cd d")
            other("export B=$A")
            with veil_shell.start('echo up $A; sleep 100') as handle:
                assert handle.wait_for(pattern="up (.*)")
                assert "up ours" in handle.logs().stdout
            assert other("echo $B $A").stdout == "theirs theirs\\n"
            assert asyncio.run(veil_shell.arun("echo $A; pwd")).stdout == f"ours\\n{veil_shell.root}/d\\n"
            with pytest.raises(BadInput, match="a name that no session"):
                veil_shell.open("db")
        """,
    )
    for mode in ("live", "record", "replay"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=1)


def test_a_cassette_by_itself_is_played_and_recorded_again(suite: Suite) -> None:
    """Steps of sessions are asked again in sessions."""
    suite.write(
        "test_it.py",
        """
        def test_it(veil_shell):
            veil_shell("mkdir d; cd d; x=5; f() { echo f $x; }", env={"E": "1"})
            assert veil_shell("f; pwd; echo $E").stdout.startswith("f 5")
        """,
    )
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    (path,) = (suite.path / "cassettes").glob("*.veil.txtar")
    script = suite.write(
        "again.py",
        f"""
        import os
        from pathlib import Path
        from veil import taping

        old = taping.decode(Path({str(path)!r}).read_bytes(), "it")
        for player in (True, False):
            base = Path("base").absolute()
            base.mkdir(exist_ok=True)
            stage = taping.Stage.make(
                base, taping.PROFILES[old.header.profile], os.environ
            )
            if player:
                played = list(taping.replay(old, stage, "it"))
            else:
                new, played = taping.record_again(old, taping.Recorder(stage))
                assert [taping.key_of(step) for step in new.steps] == [taping.key_of(step) for step in old.steps]
                assert [step.ending for step in new.steps] == [step.ending for step in old.steps]
            assert [one.failures for one in played] == [(), ()]
            assert played[1].result.stdout.startswith("f 5\\n"), played[1].result
        print("done")
        """,
    )
    done = suite.pytester.runpython(script)
    done.stdout.fnmatch_lines(["done"])
