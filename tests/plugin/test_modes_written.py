"""What a mode writes and what fails instead: only what passed, nothing left over, no secret."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sessions import Suite, suite

__all__ = ["suite"]


def test_only_a_test_that_passed_is_written(suite: Suite) -> None:
    good = 'def test_it(veil_run):\n    assert veil_run("echo 1").ok\n'
    bad = 'def test_it(veil_run):\n    assert veil_run("echo 2").ok\n    assert False\n'
    suite.write("test_it.py", good)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    recorded = suite.cassettes()
    suite.write("test_it.py", bad)
    for mode in ("record", "refresh"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(failed=1)
        assert suite.cassettes() == recorded
    torn = "import pytest\n@pytest.fixture\ndef torn(veil_run):\n    yield\n    assert 0\n"
    suite.write("test_it.py", f'{torn}def test_it(veil_run, torn):\n    veil_run("echo 3")\n')
    suite.run("--veil-mode=record").assert_outcomes(passed=1, errors=1)  # its own teardown failed
    assert suite.cassettes() == recorded
    suite.write("test_it.py", f'{torn}def test_it(torn, veil_run):\n    veil_run("echo 3")\n    pytest.skip("no")\n')
    suite.run("--veil-mode=record").assert_outcomes(skipped=1, errors=1)
    suite.write(
        "test_it.py", 'import pytest\n@pytest.mark.xfail\ndef test_it(veil_run):\n    assert veil_run("false").ok\n'
    )
    suite.run("--veil-mode=record").assert_outcomes(xfailed=1)
    assert suite.cassettes() == recorded
    suite.write("test_it.py", bad)
    kept = suite.run("--veil-mode=record", "--veil-keep-failed")
    kept.assert_outcomes(failed=1)
    assert b"echo 2" in suite.cassettes()["test_it.test_it.veil.txtar"]
    place = re.search(r"^workspace: (.+)$", kept.stdout.str(), re.MULTILINE)
    assert place is not None
    assert Path(place[1]).is_dir()


def test_a_test_that_runs_nothing_any_more_has_no_recording(suite: Suite) -> None:
    suite.write("test_it.py", 'def test_it(veil_run):\n    veil_run("echo 1")\n')
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    suite.write("test_it.py", "def test_it(veil_run):\n    pass\n")
    suite.run("--veil").assert_outcomes(passed=1)
    suite.run("--veil", "--veil-unused=error").assert_outcomes(failed=1)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    assert suite.cassettes() == {}
    suite.run("--veil").assert_outcomes(passed=1)


def test_unused_steps(suite: Suite) -> None:
    suite.write("test_it.py", 'def test_it(veil_run):\n    veil_run("echo 1")\n    veil_run("echo 2")\n')
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    suite.write("test_it.py", 'def test_it(veil_run):\n    veil_run("echo 1")\n')
    told = suite.run("--veil")
    told.assert_outcomes(passed=1)
    told.stdout.fnmatch_lines(["unused steps:", "  test_it.py::test_it: 2"])
    failed = suite.run("--veil", "--veil-unused=error", "--veil-report=report.json", "--junitxml=junit.xml")
    failed.assert_outcomes(failed=1)
    (item,) = json.loads((suite.path / "report.json").read_text())["items"]
    assert (item["outcome"], item["verdict"], item["unused"]) == ("failed", "replayed", [2])
    junit = ElementTree.parse(suite.path / "junit.xml").getroot()[0]
    assert (junit.get("tests"), junit.get("failures"), junit.get("errors")) == ("1", "1", "0")
    failed.stdout.fnmatch_lines(["*test_it.test_it.veil.txtar: 1 recorded step* not asked for:", "*2: echo 2"])
    suite.write("test_it.py", 'def test_it(veil_run):\n    veil_run("echo 2")\n    veil_run("echo 1")\n')
    suite.run("--veil", "--veil-unused=error").assert_outcomes(passed=1)  # order is the test's business


UNUSED = """
    import pytest

    @pytest.fixture
    def tidy(veil_run):
        yield
        veil_run("echo tidy")

    @pytest.fixture(scope="module")
    def shared():
        yield
        print("the module is over")

    def test_at_the_end(veil_run, tidy, shared):
        veil_run("echo 1")

    def test_left_over(veil_run, shared):
        veil_run("echo 1")
        {more}

    def test_after(veil_run, shared):
        veil_run("echo 1")

    @pytest.mark.xfail(strict=False)
    def test_expected_to_fail(veil_run):
        veil_run("echo 1")
        {more}

    @pytest.mark.veil(unused="report")
    def test_told_only(veil_run):
        veil_run("echo 1")
        {more}
