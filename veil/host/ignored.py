"""Which paths git ignores, also where repositories lie within repositories."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping

from veil.host import git
from veil.host.pictures import Tree
from veil.host.repository import Repository, find
from veil.host.tree import signature

#: Paths beyond which their folders are asked about first: what lies in an ignored folder is ignored.
MANY = 500


def ignored_paths(tree: Tree, asked: Mapping[str, bool], nested: Collection[str]) -> set[str]:
    """Those of ``asked`` (path below the root -> is a folder) that git ignores and does not track.

    Each path is judged by the innermost of the ``nested`` repositories it lies in, and that one, as a whole, by the
    repository around it. Raises ``GitFailed``.
    """
    groups: dict[str, list[str]] = {}
    for path in asked:
        groups.setdefault(_owner(path, nested), []).append(path)
    found: set[str] = set()
    for folder, members in groups.items():
        if folder and _is_ignored_repository(tree, folder, nested):
            found.update(members)
            continue
        if len(members) > MANY:
            gone = _in_ignored_folders(tree, folder, members, nested)
            found |= gone
            members = [path for path in members if path not in gone]
        links: dict[str, bool] = {}
        # a pattern for folders only matches a folder that is gone when the question ends with a slash
        named = {p + "/" if asked[p] else p: p for p in members if not _behind_link(tree, p, links)}
        found.update(named[p] for p in _ask(tree, folder, list(named)))
    return found


def _owner(path: str, nested: Collection[str]) -> str:
    """The innermost nested repository that ``path`` lies in, or ``""`` for the work tree itself."""
    at = path
    while nested and (at := at.rpartition("/")[0]):
        if at in nested:
            return at
    return ""


def _is_ignored_repository(tree: Tree, folder: str, nested: Collection[str]) -> bool:
    while folder:
        owner = _owner(folder, nested)
        if _ask(tree, owner, [folder]):
            return True
        folder = owner
    return False


def _behind_link(tree: Tree, path: str, known: dict[str, bool]) -> bool:
    """Whether a folder above ``path`` is no folder any more: git refuses to be asked about such a path."""
    above, behind, unknown = path.rpartition("/")[0], False, []
    while above and not behind:
        if above in known:
            behind = known[above]
            break
        unknown.append(above)
        try:
            sig = signature(os.path.join(tree.root, above))
        except OSError as error:
            raise git.GitFailed(f"{above}: {error.strerror}") from error
        behind = sig is not None and not stat.S_ISDIR(sig[0])
        above = above.rpartition("/")[0]
    known.update(dict.fromkeys(unknown, behind))
    return behind


def _in_ignored_folders(tree: Tree, folder: str, members: list[str], nested: Collection[str]) -> set[str]:
    folders = {path.rpartition("/")[0] for path in members} - {"", folder}
    if len(folders) * 4 > len(members):
        return set()
    gone = ignored_paths(tree, dict.fromkeys(folders, True), nested)
    inside = {path for path in members if path.rpartition("/")[0] in gone}
    inner = _repository(tree, folder)
    if inside and inner is not None:
        cut = len(folder) + 1 if folder else 0
        names = git.tracked(inner)
        inside = {path for path in inside if path[cut:] not in names}
    return inside


def _repository(tree: Tree, folder: str) -> Repository | None:
    if not folder:
        return tree.repository
    top = os.path.join(tree.root, folder)
    inner = find(top)
    return inner if inner is not None and inner.root == top else None


def _ask(tree: Tree, folder: str, paths: list[str]) -> set[str]:
    inner = _repository(tree, folder)
    if inner is None:
        return set()  # the nested repository is gone, and what it ignored with it
    if not folder:
        return git.ignored(inner, paths)
    cut = len(folder) + 1
    return {f"{folder}/{path}" for path in git.ignored(inner, [path[cut:] for path in paths])}
