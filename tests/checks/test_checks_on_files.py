"""Existence and changes, judged from findings."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.checks.changed import Changed
from veil.checks.file_absent import FileAbsent
from veil.checks.file_exists import FileExists
from veil.checks.globs import Glob
from veil.model.outcome import Change, Fact, Findings, Observation, Outcome


def seen(
    *changes: str | Change, source: str = "scan", files: dict[str, Fact] | None = None, **notes: Any
) -> Observation:
    rows = tuple(change if isinstance(change, Change) else Change(change, "modified") for change in changes)
    return Observation(Outcome("exited", 0), findings=Findings(rows, source, files or {}, notes))


def changed(expected: Any, observation: Observation) -> str:
    check = Changed()
    return check.judge(check.parse(expected), observation).status


def test_exp_06_a_path_counts_itself_also_when_it_is_a_dangling_link() -> None:
    there = seen(files={"l": Fact("symlink"), "sub/out": Fact("file", 3), "gone": Fact(None)})
    assert FileExists().judge("l", there).status == "passed"
    assert FileAbsent().judge("l", there).status == "failed"
    assert FileExists().judge(["sub/out", "l"], there).status == "passed"
    said = FileExists().judge(["sub/out", "gone"], there)
    assert (said.status, said.got) == ("failed", {"gone": "absent"})
    assert FileAbsent().judge("gone", there).status == "passed"
    assert "a file is there" in FileAbsent().judge("sub/out", there).message


def test_a_path_that_nobody_looked_at_is_inconclusive() -> None:
    there = seen(files={"a": Fact("file"), "gone": Fact(None)})
    assert FileExists().judge("b", there).status == "inconclusive"
    assert FileAbsent().judge("b", there).status == "inconclusive"
    assert FileExists().judge(["a", "b"], there).status == "inconclusive"
    closed = FileExists().judge("b", seen(look_gaps={"b": "Permission denied"}))
    assert (closed.status, closed.message) == ("inconclusive", "'b' could not be looked at: Permission denied")
    assert FileExists().judge(["gone", "b"], there).status == "failed"


def test_paths_are_asked_for_as_written() -> None:
    check = FileExists()
    assert check.paths(check.parse(["./a", Path("b/c")])) == ("./a", os.path.join("b", "c"))


def test_exp_06_a_file_that_was_there_before_is_not_changed() -> None:
    assert changed(["out"], seen(files={"out": Fact("file")})) == "failed"
    assert changed(["out"], seen("out")) == "passed"


def test_true_and_false() -> None:
    assert changed(True, seen("a")) == "passed"
    assert changed(True, seen()) == "failed"
    assert changed(False, seen()) == "passed"
    said = Changed().judge(False, seen("a", "b"))
    assert (said.status, said.got) == ("failed", ["a", "b"])


def test_each_glob_needs_a_change() -> None:
    assert changed(["src/**", "*.md"], seen("src/a/b.py", "README.md")) == "passed"
    said = Changed().judge(["src/**", "docs"], seen("src/a.py", "docs/x.md"))
    assert said.status == "failed"
    assert "'docs/**'" in said.message


def test_a_rename_counts_for_both_its_paths() -> None:
    moved = seen(Change("new.txt", "renamed", old="old.txt"))
    assert changed(["new.txt"], moved) == "passed"
    assert changed(["old.txt"], moved) == "passed"


def test_unknown_changes_are_inconclusive_with_their_reason() -> None:
    nobody = Observation(Outcome("exited", 0))
    assert Changed().judge(True, nobody).status == "inconclusive"
    blind = Observation(Outcome("exited", 0), findings=Findings(notes={"effects_unavailable": "too many files"}))
    said = Changed().judge(False, blind)
    assert said.status == "inconclusive"
    assert "too many files" in said.message


def test_fx_06_what_git_ignores_is_not_claimed_either_way() -> None:
    noted = {"ignored_changed": {"total": 1, "first": ["out.log"]}}
    said = Changed().judge(["out.log"], seen("a.py", source="scan", **noted))
    assert said.status == "inconclusive"
    assert "git ignores" in said.message
    assert changed(["*.log"], seen(**noted)) == "inconclusive"
    assert changed(["other.log"], seen(**noted)) == "failed"
    assert changed(["other.log"], seen(ignored_changed={"total": 99, "first": ["out.log"]})) == "inconclusive"
    assert changed(["out.log"], seen("out.log")) == "passed"
    assert "1 changed that git ignores" in Changed().judge(True, seen(**noted)).message


def test_fx_06_where_ignored_files_were_not_looked_at() -> None:
    blind = seen("a.py", source="git", ignored_unseen=True)
    assert changed(["out.log"], blind) == "inconclusive"
    assert changed(["a.py"], blind) == "passed"
    wild = Changed().judge(["*.log"], blind)
    assert wild.status == "failed"
    assert "not looked at" in wild.message
    assert "ignores" not in Changed().judge(["*.log"], seen("a.py")).message


def test_a_gap_hides_what_lies_in_it() -> None:
    gapped = seen("a.py", effects_gaps=["mnt: another file system", "and 3 more"])
    assert changed(["mnt/x"], gapped) == "inconclusive"
    assert changed(["mntx"], gapped) == "failed"


def test_changes_of_a_neighbour_prove_nothing() -> None:
    assert changed(["a"], seen("a", shared=True)) == "inconclusive"
    assert changed(False, seen("a", shared=True)) == "inconclusive"
    assert changed(["b"], seen("a", shared=True)) == "failed"
    assert changed(False, seen(shared=True)) == "passed"


YES = [
    ("a", "a"),
    ("./a", "a"),
    ("a//b", "a/b"),
    ("*.py", "x.py"),
    ("*", ".hidden"),
    ("**/*.py", "x.py"),
    ("**/*.py", "a/b/x.py"),
    ("src/**", "src/a/b"),
    ("src/", "src/a/b"),
    ("a/**/b", "a/b"),
    ("a/**/b", "a/x/y/b"),
    ("**", "a/b"),
    ("?", "é"),
    ("[a-c]x", "bx"),
    ("[!a-c]x", "dx"),
    ("[^a]x", "dx"),
    ("[]]", "]"),
    ("[a", "[a"),
    (r"\*", "*"),
    (r"[\]]", "]"),
    ("pages/[id].tsx", "pages/[id].tsx"),
    ("pages/[id].tsx", "pages/i.tsx"),
    ("../lib/*", "../lib/x"),
    ("a**b", "axyb"),
    ("a b'\"\n*", "a b'\"\nc"),
    ("**/a/**/c", "x/a/a/y/c"),
    ("*\udcff*", "x\udcffy"),
]
NO = [
    ("*.py", "a/x.py"),
    ("a", "b/a"),
    ("src/**", "src"),
    ("src", "src/a"),
    ("A", "a"),
    ("a/*/b", "a/b"),
    ("**/a", "a/b"),
    ("?", "ab"),
    ("[a-c]x", "dx"),
    ("**/x", "../x"),
    ("*/x", "../x"),
    (r"\*", "a"),
    ("a?b", "a/b"),
    ("[!x]", "x"),
    ("x[!y]z", "x/z"),
]


@pytest.mark.parametrize(("glob", "path"), YES)
def test_globs_match(glob: str, path: str) -> None:
    assert Glob(glob).matches(path)


@pytest.mark.parametrize(("glob", "path"), NO)
def test_globs_do_not_match(glob: str, path: str) -> None:
    assert not Glob(glob).matches(path)


def slow(glob: list[str], path: list[str]) -> bool:
    """Wildcards over parts by trying every way."""
    if not glob:
        return not path
    if glob[0] == "**":
        rest = glob[1:]
        first = 1 if not rest else 0
        return any(slow(rest, path[n:]) for n in range(first, len(path) + 1)) if rest else len(path) >= 1
    return bool(path) and part(glob[0], path[0]) and slow(glob[1:], path[1:])


def part(glob: str, name: str) -> bool:
    if not glob:
        return not name
    if glob[0] == "*":
        return any(part(glob[1:], name[n:]) for n in range(len(name) + 1))
    return bool(name) and glob[0] in ("?", name[0]) and part(glob[1:], name[1:])


@given(
    st.lists(st.sampled_from(["**", "a", "b", "*", "a*", "*b", "?", "a*b*"]), min_size=1, max_size=5),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_globs_agree_with_trying_every_way(glob: list[str], path: list[str]) -> None:
    tidy = [word for n, word in enumerate(glob) if word != "**" or glob[n - 1 : n] != ["**"]]
    assert Glob("/".join(glob)).matches("/".join(path)) == (slow(tidy, path) or glob == path)


def test_a_hostile_glob_is_quick() -> None:
    path = "/".join(["a" * 200] * 20)
    assert not Glob("/".join(["**", "a*" * 60 + "b"] * 10)).matches(path)
    signs = random.Random(1)
    Glob("".join(signs.choice("*?[]!-\\/a^") for _ in range(5000))).matches(path)
