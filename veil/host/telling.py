"""What a run in a view changed, told as changes like those of any run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from veil.host.differing import Difference, State, Touched, around, kind, same_bytes
from veil.host.tree import kind_of
from veil.model.outcome import Change

#: Files in the folder of a repository that git obeys; ``commondir`` leads to another folder with hooks.
_OBEYED = ("config", "config.worktree", "commondir")
_HOOKS = ".git/hooks"


def told(difference: Difference, real: str) -> list[Change]:
    """The difference as changes, sorted by path.

    As everywhere in veil: what lies in a ``.git`` is left out; a folder is a change of its own when it came or went
    empty, or when its mode moved; where a folder took a file's place or the other way round, the file is what is told.
    A file that went and one that came with its content, its size and its time are one renamed file.

    Args:
        real: the folder, where the contents of files that went still stand.
    """
    rows = [each for each in difference.touched if each.path and not in_git(each.path)]
    full = {before: _holders(rows, before=before) for before in (True, False)}
    found: dict[str, Change] = {}
    for each in rows:
        change = _change(each, full)
        if change is not None:
            found[each.path] = change
    _join_renames(rows, found, real)
    return [found[path] for path in sorted(found)]


def in_git(path: str) -> bool:
    """Whether ``path`` is a ``.git`` or lies in one."""
    return ".git" in path.split("/")


def starts_programs(path: str) -> bool:
    """Whether git runs ``path``, or what it says: hooks and configuration of a repository or of one within it.

    Folders that were folders before are not asked about: only what is in them counts.
    """
    parts = path.split("/")
    if ".git" not in parts:
        return False
    inside = parts[parts.index(".git") + 1 :]
    if not inside:  # a file or a link that leads to a repository elsewhere
        return True
    return _obeyed(inside)


def _obeyed(inside: list[str]) -> bool:
    """The same of a path within the folder of a repository."""
    first, *below = inside
    if not below:
        return first in (*_OBEYED, "hooks", "modules")
    if first == "hooks":
        return not below[-1].endswith(".sample")
    if first == "modules" and len(below) == 1:  # what stands in the place of a submodule's folder
        return True
    # a name is passed over: it may be "hooks" as well. That of a submodule may have slashes in it
    return first in ("modules", "worktrees") and any(_obeyed(below[at:]) for at in range(1, len(below)))


def git_runs(difference: Difference, real: str) -> list[str]:
    """Changed paths that make git run programs, as a sandbox tells them after a run; sorted.

    Args:
        real: the folder that the difference is about.
    """
    rows = [each for each in difference.touched if not _stays_folder(each)]
    found = {each.path for each in rows if starts_programs(each.path)}
    elsewhere = _linked_hooks(difference, real)
    for each in rows if elsewhere is not None else ():
        folder, _, name = each.path.rpartition("/")
        if (folder or ".") == elsewhere and not name.endswith(".sample"):
            found.add(f"{_HOOKS}/{name}")
    return sorted(found)


def _stays_folder(each: Touched) -> bool:
    return all(state.is_dir for state in (each.before, each.after) if state is not None)


def _linked_hooks(difference: Difference, real: str) -> str | None:
    """Where in the folder the hooks of its repository lie, when a link leads to them."""
    moved = next((each for each in difference.touched if each.path == _HOOKS), None)
    try:
        target = os.readlink(f"{real}/{_HOOKS}") if moved is None else moved.after.target if moved.after else ""
    except OSError:  # no link, or nothing at all
        return None
    return os.path.relpath(os.path.join(real, ".git", target), real) if target else None


def _holders(rows: Iterable[Touched], *, before: bool) -> set[str]:
    return {each.path.rpartition("/")[0] for each in rows if (each.before if before else each.after) is not None}


def _change(each: Touched, full: Mapping[bool, set[str]]) -> Change | None:
    old, new = each.before, each.after
    if old is not None and new is not None and old.is_dir is not new.is_dir:
        old, new = (None, new) if old.is_dir else (old, None)
    if new is None:
        assert old is not None
        if old.is_dir and each.path in full[True]:
            return None
        return Change(each.path, "deleted", kind_of(old.mode))
    word = kind_of(new.mode)
    if old is None:
        return None if new.is_dir and each.path in full[False] else Change(each.path, "created", word)
    if kind(old) != kind(new) or (not each.same and not new.is_dir):
        return Change(each.path, "modified", word)
    # a moved time alone is no change
    return Change(each.path, "mode", word) if around(old)[:3] != around(new)[:3] else None


def _join_renames(rows: Iterable[Touched], found: dict[str, Change], real: str) -> None:
    went: dict[tuple[int, int, int, str], list[Touched]] = {}
    for each in rows:
        if each.before is not None and each.path in found and found[each.path].change == "deleted":
            went.setdefault(_identity(each.before), []).append(each)
    for each in rows:
        if each.after is None or each.path not in found or found[each.path].change != "created":
            continue
        for origin in went.get(_identity(each.after), []):
            assert origin.before is not None
            if _moved_there(f"{real}/{origin.path}", origin.before, each):
                went[_identity(each.after)].remove(origin)
                del found[origin.path]
                found[each.path] = Change(each.path, "renamed", kind_of(each.after.mode), origin.path)
                break


def _identity(state: State) -> tuple[int, int, int, str]:
    return kind(state), 0 if state.is_dir else state.size, state.mtime_ns, state.target


def _moved_there(real: str, before: State, each: Touched) -> bool:
    try:
        return not before.is_file or before.size == 0 or same_bytes(real, each.source)
    except OSError:  # somebody took it away meanwhile: then nobody can say that it is the same
        return False
