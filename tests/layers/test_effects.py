# ruff: noqa: E501 -- the scenarios are a table, one a line
"""What a run changed: real commands in real folders and repositories, told by scan and by git with the same answer."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from watching import IDENTITY, INNER, REPOSITORY, WAYS, folder, layer_for, rows, shell, watch

__all__ = ["folder"]

pytestmark = pytest.mark.needs("git", "bash")


@dataclass(frozen=True)
class Scenario:
    """``setup`` runs in a repository with the committed files ``f``, ``g``, ``s/a``, ``s/b`` and an ignore file."""

    name: str
    script: str
    expected: tuple[str, ...]
    setup: str = "true"
    cwd: str = "."
    ignored: bool = False


SCENARIOS = [
    Scenario("nothing", "true", ()),
    Scenario("reading only", "cat f s/*; git status; git log", ()),
    Scenario("touch of a clean file", "touch f s/a", ()),
    Scenario("rewrite with the same bytes", "echo 1 > f", ()),
    # fx-01: no quotes, no escapes
    Scenario("names", "echo x > café.txt; echo y > 'a b.txt'", ("created a b.txt", "created café.txt")),
    Scenario(
        "stranger names",
        "echo 1 > $'new\\nline'; echo 2 > 'a -> b'; echo 3 > 'q\"q'; echo 4 > ':!x'; echo 5 > '*'; echo 6 > ' lead '",
        ("created  lead ", 'created *', "created :!x", "created a -> b", "created new\nline", 'created q"q'),
    ),
    # fx-03: the first letter stays
    Scenario("modified in a folder", "echo 1 >> s/a", ("modified s/a",)),
    # fx-04: what was in the untracked folder before is not told
    Scenario("new file in an untracked folder", "echo 2 > new/b", ("created new/b",), "mkdir new; echo 1 > new/a"),
    # fx-05: the second edit counts
    Scenario("dirty before", "echo b >> f; echo v >> u", ("modified f", "modified u"), "echo a >> f; echo u > u"),
    Scenario("dirty before, untouched", "true", (), "echo a >> f; echo u > u; rm g"),
    Scenario("same size, same second", "printf 3 > u", ("modified u",), "printf 2 > u"),
    # fx-06
    Scenario("ignored files are left out", "echo x > out.log; mkdir build; echo y > build/o; echo n > n", ("created n",)),
    Scenario(
        "ignored files when asked",
        "echo x > out.log; mkdir build; echo y > build/o",
        ("created build/o", "created out.log"),
        ignored=True,
    ),
    Scenario("ignored but tracked", "echo 2 >> t.log", ("modified t.log",), "echo 1 > t.log; git add -f t.log"),
    Scenario("ignored, added by force", "echo 2 > t.log; git add -f t.log", ("created t.log",)),
    Scenario("was ignored, is not any more", "echo > .gitignore", ("modified .gitignore",), "echo x > old.log; sleep 0.1"),
    # fx-07: a commit does not hide it
    Scenario("edit and commit", "echo 2 > f && git commit -qam two", ("modified f",)),
    Scenario("create and commit", "echo 2 > n && git add n && git commit -qm two", ("created n",)),
    Scenario("commit of what was there", "git add -A; git commit -qm two", (), "echo 5 > f; echo n > n; rm g"),
    Scenario(
        "checkout of a branch",
        "git checkout -q other",
        ("modified f", "deleted g", "created n"),
        "git checkout -qb other; echo 9 > f; echo n > n; git rm -q g; git add .; git commit -qm o; git checkout -q main",
    ),
    Scenario(
        "there and back",
        "git checkout -q other; git checkout -q main",
        (),
        "git checkout -qb other; echo 9 > f; git commit -qam o; git checkout -q main",
    ),
    Scenario("hard reset", "git reset -q --hard HEAD~1", ("modified f",), "echo 2 > f; git commit -qam two"),
    Scenario("soft reset", "git reset -q --soft HEAD~1", (), "echo 2 > f; git commit -qam two"),
    Scenario("revert of an edit", "git checkout -q f", ("modified f",), "echo 7 > f"),
    Scenario("stash", "git stash -q", ("modified f",), "echo 7 >> f"),
    Scenario("stash of untracked", "git stash -q -u", ("modified f", "deleted u"), "echo 7 >> f; echo u > u"),
    Scenario("staged, then edited", "echo 3 > f", ("modified f",), "echo 2 > f; git add f"),
    Scenario("only staged", "git add f", (), "echo 22 > f"),
    Scenario("taken out of the index", "git rm -q --cached f", ()),
    Scenario("deleted", "rm f; git rm -q g; rm -r s", ("deleted f", "deleted g", "deleted s/a", "deleted s/b")),
    Scenario("renamed", "mv f h; git mv g i", ("renamed f>h", "renamed g>i")),
    Scenario("folder renamed", "mv s t", ("renamed s/a>t/a", "renamed s/b>t/b")),
    Scenario("untracked renamed", "mv u v", ("renamed u>v",), "echo u > u"),
    Scenario("copied and removed", "cp f h; rm f", ("deleted f", "created h")),
    Scenario("replaced by a rename", "mv f g", ("deleted f", "modified g")),
    Scenario("executable", "chmod +x f", ("mode f",)),
    Scenario("executable, untracked", "chmod 700 u", ("mode u",), "echo u > u"),
    Scenario("symlinks", "ln -s nowhere l; ln -sfn g old", ("created l (symlink)", "modified old (symlink)"), "ln -s f old"),
    Scenario("a link is not followed", "echo x > link/new; rm -r link/new", (), "ln -s ../outside link; mkdir ../outside"),
    Scenario("file becomes a link", "rm f; ln -s g f", ("modified f (symlink)",)),
    Scenario("file becomes a folder", "rm f; mkdir f; echo 1 > f/x", ("deleted f", "created f/x")),
    Scenario("folder becomes a file", "rm -r s; echo 1 > s", ("created s", "deleted s/a", "deleted s/b")),
    Scenario(
        "folder becomes a link",
        "rm -r u; ln -s s u",
        ("created u (symlink)", "deleted u/x"),
        "mkdir u; echo x > u/x",
    ),
    Scenario("hard link made", "ln u v", ("created v",), "echo u > u"),
    # fx-10: paths as seen from the cwd
    Scenario("from a sub-folder", "echo 1 > x; echo 2 > ../y; rm ../f", ("created ../y", "deleted ../f", "created x"), cwd="s"),
    # fx-10: nested repository
    Scenario("in a nested repository", "echo 3 > inner/z; echo 4 > inner/n", ("created inner/n", "modified inner/z"), INNER),
    Scenario("ignored by the nested one", "echo 3 > inner/x.tmp; echo 4 > inner/x.log", ("created inner/x.log",), INNER),
    Scenario("nested one is ignored", "echo 3 > inner/n", (), INNER + "; echo inner/ >> .gitignore"),
    Scenario("nested one comes", INNER, ("created inner/.gitignore", "created inner/z")),
    Scenario("nested one goes", "rm -rf inner", ("deleted inner/.gitignore", "deleted inner/z"), INNER),
    Scenario(
        "submodule",
        "echo 3 > sub/z; echo 4 > sub/x.tmp; echo 5 > f",
        ("modified f", "modified sub/z"),
        f"(cd ..; {INNER}); git -c protocol.file.allow=always submodule -q add ../inner sub; git commit -qm sub",
    ),
    Scenario(
        "embedded repository in the index",
        "echo 3 > inner/z; (cd inner; git commit -qam more)",
        ("modified inner/z",),
        INNER + "; git add inner 2>/dev/null; git commit -qm embedded",
    ),
    Scenario("line ends", "touch c; echo 1 >> f", ("modified f",), "git config core.autocrlf input; printf 'a\\r\\n' > c; git add c; git commit -qm crlf; sleep 0.02; git status"),
    Scenario("index of version 4", "echo 2 > f; mv g h; touch s/a", ("modified f", "renamed g>h"), "git update-index --index-version 4"),
    Scenario("no commit yet", "echo 2 > f; git add .; git commit -qm one", ("modified f",), "rm -rf .git; git init -q; " + IDENTITY),
    Scenario("merge", "git merge -q other", ("modified f", "created n"), "git checkout -qb other; echo 9 > f; echo n > n; git add .; git commit -qm o; git checkout -q main; echo 8 > g; git commit -qam m"),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name.replace(" ", "-"))
def test_both_ways_tell_the_same(scenario: Scenario, way: str, folder: Path, tmp_path: Path) -> None:
    shell(folder, f"set -e; {REPOSITORY}; {scenario.setup}")
    findings = watch(layer_for(tmp_path, way), folder / scenario.cwd, scenario.script, ignored=scenario.ignored)
    assert sorted(rows(findings)) == sorted(scenario.expected)
    assert findings.source == ("scan" if scenario.ignored else way)
    assert "effects_gaps" not in findings.notes
    assert "shared" not in findings.notes


@pytest.mark.linux  # APFS refuses such names
@pytest.mark.parametrize("way", WAYS)
def test_names_that_are_not_utf8(way: str, folder: Path, tmp_path: Path) -> None:
    shell(folder, REPOSITORY)
    findings = watch(
        layer_for(tmp_path, way),
        folder,
        "echo 1 > $'caf\\xe9'; mkdir $'\\xff'; mv f $'\\xff/\\xfe.log'; mv g $'\\xff/g'",
    )
    assert rows(findings) == ["created caf\udce9", "deleted f", "renamed g>\udcff/g"]


@pytest.mark.parametrize("way", WAYS)
def test_changes_come_sorted(way: str, folder: Path, tmp_path: Path) -> None:
    shell(folder, REPOSITORY)
    findings = watch(layer_for(tmp_path, way), folder, "echo 1 > z; echo 1 > a; rm f")
    assert [change.path for change in findings.changes or ()] == ["a", "f", "z"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layout", ["loose", "packed", "worktree", "detached"])
def test_a_moved_head_is_noted(way: str, layout: str, folder: Path, tmp_path: Path) -> None:
    shell(folder, REPOSITORY)
    shell(folder, {"packed": "git pack-refs --all", "detached": "git checkout -q --detach"}.get(layout, "true"))
    if layout == "worktree":
        shell(folder, "git worktree add -q ../tree")
        folder = tmp_path / "tree"
        shell(folder, IDENTITY)
    old = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, text=True).strip()
    findings = watch(layer_for(tmp_path, way), folder, "echo 2 > f && git commit -qam two")
    new = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, text=True).strip()
    assert findings.notes["head"] == {"before": old, "after": new}
    assert rows(findings) == ["modified f"]
    assert "branch" not in findings.notes


def test_branch_and_stash_are_noted(folder: Path, tmp_path: Path) -> None:
    shell(folder, REPOSITORY)
    layer = layer_for(tmp_path, "scan")
    notes = watch(layer, folder, "git checkout -qb other; echo 2 > f; git stash -q").notes
    assert notes["branch"] == {"before": "refs/heads/main", "after": "refs/heads/other"}
    assert notes["stash"]["before"] is None
    assert len(notes["stash"]["after"]) == 40
    assert "head" not in notes
    assert not watch(layer, folder, "true").notes


def test_changed_but_ignored_is_noted(folder: Path, tmp_path: Path) -> None:
    """fx-06: nobody may take an ignored file for unchanged."""
    shell(folder, REPOSITORY)
    told = watch(layer_for(tmp_path, "scan"), folder, "echo x > out.log; mkdir build; echo > build/o")
    assert told.changes == ()
    assert told.notes["ignored_changed"] == {"total": 2, "first": ["build/o", "out.log"]}
    asked_git = watch(layer_for(tmp_path, "git"), folder, "echo y > out.log")
    assert asked_git.notes["ignored_unseen"] is True


@pytest.mark.parametrize("where", [".", "inner"])
def test_very_many_ignored_files(where: str, folder: Path, tmp_path: Path) -> None:
    """Their folders are asked about first; one that is tracked all the same is still told."""
    shell(folder, REPOSITORY)
    shell(folder, INNER + "; echo build/ >> inner/.gitignore")
    script = f"cd {where}; mkdir -p build/deep; touch build/deep/{{1..800}} new; git add -f build/deep/7"
    findings = watch(layer_for(tmp_path, "scan"), folder, script)
    prefix = "" if where == "." else "inner/"
    assert rows(findings) == [f"created {prefix}build/deep/7", f"created {prefix}new"]
    assert findings.notes["ignored_changed"]["total"] == 799


PLAIN = [
    ("nothing", "true", ()),
    ("created", "echo 1 > a; mkdir -p d/e; echo 2 > d/e/x", ("created a", "created d/e/x")),
    ("empty folders", "mkdir -p d/e k; rmdir gone", ("created d/e (dir)", "created k (dir)", "deleted gone (dir)")),
    ("modified", "echo 2 >> old/x", ("modified old/x",)),
    ("touched", "touch old/x", ("modified old/x",)),
    ("written anew by a rename", "echo 1 > t; mv t old/x", ("modified old/x",)),
    ("mtime put back", "printf 9 > old/x; touch -r old old/x; touch -t 200001010000 old/x", ("modified old/x",)),
    ("mode", "chmod 600 old/x; chmod 700 old", ("mode old (dir)", "mode old/x")),
    ("there and back", "chmod 600 new; chmod 644 new; rm new", ("deleted new",)),
    ("other kinds", "mkfifo p; ln -s x l; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"k\")'",
     ("created k (socket)", "created l (symlink)", "created p (fifo)")),
    ("renamed", "mv old young", ("renamed old/x>young/x",)),
    ("everything gone", "rm -rf -- *", ("deleted gone (dir)", "deleted new", "deleted old/x")),
    ("the folder itself gone", "rm -rf ../place", ("deleted gone (dir)", "deleted new", "deleted old/x")),
    ("a repository begins", "git init -q; echo 1 > a.log; echo '*.log' > .gitignore",
     ("created .gitignore", "created a.log")),
    ("a folder with a dot", "mkdir .git.d; echo 1 > .git.d/x", ("created .git.d/x",)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "script", "expected"), PLAIN, ids=[row[0].replace(" ", "-") for row in PLAIN])
def test_plain_folder(name: str, script: str, expected: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    shell(folder, "mkdir old gone; echo 1 > old/x; echo 1 > new")
    findings = watch(layer_for(tmp_path, "scan"), folder, script)
    assert sorted(rows(findings)) == sorted(expected)
    assert findings.source == "scan"
    assert not findings.notes


def test_a_path_is_where_the_run_was_not_where_it_went(folder: Path, tmp_path: Path) -> None:
    """exp-06: relative to the run's cwd, and untouched files are not told."""
    shell(folder, "mkdir sub; echo 1 > out")
    assert rows(watch(layer_for(tmp_path, "scan"), folder, "cd sub && touch out")) == ["created sub/out"]


def test_through_a_link_to_the_folder(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    layer = layer_for(tmp_path, "scan")
    assert rows(watch(layer, link, "echo 1 > x")) == ["created x"]
    other = tmp_path / "other"
    other.mkdir()
    link.unlink()
    link.symlink_to(other)
    assert rows(watch(layer, link, "echo 1 > y")) == ["created y"]
