"""One body of a test passes with the plugin off, live, recorded, replayed and verified."""

from __future__ import annotations

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

BODIES = """
    import asyncio
    import os
    import time
    from pathlib import Path

    import pytest

    import veil


    def test_streams_and_exit(veil_run, expect):
        result = veil_run("echo o; echo e >&2; exit 3", expect={"exit": 3, "stdout_contains": "o"})
        assert (result.exit, result.ended, result.stdout, result.stderr) == (3, "exited", "o\\n", "e\\n")
        assert result.assert_ok
        expect(result).exit(3).failed().stdout.equals("o\\n").stderr.contains("e").not_.ok()
        assert veil_run("echo o; echo e >&2", merge_stderr=True).stdout == "o\\ne\\n"


    def test_how_it_ended(veil_run, expect):
        expect(veil_run("sleep 30", timeout=0.2)).timed_out()
        killed = veil_run("kill -KILL $$")
        assert (killed.ended, killed.signal, killed.exit) == ("signaled", "SIGKILL", 137)
        nothing = veil_run(["no-such-program-anywhere"])
        assert (nothing.ended, nothing.exit) == ("spawn_failed", 127)
        with pytest.raises(veil.CommandFailed) as caught:
            veil_run("exit 4", check=True)
        assert caught.value.result.exit == 4
        with pytest.raises(veil.BadInput):
            veil_run("true", timeout=-1)
        with pytest.raises(veil.Refused):
            veil_run.start("true", timeout=1)


    def test_stdin_env_and_cwd(veil_run):
        assert veil_run("cat", stdin="text\\n").stdout == "text\\n"
        assert veil_run("cat", stdin=b"\\xff\\x00").stdout_bytes == b"\\xff\\x00"
        assert veil_run("echo $WORD", env={"WORD": "one"}).stdout == "one\\n"
        assert veil_run("echo $WORD", env={"WORD": "two"}).stdout == "two\\n"
        veil_run("mkdir -p sub/deep; echo x > sub/deep/f")
        assert veil_run("cat f", cwd="sub/deep").stdout == "x\\n"
        assert veil_run("cat f", cwd=veil_run.root / "sub" / "deep").stdout == "x\\n"
        assert veil_run("pwd").stdout.strip() == str(veil_run.root)


    def test_what_changed(veil_run, expect):
        one = veil_run("echo a > a; mkdir d; echo b > d/b; ln -s a link; chmod 640 a")
        expect(one).created("a", "d/b", "link").file("a").mode(0o640).file("link").is_symlink("a")
        two = veil_run("echo more >> a; mv d/b moved; rm link")
        expect(two).modified("a").deleted("link").changed_only("a", "d/b", "moved", "link")
        assert (veil_run.root / "a").read_text() == "a\\nmore\\n"
        assert not os.path.lexists(veil_run.root / "link")
        expect(veil_run("cat moved")).stdout.equals("b\\n").changed_nothing()
        with expect.all():
            expect(two).file("moved").contains("b").file("gone").is_absent()


    def test_the_same_twice(veil_run):
        count = "n=$(cat n 2>/dev/null || echo 0); echo $n; echo $((n + 1)) > n"
        assert [veil_run(count).stdout for _ in range(3)] == ["0\\n", "1\\n", "2\\n"]


    def test_files_of_the_test_itself(veil_run):
        (veil_run.root / "given.txt").write_text("given\\n")
        assert veil_run("cat given.txt; echo more >> given.txt").stdout == "given\\n"
        assert (veil_run.root / "given.txt").read_text() == "given\\nmore\\n"


    def test_background(veil_run):
        server = veil_run.start("echo ready; while [ ! -e stop ]; do sleep 0.02; done; echo bye")
        assert "ready" in server.wait_for(pattern="ready").stdout
        veil_run("touch stop")
        assert server.wait().stdout == "ready\\nbye\\n"
        assert not server.running()
        for_ever = veil_run.start("echo up; sleep 100")
        for_ever.wait_for(pattern="up")
        assert for_ever.kill().signal == "SIGTERM"
        assert for_ever.wait().exit == 143
        veil_run.start("sleep 100")  # ended with the test


    def test_background_and_files(veil_run):
        with veil_run.start("echo one >> f; echo up; sleep 100") as handle:
            handle.wait_for(pattern="up")
            veil_run("echo two >> f; echo x > g")
            assert veil_run("cat f g").stdout == "one\\ntwo\\nx\\n"
        assert veil_run("cat f; rm f").stdout == "one\\ntwo\\n"


    def test_async(veil_arun, veil_run):
        async def three():
            return await asyncio.gather(*(veil_arun(f"echo {n}; echo {n} > f{n}") for n in range(3)))

        assert [result.stdout for result in asyncio.run(three())] == ["0\\n", "1\\n", "2\\n"]
        assert veil_run("cat f0 f1 f2").stdout == "0\\n1\\n2\\n"


    def test_live_output(veil_run):
        heard = []
        veil_run("echo a; echo b >&2", on_output=lambda name, data: heard.append((name, data)))
        assert sorted(heard) == [("stderr", b"b\\n"), ("stdout", b"a\\n")]


    def test_bytes(veil_run):
        shown = r"printf 'no newline'; printf '\\000\\377' >&2"
        result = veil_run(shown + r"; printf 'cr\\r\\n-- x --\\n' > f; printf x > $'n\\nl'")
        assert (result.stdout, result.stderr_bytes) == ("no newline", b"\\x00\\xff")
        assert (veil_run.root / "f").read_bytes() == b"cr\\r\\n-- x --\\n"
        assert (veil_run.root / "n\\nl").read_text() == "x"


    def test_git(veil_run, expect):
        veil_run("git init -q . && git config user.name a && git config user.email a@b && echo x > x && git add x")
        result = veil_run("git commit -q -m one")
        expect(result).ok()
        assert veil_run("git log --format=%s").stdout == "one\\n"
        expect(veil_run("git status --porcelain")).stdout.is_empty().file(".git/HEAD").exists()


    def test_no_command_at_all(veil_run):
        assert veil_run.results == []
"""

