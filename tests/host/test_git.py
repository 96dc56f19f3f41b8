"""Internal git: hostile repositories start nothing; the index, HEAD and answers are read right."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.host import git
from veil.host.git_index import Index
from veil.host.repository import Repository, find

pytestmark = pytest.mark.needs("git")

IDENTITY = ("-c", "user.name=tester", "-c", "user.email=tester@example.org")


def run(cwd: Path, *arguments: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=cwd, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path / "place"
    root.mkdir()
    run(root, "init", "-q", "-b", "main")
    for name in ("f", "g"):
        (root / name).write_text(f"{name}\n")
    run(root, "add", ".")
    run(root, "commit", "-q", "-m", "one")
    return root


def repository(root: Path) -> Repository:
    found = find(str(root))
    assert found is not None
    return found


def ask_everything(root: Path) -> git.Status:
    """Every internal call there is, on a tree in which git has to look at contents."""
    for name in ("f", "g"):
        path = root / name
        path.write_bytes(path.read_bytes().swapcase())
    (root / "new").write_text("new")
    here = repository(root)
    told = git.status(here, here.index())
    git.head(here)
    git.ignored(here, ["new", "f"])
    git.blobs(here, ["f", "new"])
    git.moved_files(here, None, git.head(here).oid)
    assert {"f", "g", "new"} <= told.listed
    return told


HOSTILE = {
    "fsmonitor": ("config", "core.fsmonitor", "touch {mark}; false"),
    "hooks": ("config", "core.hooksPath", "{evil}"),
    "pager": ("config", "core.pager", "touch {mark}; cat"),
    "pager of status": ("config", "pager.status", "touch {mark}; cat"),
    "external diff": ("config", "diff.external", "{evil}/run"),
    "alias": ("config", "alias.status", "!touch {mark}"),
    "ssh": ("config", "core.sshCommand", "touch {mark}"),
    "editor": ("config", "core.editor", "touch {mark}"),
    "askpass": ("config", "core.askPass", "{evil}/run"),
    "filter clean": ("config", "filter.evil.clean", "touch {mark}; cat"),
    "filter process": ("config", "filter.evil.process", "{evil}/run"),
    "filter smudge": ("config", "filter.evil.smudge", "touch {mark}; cat"),
    "textconv": ("config", "diff.evil.textconv", "{evil}/run"),
    "external diff by attribute": ("config", "diff.evil.command", "{evil}/run"),
    "gpg": ("config", "gpg.program", "{evil}/run"),
    "credential helper": ("config", "credential.helper", "!touch {mark}"),
    "alternate refs": ("config", "core.alternateRefsCommand", "touch {mark}"),
}


def arm(root: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A marker, and a folder of programs (all git hooks and ``run``) that would leave it."""
    mark, evil = tmp_path / "mark", tmp_path / "evil"
    evil.mkdir()
    names = ("run", "fsmonitor-watchman", "post-index-change", "pre-commit", "reference-transaction", "post-checkout")
    for name in names:
        for folder in (evil, root / ".git" / "hooks"):
            program = folder / name
            program.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
            program.chmod(0o755)
    (root / ".gitattributes").write_text("* filter=evil diff=evil\n")
    return mark, evil


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("where", ["config", "include"])
def test_nothing_that_a_repository_says_is_run(name: str, where: str, place: Path, tmp_path: Path) -> None:
    """cls-22."""
    mark, evil = arm(place, tmp_path)
    _, key, value = HOSTILE[name]
    value = value.format(mark=mark, evil=evil)
    if where == "include":
        run(place, "config", "-f", str(tmp_path / "more"), key, value)
        run(place, "config", "include.path", str(tmp_path / "more"))
    else:
        run(place, "config", key, value)
    ask_everything(place)
    assert not mark.exists()


