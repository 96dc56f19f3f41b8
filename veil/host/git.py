"""git for our own questions, run so that nothing a repository says can start a program."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from veil.host import programs
from veil.host.git_index import Index
from veil.host.repository import Repository, read_file, ref

#: Seconds one internal call may take.
CALL_SECONDS = 5.0

#: Settings that could start a program or change an answer, set to their harmless value for every internal call.
_HARDENED = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=",
    "core.pager=cat",
    "core.askPass=",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.alternateRefsCommand=true",
    "core.ignoreStat=false",
    "core.splitIndex=false",
    "credential.helper=",
    "diff.external=",
    "diff.renames=false",
    "status.renames=false",
    "status.submoduleSummary=false",
    "status.relativePaths=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
)
_FILTER_KEYS = ("clean", "smudge", "process")


class GitFailed(Exception):
    """git is missing, refused, failed or took too long; the message is its own first line where there is one."""


@dataclass(frozen=True)
class Head:
    """Attributes: oid: commit that HEAD names (``None``: none yet). branch: ref it goes through (``None``: detached).
    stash: newest entry of the stash."""

    oid: str | None = None
    branch: str | None = None
    stash: str | None = None


@dataclass(frozen=True)
class Status:
    """Attributes: listed: every path that git does not know to be clean. nested: repositories it does not look into."""

    listed: frozenset[str]
    nested: frozenset[str]


def head(repository: Repository) -> Head:
    """HEAD and the stash, read from the files; from git where refs are kept otherwise. Raises ``GitFailed``."""
    text = (read_file(os.path.join(repository.git_dir, "HEAD")) or b"").strip()
    if not text.startswith(b"ref: "):
        return Head(text.decode("ascii", "replace") or None, None, ref(repository, "refs/stash"))
    branch = os.fsdecode(text[5:].strip())
    if branch != "refs/heads/.invalid":
        return Head(ref(repository, branch), branch, ref(repository, "refs/stash"))
    named = call(repository, ["symbolic-ref", "-q", "HEAD"], good=(0, 1)).decode().strip() or None
    return Head(_resolve(repository, "HEAD"), named, _resolve(repository, "refs/stash"))


def _resolve(repository: Repository, name: str) -> str | None:
    return call(repository, ["rev-parse", "-q", "--verify", name], good=(0, 1)).decode().strip() or None


def executable(project: str | None = None) -> str | None:
    """git, where the tree (``project``: its folder) did not bring it along."""
    return next(programs.named("git", project), None)


def _environment(repository: Repository) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LD_", "DYLD_"))}
    env.update(
        # overrides core.worktree, which could lead anywhere; the owner of .git is still checked, unlike with GIT_DIR
        GIT_WORK_TREE=repository.root,
        GIT_OPTIONAL_LOCKS="0",
        GIT_TERMINAL_PROMPT="0",
        GIT_ALLOW_PROTOCOL="none",
        GIT_NO_LAZY_FETCH="1",
        GIT_NO_REPLACE_OBJECTS="1",
        GIT_PAGER="cat",
        GIT_ASKPASS="",
        GIT_SSH_COMMAND="false",
        LC_ALL="C",
    )
    return env


def call(
    repository: Repository,
    arguments: Sequence[str],
    *,
    settings: Iterable[str] = (),
    stdin: bytes = b"",
    good: tuple[int, ...] = (0,),
    seconds: float = CALL_SECONDS,
) -> bytes:
    """The one way in which git is run here: from the top level, hardened. Returns its standard output.

    Raises ``GitFailed`` when it cannot be started, ends with a code not in ``good``, or takes longer than ``seconds``.
    """
    program = executable(repository.root)
    if program is None:
        raise GitFailed("git was not found in PATH, where the folders of projects do not count")
    argv = [program, "--no-pager"]
    for setting in (*_HARDENED, *settings):
        argv += ("-c", setting)
    try:
        done = subprocess.run(
            [*argv, *arguments],
            cwd=repository.root,
            env=_environment(repository),
            input=stdin,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"git {arguments[0]} took longer than {seconds:g} s") from error
    except OSError as error:
        raise GitFailed(f"git could not be started: {error.strerror}") from error
    if done.returncode not in good:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitFailed(said[0] if said else f"git {arguments[0]} ended with {done.returncode}")
    return done.stdout


def filter_drivers(repository: Repository) -> list[str]:
    """Sections of every content filter configured for this repository (``filter.lfs``), wherever that comes from.

    Read anew each time: the command that just ran may have written the configuration. Raises ``GitFailed``.
    """
    names = call(repository, ["config", "--list", "--name-only", "--includes", "-z"]).split(b"\0")
    drivers = set()
    for name in names:
        section, _, key = os.fsdecode(name).rpartition(".")
        if section.startswith("filter.") and key in _FILTER_KEYS:
            drivers.add(section)
    for section in drivers:
        if "=" in section:  # ``-c`` would take it for the end of the name
            raise GitFailed(f"the filter {section!r} has a name that cannot be switched off")
    return sorted(drivers)


def _without_filters(repository: Repository) -> list[str]:
    """Settings that blank every filter program of the repository."""
    drivers = filter_drivers(repository)
    return [f"{s}.{end}" for s in drivers for end in (*(f"{k}=" for k in _FILTER_KEYS), "required=false")]


def status(repository: Repository, index: Index) -> Status:
    """What git does not know to be clean. Raises ``GitFailed``."""
    quiet = _without_filters(repository)
    arguments = ["status", "--porcelain=v2", "-z", "-uall", "--no-renames", "--ignore-submodules=dirty"]
    listed, nested = parse_status(call(repository, arguments, settings=quiet))
    if index.may_have_submodules:
        for line in call(repository, ["ls-files", "-s", "-z"]).split(b"\0"):
            if line.startswith(b"160000 "):
                nested.add(os.fsdecode(line.split(b"\t", 1)[1]))
    return Status(frozenset(listed - nested), frozenset(nested))


def parse_status(data: bytes) -> tuple[set[str], set[str]]:
    """Paths of ``status --porcelain=v2 -z`` and the nested repositories among them (given with a slash at the end).

    Raises ``GitFailed`` at a line it does not know: an answer half understood would be a wrong one.
    """
    listed: set[str] = set()
    nested: set[str] = set()
    fields = iter(data.split(b"\0"))
    columns = {b"1": 8, b"2": 9, b"u": 10, b"?": 1, b"!": 1}
    for line in fields:
        if not line or line.startswith(b"# "):
            continue
        parts = line.split(b" ", columns.get(line[:1], 0))
        if len(parts) < 2 or len(parts) != columns[line[:1]] + 1:
            raise GitFailed(f"git status said something unknown: {line[:80]!r}")
        path = os.fsdecode(parts[-1])
        if line[:1] == b"2":
            listed.add(os.fsdecode(next(fields, b"")))
        if path.endswith("/"):
            nested.add(path[:-1])
        else:
            listed.add(path)
    return listed, nested


def ignored(repository: Repository, paths: Sequence[str]) -> set[str]:
    """Those of ``paths`` (below the root) that git ignores and does not track. Raises ``GitFailed``."""
    if not paths:
        return set()
    # "./" keeps a name such as ":!x" from being taken for a pattern; the answer repeats the question
    asked = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    # without the index, since git looks through all of it for every path: minutes for some ten thousands
    told = call(repository, ["check-ignore", "--no-index", "-z", "--stdin"], stdin=asked, good=(0, 1))
    matched = {os.fsdecode(path[2:]) for path in told.split(b"\0") if path}
    return matched - tracked(repository) if matched else matched


def tracked(repository: Repository) -> set[str]:
    """Every path in the index. Raises ``GitFailed``."""
    try:
        entries = repository.index().entries
    except OSError as error:
        raise GitFailed(f"the index could not be read: {error.strerror}") from error
    if entries is not None:
        return set(entries)
    return {os.fsdecode(path) for path in call(repository, ["ls-files", "-z"]).split(b"\0") if path}


def blobs(repository: Repository, paths: Sequence[str]) -> dict[str, bytes]:
    """Object name that each file would be added under: line ends converted, filters off. Raises ``GitFailed``."""
    quiet = _without_filters(repository)
    found: dict[str, bytes] = {}
    for start in range(0, len(paths), 200):
        batch = paths[start : start + 200]
        told = call(repository, ["hash-object", "--", *batch], settings=quiet).split()
        if len(told) != len(batch):
            raise GitFailed("git hash-object gave another number of answers than it was asked for")
        found.update((path, bytes.fromhex(oid.decode())) for path, oid in zip(batch, told, strict=True))
    return found


def moved_files(repository: Repository, before: str | None, after: str | None) -> set[str]:
    """Paths that differ between two commits (``None``: no commit yet). Raises ``GitFailed``."""
    sides = [before, after]
    if None in sides:
        empty = call(repository, ["hash-object", "-t", "tree", "--stdin"]).decode().strip()
        sides = [side or empty for side in sides]
    told = call(repository, ["diff-tree", "-r", "-z", "--name-only", "--no-renames", *(s for s in sides if s)])
    return {os.fsdecode(path) for path in told.split(b"\0") if path}
