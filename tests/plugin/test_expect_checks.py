"""Every check of ``expect`` on one real run: holding, not holding, after ``not_``, and asked for nonsense."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import veil
from pytest_veil import Expectation, ExpectationError, expect

Say = Callable[[Expectation], Expectation]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    (folder / "old.txt").write_text("old\n")
    (folder / "gone.txt").write_text("gone\n")
    (folder / "from.txt").write_text("from\n")
    (folder / "[x].txt").write_text("odd\n")
    return folder


WORK = r"""
echo '{"name": "x", "n": [1, 2]}'
echo warning: odd >&2
mkdir -p out; echo made > out/a.js; chmod 640 out/a.js; ln -s out/a.js link; ln -s nowhere dangling; : > empty
echo new >> old.txt; echo y >> '[x].txt'; rm gone.txt; mv from.txt to.txt
exit 3
"""


@pytest.fixture(scope="module")
def worked(place: Path, tmp_path_factory: pytest.TempPathFactory) -> veil.Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VEIL_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        return veil.run(WORK, cwd=place, no_store=True, expect={"exit": 3, "stderr_contains": "odd"})


HOLD: dict[str, Say] = {
    "exit": lambda e: e.exit(3),
    "exit any": lambda e: e.exit(0, 3),
    "failed": lambda e: e.failed(),
    "stdout contains": lambda e: e.stdout.contains('"name"', "[1, 2]"),
    "stdout matches": lambda e: e.stdout.matches(r"^\{.*\}$"),
    "stdout equals": lambda e: e.stdout.equals('{"name": "x", "n": [1, 2]}\n'),
    "stdout equals bytes": lambda e: e.stdout.equals(b'{"name": "x", "n": [1, 2]}\n'),
    "stderr contains": lambda e: e.stderr.contains("odd"),
    "stderr matches": lambda e: e.stderr.matches("^warning", "odd$"),
    "stderr equals": lambda e: e.stderr.equals("warning: odd\n"),
    "json": lambda e: e.json({"n": [1, 2]}),
    "created": lambda e: e.created("out/a.js", "empty"),
    "created by glob": lambda e: e.created("out/*.js"),
    "modified": lambda e: e.modified("old.txt"),
    "modified, a path taken literally": lambda e: e.modified(Path("[x].txt")),
    "deleted": lambda e: e.deleted("gone.txt"),
    "renamed": lambda e: e.renamed("from.txt", "to.txt"),
    "changed only": lambda e: e.changed_only("out/**", "out", "*.txt", "link", "dangling", "empty"),
    "exists": lambda e: e.file("out/a.js").exists(),
    "a dangling link exists": lambda e: e.file("dangling").exists(),
    "is absent": lambda e: e.file("gone.txt").is_absent(),
    "is file": lambda e: e.file("out/a.js").is_file(),
    "is file through a link": lambda e: e.file("link").is_file(),
    "is dir": lambda e: e.file("out").is_dir(),
    "is symlink": lambda e: e.file("link").is_symlink("out/a.js"),
    "mode": lambda e: e.file("out/a.js").mode(0o640),
    "mode through a link": lambda e: e.file("link").mode(0o640),
    "file contains": lambda e: e.file("old.txt").contains("old", "new"),
    "file matches": lambda e: e.file("old.txt").matches("^new$"),
    "file equals": lambda e: e.file("old.txt").equals("old\nnew\n"),
    "file is empty": lambda e: e.file("empty").is_empty(),
    "within": lambda e: e.within(ms=600_000),
    "assert ok": lambda e: e.assert_ok(),
    "left nothing running": lambda e: e.left_nothing_running(),
}

#: Check: the first line of the failure, up to the command.
WRONG: dict[str, tuple[Say, str]] = {
    "exit": (lambda e: e.exit(0), "exit is 3, expected 0"),
    "exit any": (lambda e: e.exit(0, 2), "exit is 3, expected one of 0, 2"),
    "ok": (lambda e: e.ok(), "exit is 3, expected 0"),
    "stdout contains": (lambda e: e.stdout.contains('"name"', "nay"), "stdout does not contain 'nay'; nearest line:"),
    "stdout matches": (lambda e: e.stdout.matches("^x"), "stdout does not match '^x'; nearest line:"),
    "stdout equals": (lambda e: e.stdout.equals("{}\n"), "stdout differs at line 1: expected '{}\\n', got '{\"name\""),
    "stdout empty": (lambda e: e.stdout.is_empty(), "stdout holds 27 bytes, last line:"),
    "stderr contains": (lambda e: e.stderr.contains("even"), "stderr does not contain 'even'"),
    "stderr equals": (lambda e: e.stderr.equals(""), "stderr is not empty: 'warning: odd\\n'"),
    "stderr empty": (lambda e: e.stderr.is_empty(), "stderr holds 13 bytes, last line: 'warning: odd'"),
    "json": (lambda e: e.json({"n": [1, 3]}), "at $.n[1]: expected 3, got 2"),
    "created": (lambda e: e.created("out/a.js", "out/b.js"), "nothing created matches 'out/b.js'; the run "),
    "created, yet modified": (lambda e: e.created("old.txt"), "nothing created matches 'old.txt'; the run "),
    "modified": (lambda e: e.modified("empty"), "nothing modified matches 'empty'"),
    "deleted, yet renamed": (lambda e: e.deleted("from.txt"), "nothing deleted matches 'from.txt'"),
    "renamed": (lambda e: e.renamed("from.txt", "two.txt"), "nothing was renamed from 'from.txt' to 'two.txt'"),
    "changed nothing": (lambda e: e.changed_nothing(), "changed: "),
    "changed only": (lambda e: e.changed_only("out/**", "*.txt"), "changed outside of 'out/**', '*.txt': created "),
    "changed only, half a rename": (
        lambda e: e.changed_only("[!f]*", "out/**"),
        "changed outside of '[!f]*', 'out/**': renamed from.txt -> to.txt",
    ),
    "exists": (lambda e: e.file("gone.txt").exists(), "'gone.txt' does not exist, expected it to"),
    "is absent": (lambda e: e.file("out").is_absent(), "'out' exists (dir), expected it to be absent"),
    "is file": (lambda e: e.file("out").is_file(), "'out' is a folder, expected a regular file"),
    "is file, dangling": (lambda e: e.file("dangling").is_file(), "'dangling' leads nowhere, expected a regular file"),
    "is dir": (lambda e: e.file("nope").is_dir(), "'nope' does not exist, expected a folder"),
    "is symlink": (lambda e: e.file("link").is_symlink("x"), "'link' is a symlink to 'out/a.js', expected one to 'x'"),
    "mode": (lambda e: e.file("out/a.js").mode(0o644), "the mode of 'out/a.js' is 0o640, expected 0o644"),
    "mode of nothing": (lambda e: e.file("nope").mode(0o644), "'nope' does not exist"),
    "file contains": (lambda e: e.file("old.txt").contains("NEW"), "file 'old.txt' does not contain 'NEW' (it does in"),
    "file contains, of nothing": (lambda e: e.file("nope").contains("x"), "'nope' does not exist"),
    "file matches": (lambda e: e.file("old.txt").matches("^ew"), "file 'old.txt' does not match '^ew'"),
    "file equals": (lambda e: e.file("old.txt").equals("old\n"), "file 'old.txt' goes on after what was expected"),
    "file is empty": (lambda e: e.file("old.txt").is_empty(), "file 'old.txt' holds 8 bytes"),
    "file json": (lambda e: e.file("old.txt").json({}), "file 'old.txt' is not JSON"),
    "within": (lambda e: e.within(ms=0.001), "took "),
    "timed out": (lambda e: e.timed_out(), "it did not time out: exit 3"),
    "signaled": (lambda e: e.signaled("SIGSEGV"), "expected an end by SIGSEGV, got exit 3"),
}


@pytest.mark.parametrize("name", HOLD)
def test_a_check_that_holds_gives_the_expectation_back(worked: veil.Result, name: str) -> None:
    e = expect(worked)
    assert HOLD[name](e) is e


@pytest.mark.parametrize("name", HOLD)
def test_after_not_a_check_that_holds_fails(worked: veil.Result, name: str) -> None:
    with pytest.raises(ExpectationError) as error:
        HOLD[name](expect(worked).not_)
    assert re.match(r"(\d checks failed: )?expected not_\..*, but ", str(error.value))
    assert error.value.failures[0].judgement.status == "passed"


@pytest.mark.parametrize("name", WRONG)
def test_a_check_that_does_not_hold_says_why_on_its_first_line(worked: veil.Result, name: str) -> None:
    say, words = WRONG[name]
    with pytest.raises(ExpectationError) as error:
        say(expect(worked))
    assert str(error.value).split("\n")[0].startswith(words)
    assert error.value.failures[0].result is worked


#: Not told by the logic of the check alone: some of several arguments hold, or there is no file to ask about.
NEITHER = {"stdout contains", "created", "mode of nothing", "file contains, of nothing"}


@pytest.mark.parametrize("name", [name for name in WRONG if name not in NEITHER])
def test_after_not_a_check_that_does_not_hold_passes(worked: veil.Result, name: str) -> None:
    e = expect(worked)
    assert WRONG[name][0](e.not_) is e


def test_not_with_several_arguments_means_neither(worked: veil.Result) -> None:
    expect(worked).not_.stdout.contains("nay", "no").not_.created("b", "c").not_.exit(0, 1)
    with pytest.raises(ExpectationError, match="but stdout contains '\"name\"'"):
        expect(worked).not_.stdout.contains("nay", '"name"')


@pytest.mark.parametrize("name", ["mode of nothing", "file contains, of nothing"])
def test_not_does_not_pass_for_a_file_that_is_not_there(worked: veil.Result, name: str) -> None:
    with pytest.raises(ExpectationError, match=r"^cannot be told: not_\.file"):
        WRONG[name][0](expect(worked).not_)


def test_not_holds_for_one_check_only(worked: veil.Result) -> None:
    expect(worked).not_.exit(0).exit(3).stdout.not_.contains("nay").file("old.txt").not_.is_dir().exit(3)
    expect(worked).not_.not_.exit(3)
    with pytest.raises(ExpectationError, match="exit is 3, expected 0"):
        expect(worked).not_.exit(0).exit(0)


def test_all_that_fails_of_one_check_is_told(worked: veil.Result) -> None:
    with pytest.raises(ExpectationError) as error:
        expect(worked).stdout.contains("nay", '"name"', "no")
    assert [failure.judgement.expected for failure in error.value.failures] == ["nay", "no"]
    assert str(error.value).startswith("2 checks failed: stdout does not contain 'nay'")


NONSENSE: dict[str, Callable[[Expectation], object]] = {
    "no code": lambda e: e.exit(),
    "a code that is none": lambda e: e.exit(256),
    "True is no code": lambda e: e.exit(True),
    "no text": lambda e: e.stdout.contains(),
    "an empty text": lambda e: e.stdout.contains(""),
    "a broken pattern": lambda e: e.stderr.matches("("),
    "a number for a text": lambda e: e.stdout.equals(3),  # type: ignore[arg-type]
    "no path": lambda e: e.created(),
    "an empty path": lambda e: e.deleted(""),
    "no glob": lambda e: e.changed_only(),
    "an empty glob": lambda e: e.changed_only("a", ""),
    "an unknown signal": lambda e: e.signaled("SIGNOTHING"),
    "a mode beyond all bits": lambda e: e.file("x").mode(0o10000),
    "a mode as text": lambda e: e.file("x").mode("644"),  # type: ignore[arg-type]
    "a path with a NUL": lambda e: e.file("a\0b"),
    "a negative time": lambda e: e.within(ms=-1),
    "no JSON": lambda e: e.json({1: object()}),
}


@pytest.mark.parametrize("name", NONSENSE)
@pytest.mark.parametrize("negated", [False, True])
def test_what_cannot_mean_anything_is_no_failure_but_bad_input(worked: veil.Result, name: str, negated: bool) -> None:
    e = expect(worked)
    with pytest.raises(veil.BadInput):
        NONSENSE[name](e.not_ if negated else e)


def test_expect_takes_a_result_and_nothing_else() -> None:
    with pytest.raises(veil.BadInput, match="the result of a run"):
        expect(0)  # type: ignore[arg-type]


def test_importing_the_package_imports_neither_veil_nor_its_expectations() -> None:
    code = (
        "import sys, pytest_veil; early = [n for n in sys.modules if n.split('.')[0] == 'veil' or '.expecting' in n];"
        "from pytest_veil import expect; print(early, callable(expect), 'pytest' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[] True False\n", done.stderr
