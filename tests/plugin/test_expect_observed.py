"""What ``expect`` makes of how a run ended and of what nobody saw: kinds of ends, truncation, late looks."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import veil
from pytest_veil import Expectation, ExpectationError, FileFact, expect
from pytest_veil.expecting import using

Say = Callable[[Expectation], Expectation]


ENDS: dict[str, tuple[Any, dict[str, Any], Say, Say, str]] = {
    "exit 0": (
        "true",
        {},
        lambda e: e.ok().changed_nothing().stdout.is_empty(),
        lambda e: e.failed(),
        "exit is 0, exp",
    ),
    "timed out": (
        "sleep 60",
        {"timeout": 0.2},
        lambda e: e.timed_out().failed().exit(124),
        lambda e: e.not_.timed_out(),
        "expected not_.timed_out(), but it timed out (exit 124)",
    ),
    "124 is no timeout": ("exit 124", {}, lambda e: e.not_.timed_out(), lambda e: e.timed_out(), "it did not time out"),
    "signal": (
        "kill -SEGV $$",
        {},
        lambda e: e.signaled("SIGSEGV").signaled("segv").signaled(11).signaled(signal.SIGSEGV).signaled().failed(),
        lambda e: e.signaled("SIGKILL"),
        "expected an end by SIGKILL, got ended by SIGSEGV (exit 139)",
    ),
    "a shell's child by a signal": (
        "sh -c 'kill -SEGV $$'; exit $?",
        {},
        lambda e: e.exit(139).not_.signaled(),
        lambda e: e.signaled(),
        "expected an end by a signal, got exit 139 (what a shell answers",
    ),
    "no such program": (
        ["no-such-program-here"],
        {},
        lambda e: e.failed().exit(127).not_.ok(),
        lambda e: e.ok(),
        "exit is 127 (could not start: No such file",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_kinds_of_ends_are_kept_apart(name: str, tmp_path: Path) -> None:
    command, options, holds, fails, words = ENDS[name]
    result = veil.run(command, cwd=tmp_path, no_store=True, **options)
    holds(expect(result))
    with pytest.raises(ExpectationError) as error:
        fails(expect(result))
    assert str(error.value).startswith(words)


@pytest.mark.linux
def test_what_was_left_running_is_told(tmp_path: Path) -> None:
    result = veil.run("sleep 60 >/dev/null 2>&1 & exit 0", cwd=tmp_path, no_store=True)
    with pytest.raises(ExpectationError, match=r"^1 process left running when the command had ended, ended by veil"):
        expect(result).left_nothing_running()


def test_the_verdict_of_the_run_itself(tmp_path: Path) -> None:
    result = veil.run(
        "echo a", cwd=tmp_path, no_store=True, expect={"exit": 0, "stdout_contains": ["b"], "file_exists": "c"}
    )
    with pytest.raises(ExpectationError) as error:
        expect(result).assert_ok()
    assert [failure.judgement.check for failure in error.value.failures] == ["stdout_contains", "file_exists"]
    expect(result).not_.assert_ok()
    unasked = veil.run("true", cwd=tmp_path, no_store=True)
    for e in (expect(unasked), expect(unasked).not_):
        with pytest.raises(ExpectationError, match=r"^cannot be told: (not_\.)?assert_ok"):
            e.assert_ok()


EFFECTS: dict[str, Say] = {
    "created": lambda e: e.created("a"),
    "modified": lambda e: e.modified("a"),
    "deleted": lambda e: e.deleted("a"),
    "renamed": lambda e: e.renamed("a", "b"),
    "changed_nothing": lambda e: e.changed_nothing(),
    "changed_only": lambda e: e.changed_only("**"),
}


@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.parametrize("negated", [False, True])
def test_changes_that_nobody_looked_for_pass_nothing(tmp_path: Path, name: str, negated: bool) -> None:
    result = veil.run("echo x > a", cwd=tmp_path, effects=False, no_store=True)
    e = expect(result).not_ if negated else expect(result)
    with pytest.raises(ExpectationError) as error:
        EFFECTS[name](e)
    first = str(error.value).split("\n")[0]
    assert first.startswith(f"cannot be told: {'not_.' if negated else ''}{name}(")
    assert "it is not known which files changed: nobody looked (effects are off for this run)" in first


def test_a_run_that_may_have_been_disturbed_says_so(tmp_path: Path) -> None:
    """A background job in the same tree: what changed may be its own."""
    with veil.start("sleep 60", cwd=tmp_path):
        result = veil.run("echo x > a", cwd=tmp_path, no_store=True)
    assert result.shared is True
    with pytest.raises(ExpectationError, match=r"^cannot be told: created\('a'\): another run was changing files"):
        expect(result).created("a")
    with pytest.raises(ExpectationError) as error:
        expect(result).created("b")
    assert "others worked in the tree meanwhile, so a change may be theirs" in str(error.value).split("\n")[0]


@pytest.mark.needs("git")
def test_a_file_that_git_ignores_cannot_be_told(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    result = veil.run("echo x > a.log", cwd=tmp_path, no_store=True)
    with pytest.raises(ExpectationError, match=r"^cannot be told: created\('a.log'\): 'a.log' may have changed unseen"):
        expect(result).created("a.log")
    expect(veil.run("echo x > b.log", cwd=tmp_path, no_store=True, effects="all")).created("b.log")


def test_a_truncated_stream_passes_only_what_is_sure(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(2000))
    result = veil.run(["cat"], stdin=text, cwd=tmp_path, max_output=2000, no_store=True)
    assert result.stdout_truncated
    expect(result).stdout.contains("line 1\n", "line 1999\n").stdout.not_.equals("line 1\n").stdout.not_.is_empty()
    for say in (
        lambda e: e.stdout.contains("line 999\n"),
        lambda e: e.stdout.equals(text),
        lambda e: e.stdout.matches("nothing like it"),
    ):
        for e in (expect(result), expect(result).not_):
            with pytest.raises(ExpectationError, match=r"^cannot be told: .*truncated"):
                say(e)  # type: ignore[no-untyped-call]


def test_bytes_that_are_no_text_are_compared_too(tmp_path: Path) -> None:
    result = veil.run(["cat"], stdin=b"ab\0\xff", cwd=tmp_path, no_store=True)
    expect(result).stdout.equals(b"ab\0\xff").stdout.not_.equals("ab")
    with pytest.raises(ExpectationError, match=r"^stdout differs from byte 2 on: expected 3 bytes, got 4 bytes"):
        expect(result).stdout.equals(b"abc")


def test_a_path_in_the_workspace_may_be_absolute_or_behind_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    result = veil.run("echo x > a; mkdir d; echo y > d/b", cwd=link, no_store=True)
    expect(result).created(link / "a", real / "d" / "b", "./a").file(real / "a").exists().file(link / "d/b").equals(
        "y\n"
    )


def test_a_file_is_looked_at_when_it_is_asked_about(tmp_path: Path) -> None:
    result = veil.run("echo one > a", cwd=tmp_path, no_store=True)
    expect(result).file("a").contains("one")
    (tmp_path / "a").write_text("two")
    expect(result).file("a").equals("two").not_.file("a").contains("one")


def test_a_fifo_and_a_folder_have_no_content_and_nobody_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = veil.run("true", cwd=tmp_path, no_store=True)
    expect(result).file("pipe").exists()
    for name, kind in (("pipe", "fifo"), (".", "dir")):
        with pytest.raises(ExpectationError, match=f"^cannot be told: .*cannot be read: it is a {kind}"):
            expect(result).file(name).not_.contains("x")


def test_who_looks_can_be_exchanged(tmp_path: Path) -> None:
    result = veil.run("true", cwd=tmp_path, no_store=True)
    asked: list[tuple[str, bool]] = []

    def recorded(of: veil.Result, path: str, *, content: bool) -> FileFact:
        asked.append((path, content))
        return FileFact("file", "file", 0o600, 3, None, b"abc" if content else None)

    with using(looker=recorded):
        expect(result).file("x").exists().file("x").mode(0o600).file("x").equals("abc").file("x").is_file()
    assert asked == [("x", False), ("x", False), ("x", True), ("x", False)]
    expect(result).file("x").is_absent()


def test_a_listener_hears_of_every_check(tmp_path: Path) -> None:
    result = veil.run("echo a", cwd=tmp_path, no_store=True)
    said: list[tuple[str, str, bool]] = []

    def heard(of: veil.Result, call: str, judgement: veil.Judgement, held: bool) -> None:
        assert of is result
        said.append((call, judgement.check, held))

    with using(heard=heard):
        expect(result).ok().not_.exit(1)
        with pytest.raises(ExpectationError):
            expect(result).stdout.contains("a", "b")
    expect(result).ok()
    both = "stdout.contains('a', 'b')"
    assert said == [
        ("ok()", "exit", True),
        ("not_.exit(1)", "exit", True),
        (both, "stdout_contains", True),
        (both, "stdout_contains", False),
    ]


def test_a_preview_has_no_files_to_look_at(tmp_path: Path) -> None:
    class Previewed(veil.Result):
        previewed = True

    result = Previewed(veil.run("true", cwd=tmp_path, no_store=True).record)
    with pytest.raises(veil.Refused, match="preview") as error:
        expect(result).file("x").exists()
    assert error.value.code == "previewed"