"""


def test_what_is_left_over_fails_the_test_and_not_its_teardown(suite: Suite) -> None:
    suite.write("test_it.py", UNUSED.format(more='veil_run("echo 2")'))
    suite.run("--veil-mode=record").assert_outcomes(passed=4, xpassed=1)
    suite.run("--veil", "-o", "veil_unused=error").assert_outcomes(passed=4, xpassed=1)
    suite.write("test_it.py", UNUSED.format(more="pass"))
    done = suite.run("--veil", "-o", "veil_unused=error", "-v", "-s")
    # what was to fail and did not is no failure that pytest would count: there it is an error, so that it is seen
    done.assert_outcomes(passed=3, failed=1, xpassed=1, errors=1)
    done.stdout.fnmatch_lines(["*::test_left_over FAILED*", "*::test_after PASSED*", "*the module is over*"])
    stopped = suite.run("--veil", "-o", "veil_unused=error", "-x", "-s")
    stopped.assert_outcomes(passed=1, failed=1)
    assert stopped.stdout.str().count("the module is over") == 1


def test_a_body_that_fails_is_told_before_what_its_neighbours_share_ends(suite: Suite) -> None:
    body = """
        import pytest

        @pytest.fixture(scope="module")
        def shared():
            yield
            assert 0, "of the module"

        def test_one(veil_run, shared):
            assert veil_run("echo 1").stdout == "{word}\\n"

        def test_two(shared):
            pass
    """
    suite.write("test_it.py", body.format(word=1))
    suite.run("--veil-mode=record").assert_outcomes(passed=2, errors=1)
    suite.write("test_it.py", body.format(word=2))
    done = suite.run("--veil", "--veil-unused=error", "-x")
    done.assert_outcomes(failed=1, errors=1)
    done.stdout.fnmatch_lines(["*of the module*"])


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="pytest has no subtests")
def test_a_subtest_that_fails_keeps_a_test_from_being_recorded(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        def test_it(veil_run, subtests):
            for number in (1, 2):
                with subtests.test(number=number):
                    assert veil_run(f"echo {number}").stdout == "2\\n"
        """,
    )
    suite.run("--veil-mode=record").assert_outcomes(failed=2)
    assert suite.cassettes() == {}


def test_refresh_rewrites_only_what_behaves_differently(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(
        "test_it.py",
        """
        def test_it(veil_run):
            veil_run("date -u +%Y-%m-%dT%H:%M:%S.%NZ")
            veil_run("cat $FILE")
        """,
    )
    said = suite.write("said.txt", "one\n")
    monkeypatch.setenv("FILE", str(said))
    options = ("-o", "veil_pass_env=FILE")
    suite.run("--veil-mode=record", *options).assert_outcomes(passed=1)
    before = suite.cassettes()
    suite.run("--veil-mode=refresh", *options).assert_outcomes(passed=1)
    assert suite.cassettes() == before  # another time, the same behaviour
    said.write_text("two\n")
    result = suite.run("--veil-mode=refresh", *options)
    result.stdout.fnmatch_lines(["2 steps: *1 recorded*"])
    old, new = (tape["test_it.test_it.veil.txtar"].splitlines() for tape in (before, suite.cassettes()))
    changed = [(one, two) for one, two in zip(old, new, strict=True) if one != two]
    assert (b"one", b"two") in changed
    assert len(changed) == 2  # the word itself, and the digest of the stream


def test_refresh_never_leaves_a_mixture_that_cannot_be_replayed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(
        "test_it.py",
        """
        def test_it(veil_run):
            veil_run("date -u +%Y-%m-%dT%H:%M:%S.%NZ > time")
            veil_run("cat time >> all; echo $WORD >> time")
        """,
    )
    for word in ("one", "two"):
        monkeypatch.setenv("WORD", word)
        suite.run("--veil-mode=refresh", "-o", "veil_pass_env=WORD").assert_outcomes(passed=1)
        suite.run("--veil", "--veil-unused=error").assert_outcomes(passed=1)


def test_drift(suite: Suite) -> None:
    body = """
        def test_it(veil_run):
            (veil_run.root / "f").write_text({text!r})
            veil_run("echo more >> f")
            assert (veil_run.root / "f").read_text() == {end!r}
    """
    suite.write("test_it.py", body.format(text="one\n", end="one\nmore\n"))
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    suite.write("test_it.py", body.format(text="two\n", end="one\nmore\n"))
    error = suite.run("--veil")
    error.assert_outcomes(failed=1)
    error.stdout.fnmatch_lines(["*state of f: asked*recorded*"])
    suite.run("--veil", "--veil-on-drift=apply").assert_outcomes(passed=1)
    suite.write("test_it.py", body.format(text="two\n", end="two\n"))
    suite.run("--veil", "--veil-on-drift=ignore").assert_outcomes(passed=1)


def test_secrets_stand_nowhere(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "the-quick-brown-secret"
    monkeypatch.setenv("SERVICE_API_TOKEN", secret)
    suite.write("pytest.ini", "[pytest]\nveil_secrets = of-the-ini-file-9\n")
    suite.write(
        "test_it.py",
        """
        import os
        SECRET = os.environ["SERVICE_API_TOKEN"]

        def test_passes(veil_run, expect):
            run = veil_run(f"echo {SECRET}; echo {SECRET} >&2; echo {SECRET} > f; echo of-the-ini-file-9",
                           expect={"stdout_contains": SECRET}, env={"X": SECRET}, stdin=SECRET)
            assert run.assert_ok
            veil_run(["printf", "%s", SECRET])
            veil_run("for i in 1 2 3; do printf the-quick-; sleep 0.05; printf brown-secret; done")

        def test_fails(veil_run, expect):
            print("captured", SECRET)
            expect(veil_run(f"echo {SECRET}")).stdout.contains(f"not {SECRET}")

        def test_asserts(veil_run):
            local = SECRET
            assert veil_run(f"echo {SECRET}").stdout == f"other {SECRET}"
        """,
    )
    for mode in ("record", "replay", "verify"):
        result = suite.run(
            f"--veil-mode={mode}", "--veil-report=out.json", "--junitxml=out.xml", "-l", "--veil-keep-failed"
        )
        result.assert_outcomes(passed=1, failed=2)
        everything = [
            *suite.cassettes().values(),
            (suite.path / "out.json").read_bytes(),
            (suite.path / "out.xml").read_bytes(),
        ]
        for text in (*everything, result.stdout.str().encode()):
            assert secret.encode() not in text
            assert b"of-the-ini-file-9" not in text
        assert "[redacted]" in result.stdout.str()
