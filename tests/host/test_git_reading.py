"""Internal git reads the index, HEAD and answers as git means them, or says that it cannot."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from git_places import IDENTITY, place, repository, run
from hypothesis import given
from hypothesis import strategies as st

from veil.host import git
from veil.host.git_index import Index

__all__ = ["place"]

pytestmark = pytest.mark.needs("git")


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_the_index_is_read_as_git_reads_it(version: str, place: Path) -> None:
    for number in range(60):
        folder = place / f"folder{number % 7}" / ("deep" * (number % 5 + 1))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"ü{number}").write_text(str(number))
    (place / ("n" * 200) / ("m" * 200)).mkdir(parents=True)
    (place / ("n" * 200) / ("m" * 200) / "x").touch()
    (place / "program").touch(mode=0o755)
    (place / "link").symlink_to("f")
    run(place, "add", ".")
    if version == "3":
        (place / "announced").touch()
        run(place, "add", "-N", "announced")
    run(place, "update-index", "--index-version", version)
    index = repository(place).index()
    assert index.entries is not None
    assert int.from_bytes(index.data[4:8], "big") == int(version)
    told = {}
    for line in run(place, "ls-files", "-s", "-z").rstrip("\0").split("\0"):
        facts, name = line.split("\t", 1)
        mode, oid, _ = facts.split(" ")
        told[name] = (int(mode, 8), oid)
    assert {name: (entry.mode, entry.oid.hex()) for name, entry in index.entries.items()} == told
    assert index.count == len(told)
    found = (place / "f").stat()
    entry = index.entries["f"]
    assert (entry.size, entry.mtime_ns, entry.ctime_ns) == (found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    assert entry.inode == found.st_ino & 0xFFFFFFFF
    assert index.entries.get("announced", entry).absent == (version == "3")


def test_names_longer_than_the_index_can_count(place: Path) -> None:
    name = "/".join("d" * 250 for _ in range(15)) + "/" + "e" * 200
    blob = run(place, "hash-object", "-w", "f")
    run(place, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    long = name + "/" + "z" * 400
    run(place, "update-index", "--replace", "--add", "--cacheinfo", f"100644,{blob},{long}")
    entries = repository(place).index().entries
    assert entries is not None
    assert {"f", "g", long} == set(entries)


def test_an_index_in_two_files_is_not_guessed_at(place: Path) -> None:
    run(place, "update-index", "--split-index")
    index = repository(place).index()
    assert not index.readable
    assert index.entries is None


def test_sha256(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q", "--object-format=sha256")
    (tmp_path / "f").write_text("f\n")
    run(tmp_path, "add", ".")
    here = repository(tmp_path)
    entries = here.index().entries
    assert entries is not None
    assert entries["f"].oid.hex() == run(tmp_path, "hash-object", "f")
    assert git.blobs(here, ["f"])["f"] == entries["f"].oid
    run(tmp_path, "commit", "-q", "-m", "one")
    assert git.moved_files(here, None, git.head(here).oid) == {"f"}


@given(st.binary(max_size=300))
def test_any_bytes_are_an_index_or_are_not(data: bytes) -> None:
    for text in (data, b"DIRC\0\0\0\2\0\0\0\3" + data, b"DIRC\0\0\0\4\0\0\0\3" + data):
        entries = Index(text).entries
        assert entries is None or isinstance(entries, dict)


PATH = st.binary(min_size=1, max_size=20).filter(lambda b: b"\0" not in b and not b.endswith(b"/"))
OID = "1" * 40


@given(st.lists(st.tuples(st.sampled_from("12u?n"), PATH, PATH), max_size=12))
def test_status_lines_are_read_whatever_the_names(lines: list[tuple[str, bytes, bytes]]) -> None:
    data, listed, nested = b"# branch.oid x\0", set(), set()
    for kind, path, other in lines:
        name = os.fsdecode(path)
        if kind == "1":
            data += f"1 .M N... 100644 100644 100644 {OID} {OID} ".encode() + path + b"\0"
        elif kind == "2":
            data += f"2 R. N... 100644 100644 100644 {OID} {OID} R100 ".encode() + path + b"\0" + other + b"\0"
            listed.add(os.fsdecode(other))
        elif kind == "u":
            data += f"u UU N... 100644 100644 100644 100644 {OID} {OID} {OID} ".encode() + path + b"\0"
        elif kind == "?":
            data += b"? " + path + b"\0"
        else:
            data += b"? " + path + b"/\0"
            nested.add(name)
            continue
        listed.add(name)
    assert git.parse_status(data) == (listed, nested)


@pytest.mark.parametrize("line", [b"x what\0", b"1 .M short\0", b"?\0", b"fatal: bad\0"])
def test_a_status_line_half_understood_is_a_failure(line: bytes) -> None:
    with pytest.raises(git.GitFailed):
        git.parse_status(line)


def test_real_status_with_conflict_and_rename(place: Path) -> None:
    run(place, "checkout", "-q", "-b", "other")
    (place / "f").write_text("other\n")
    run(place, "commit", "-q", "-a", "-m", "o")
    run(place, "checkout", "-q", "main")
    (place / "f").write_text("mine\n")
    run(place, "commit", "-q", "-a", "-m", "m")
    subprocess.run(["git", *IDENTITY, "merge", "other"], cwd=place, check=False, capture_output=True)
    run(place, "mv", "g", "h")
    here = repository(place)
    assert git.status(here, here.index()).listed == {"f", "g", "h"}


def test_finding_the_work_tree(place: Path, tmp_path: Path) -> None:
    deep = place / "a" / "b"
    deep.mkdir(parents=True)
    assert repository(deep).root == str(place)
    (deep / ".git").mkdir()  # an empty one is no repository
    left = len(os.listdir("/dev/fd"))
    assert repository(deep).root == str(place)
    assert len(os.listdir("/dev/fd")) <= left  # fewer: rubbish of earlier tests went meanwhile
    (deep / ".git").rmdir()
    (deep / ".git").write_text("gitdir: nowhere\n")
    assert repository(deep).root == str(place)
    run(place, "worktree", "add", "-q", str(tmp_path / "tree"))
    other = repository(tmp_path / "tree")
    assert other.root == str(tmp_path / "tree")
    assert other.common == str(place / ".git")
    assert other.git_dir == str(place / ".git" / "worktrees" / "tree")


def test_heads(place: Path) -> None:
    here = repository(place)
    one = run(place, "rev-parse", "HEAD")
    assert git.head(here) == git.Head(one, "refs/heads/main", None)
    run(place, "pack-refs", "--all", "--prune")
    assert git.head(here) == git.Head(one, "refs/heads/main", None)
    (place / "f").write_text("2\n")
    run(place, "stash", "-q")
    assert git.head(here).stash == run(place, "rev-parse", "refs/stash")
    run(place, "checkout", "-q", "--detach")
    assert git.head(here).branch is None
    run(place, "checkout", "-q", "--orphan", "fresh")
    assert git.head(here) == git.Head(None, "refs/heads/fresh", run(place, "rev-parse", "refs/stash"))


def test_a_head_that_cannot_be_read_from_files_is_asked_for(place: Path) -> None:
    """What a reftable shows in HEAD; git older than it cannot answer, and that is a failure, not "no commit"."""
    (place / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    with pytest.raises(git.GitFailed):
        git.head(repository(place))


@pytest.mark.parametrize("split", [False, True])
def test_tracked_files_are_not_ignored(split: bool, place: Path) -> None:
    (place / ".gitignore").write_text("*.log\n")
    (place / "kept.log").touch()
    run(place, "add", "-f", "kept.log")
    if split:
        run(place, "update-index", "--split-index")
    assert git.ignored(repository(place), ["kept.log", "other.log"]) == {"other.log"}


def test_names_that_look_like_patterns(place: Path) -> None:
    (place / ".gitignore").write_text("*.log\nbuild/\n")
    names = [":!x", ":(glob)y.log", "*", "-z", "new\nline.log", "build/", "build/deep/x", "f", "\udcff.log", " a "]
    ignored = git.ignored(repository(place), names)
    assert ignored == {":(glob)y.log", "new\nline.log", "build/", "build/deep/x", "\udcff.log"}