#: What is only so under a profile.
PROFILED = """
    def test_profile(veil_run):
        shown = veil_run("echo $TZ $LC_ALL $COLUMNS $TERM $NO_COLOR $PYTHONHASHSEED; umask; echo ~; pwd").stdout
        first, mask, home, folder = shown.splitlines()
        assert first == "UTC C.UTF-8 80 dumb 1 0"
        assert mask == "0022"
        assert home != folder


    def test_caller_does_not_show(veil_run):
        assert veil_run("echo [$PYTEST_CURRENT_TEST$FROM_THE_CALLER]").stdout == "[]\\n"
"""

COUNT = BODIES.count("def test_")
NEEDS_GIT = pytest.mark.needs("git")
NEEDS_BASH = pytest.mark.needs("bash")


@NEEDS_GIT
@NEEDS_BASH
def test_every_body_passes_in_every_mode(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_THE_CALLER", "shows")
    suite.write("test_bodies.py", BODIES)
    suite.write("prof/test_profiled.py", PROFILED)
    suite.run("test_bodies.py").assert_outcomes(passed=COUNT)
    suite.run("--veil-mode=live").assert_outcomes(passed=COUNT + 2)
    suite.run("--veil-mode=record").assert_outcomes(passed=COUNT + 2)
    recorded = suite.cassettes()
    assert len(recorded) == COUNT - 1  # no command, no recording
    suite.run("--veil", "--veil-unused=error").assert_outcomes(passed=COUNT + 2)
    suite.run("--veil-mode=refresh").assert_outcomes(passed=COUNT + 2)
    suite.run("--veil-mode=record-missing").assert_outcomes(passed=COUNT + 2)
    assert suite.cassettes() == recorded
    suite.run("--veil-mode=record").assert_outcomes(passed=COUNT + 2)
    again = suite.cassettes()
    assert {name for name in recorded if again[name] != recorded[name]} == set()
    suite.run("--veil-mode=verify").assert_outcomes(passed=COUNT + 2)


def test_off_mode_sees_the_callers_world_and_what_the_test_does_to_it(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_THE_CALLER", "shows")
    suite.write(
        "test_it.py",
        """
        import os

        def test_it(veil_run, monkeypatch):
            assert veil_run("echo $FROM_THE_CALLER").stdout == "shows\\n"
            monkeypatch.setenv("LATER", "too")
            assert veil_run("echo $LATER; echo $HOME").stdout == f"too\\n{os.environ['HOME']}\\n"
            assert veil_run("pwd", cwd="/").stdout == "/\\n"
        """,
    )
    suite.run().assert_outcomes(passed=1)


@NEEDS_BASH
def test_a_secret_is_hidden_from_the_test_already_when_it_is_recorded(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no recording may hold cannot be asserted on in a replay, so that recording says it at once."""
    monkeypatch.setenv("SERVICE_TOKEN", "s3cr3t-value-of-a-test")
    suite.write(
        "test_it.py",
        """
        def test_shown(veil_run):
            result = veil_run("echo token s3cr3t-value-of-a-test")
            assert result.stdout == "token s3cr3t-value-of-a-test\\n"

        def test_hidden(veil_run, expect):
            expected = {"stdout_contains": "token s3cr3t-value-of-a-test"}  # hidden on both sides
            result = veil_run("echo token s3cr3t-value-of-a-test > s3cr3t-value-of-a-test; cat s3*", expect=expected)
            assert result.assert_ok
            assert result.stdout == "token [redacted]\\n"
            expect(result).created("[redacted]")
        """,
    )
    suite.run("--veil-mode=live").assert_outcomes(passed=1, failed=1)  # nothing is written, nothing is hidden
    recording = suite.run("--veil-mode=record")
    recording.assert_outcomes(passed=1, failed=1)
    recording.stdout.fnmatch_lines(["*token [[]redacted[]]*"])
    for mode in ("replay", "refresh", "verify"):
        suite.run(f"--veil-mode={mode}", "-k", "hidden").assert_outcomes(passed=1, deselected=1)
    assert b"s3cr3t" not in b"".join(suite.cassettes().values())