@pytest.mark.parametrize("key", ["clean", "process"])
def test_the_traps_are_sharp(key: str, place: Path, tmp_path: Path) -> None:
    """A plain ``git status`` does run these: otherwise the tests above would prove nothing."""
    mark, evil = arm(place, tmp_path)
    run(place, "config", f"filter.evil.{key}", f"{evil}/run")
    (place / "f").write_text("F\n")
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    subprocess.run(["git", "status"], cwd=place, env=env, check=False, capture_output=True)
    assert mark.exists()


def test_the_fsmonitor_trap_is_sharp(place: Path, tmp_path: Path) -> None:
    mark, _ = arm(place, tmp_path)
    run(place, "config", "core.fsmonitor", f"touch {mark}; false")
    subprocess.run(["git", "status"], cwd=place, check=False, capture_output=True)
    assert mark.exists()


def test_a_required_filter_does_not_stop_the_answer(place: Path, tmp_path: Path) -> None:
    mark, _ = arm(place, tmp_path)
    run(place, "config", "filter.evil.clean", f"touch {mark}; cat")
    run(place, "config", "filter.evil.required", "true")
    ask_everything(place)
    assert not mark.exists()


@pytest.mark.parametrize("driver", ["with space", "dot.ted", 'quo"te', "café"])
def test_filters_with_strange_names_are_off(driver: str, place: Path, tmp_path: Path) -> None:
    mark, _ = arm(place, tmp_path)
    run(place, "config", f"filter.{driver}.clean", f"touch {mark}; cat")
    (place / ".gitattributes").write_text(f"* filter={driver}\n")
    ask_everything(place)
    assert not mark.exists()


def test_a_filter_whose_name_cannot_be_switched_off_is_refused(place: Path, tmp_path: Path) -> None:
    mark, _ = arm(place, tmp_path)
    run(place, "config", "filter.a=b.clean", f"touch {mark}; cat")
    (place / ".gitattributes").write_text("* filter=a=b\n")
    with pytest.raises(git.GitFailed, match="cannot be switched off"):
        git.status(repository(place), repository(place).index())
    assert not mark.exists()


def test_a_submodules_own_configuration_is_not_run(place: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    run(inner, "init", "-q")
    (inner / "z").write_text("z\n")
    run(inner, "add", ".")
    run(inner, "commit", "-q", "-m", "z")
    run(place, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(inner), "sub")
    run(place, "commit", "-q", "-m", "sub")
    mark = tmp_path / "mark"
    run(place / "sub", "config", "filter.evil.clean", f"touch {mark}; cat")
    run(place / "sub", "config", "core.fsmonitor", f"touch {mark}; false")
    (place / "sub" / ".gitattributes").write_text("* filter=evil\n")
    (place / "sub" / "z").write_text("Z\n")
    assert "sub" in ask_everything(place).nested
    assert git.ignored(repository(place / "sub"), ["z"]) == set()
    assert not mark.exists()


def test_the_callers_environment_and_a_git_of_the_trees_own_do_not_count(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    fake = place / "git"
    fake.write_text(f"#!/bin/sh\ntouch {mark}\n")
    fake.chmod(0o755)
    monkeypatch.chdir(place)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {mark}")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {mark}; false")
    ask_everything(place)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    with pytest.raises(git.GitFailed, match="part of the tree"):
        git.ignored(repository(place), ["f"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(git.GitFailed, match="not found"):
        git.ignored(repository(place), ["f"])
    assert not mark.exists()


def test_core_worktree_does_not_lead_elsewhere(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret").touch()
    run(place, "config", "core.worktree", str(other))
    assert "secret" not in ask_everything(place).listed


def test_the_index_is_never_written(place: Path) -> None:
    before = (place / ".git" / "index").read_bytes()
    ask_everything(place)
    assert (place / ".git" / "index").read_bytes() == before


def test_a_call_that_takes_too_long_is_a_failure(place: Path) -> None:
    with pytest.raises(git.GitFailed, match="longer than"):
        git.call(repository(place), ["status"], seconds=0.0)


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
    assert len(os.listdir("/dev/fd")) == left
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
