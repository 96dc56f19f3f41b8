"""What a test says of its runs stands in the recording: the dict form and ``expect(result)`` alike."""

from __future__ import annotations

from typing import Any

import pytest
from sessions import Suite, suite

from veil.taping import Cassette, decode

__all__ = ["suite"]

BODY = """
    import pytest
    from pytest_veil import ExpectationError, expect

    SECRET = "hunter-2-{}"

    def test_it(veil_run):
        first = veil_run("echo one; echo x > f", expect={{"exit": 0}})
        second = veil_run("pwd; echo two", effects=False)
        expect(first).stdout.contains("one").not_.stderr.contains("Error").within(ms=60_000)
        with expect.all():
            expect(second).ok().stdout.contains(str(veil_run.root), "two")
            expect(first).file("f").contains("x").file("f").mode(0o644)
        for _ in range(50):
            expect(first).stdout.contains("one")
        with pytest.raises(ExpectationError):
            expect(second).created("f")
        expect(first).created("f")
        handle = veil_run.start("echo up; sleep 300")
        handle.wait_for(pattern="up")
        handle.kill()
        expect(handle.wait()).failed().stdout.contains("up").not_.stdout.contains(SECRET)
"""


def judged(tape: Cassette) -> list[list[tuple[str, str, Any]]]:
    return [[(said.check, said.status, said.expected) for said in step.judged] for step in tape.steps]


def test_every_check_stands_with_the_step_that_it_judged(suite: Suite) -> None:
    suite.write("test_it.py", BODY.format("sw0rdf1sh"))
    options = ("-o", "veil_secrets=hunter-2-sw0rdf1sh", "-p", "no:randomly")
    suite.run("--veil-mode=record", *options).assert_outcomes(passed=1)
    ((name, data),) = suite.cassettes().items()
    tape = decode(data, name)
    first, second, third = judged(tape)
    assert first == [
        ("exit", "passed", 0),
        ("stdout_contains", "passed", "one"),
        ("not_.stderr_contains", "passed", "Error"),
        ("max_ms", "passed", 60000),
        ("file_contains", "passed", "x"),
        ("mode", "passed", "0o644"),
        ("created", "passed", "f"),
    ]
    assert second == [
        ("exit", "passed", 0),
        ("stdout_contains", "passed", "<root>"),
        ("stdout_contains", "passed", "two"),
        ("created", "inconclusive", "f"),
    ]
    assert [row[:2] for row in third] == [
        ("failed", "passed"),
        ("stdout_contains", "passed"),
        ("not_.stdout_contains", "passed"),
    ]
    assert b"sw0rdf1sh" not in data
    for mode in ("record", "refresh", "replay", "verify"):
        suite.run(f"--veil-mode={mode}", *options).assert_outcomes(passed=1)
        assert suite.cassettes() == {name: data}


@pytest.mark.parametrize("check", ["expect(result).exit(1)", "expect(result).not_.ok()"])
def test_what_fails_stands_there_too_when_it_is_kept(suite: Suite, check: str) -> None:
    suite.write("test_it.py", f"def test_it(veil_run, expect):\n    result = veil_run('echo 1')\n    {check}\n")
    suite.run("--veil-mode=record", "--veil-keep-failed").assert_outcomes(failed=1)
    ((name, data),) = suite.cassettes().items()
    ((row,),) = judged(decode(data, name))
    assert row[1] == "failed"
    suite.run("--veil").assert_outcomes(failed=1)  # judged again, and it says the same


def test_what_is_said_of_a_run_outside_is_nobodys(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        import veil

        def test_it(veil_run, expect):
            veil_run("echo 1")
            expect(veil.run("echo outside")).ok()
        """,
    )
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    ((name, data),) = suite.cassettes().items()
    assert judged(decode(data, name)) == [[]]


@pytest.mark.parametrize("check", ["within(ms=60_000)", "not_.within(ms=0.001)"])
def test_how_long_it_took_is_in_no_recording(suite: Suite, check: str) -> None:
    suite.write("test_it.py", f"def test_it(veil_run, expect):\n    expect(veil_run('sleep 0.01')).{check}\n")
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    ((name, data),) = suite.cassettes().items()
    ((said,),) = (step.judged for step in decode(data, name).steps)
    assert (said.status, said.got, said.message) == ("passed", None, "")
