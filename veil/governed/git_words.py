"""The words that are really run for one of the six git reads, if the repository is one that may be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from veil.governed.errors import Denied
from veil.governed.paths import Workspace
from veil.host import git, repository
from veil.policy.git_reads import hardened

#: How many repositories may lend each other objects, one behind the other (git's own bound).
_LENDERS = 5


def git_words(argv: Sequence[str], workspace: Workspace) -> tuple[str, ...]:
    """The hardened words for a read.

    A linked work tree, or one with its repository in a folder of another name, is read like any other as long as all
    of it lies in the workspace, or in a folder that the policy lists in ``allowed_paths``.

    Raises:
        Denied: code ``git_refused``, with the reason and the way out.
    """
    top = repository.find(workspace.root)
    if top is None or top.root != workspace.root:
        raise Denied(
            "the workspace is not the top of a git work tree; git is read where the workspace begins, so the host has "
            "to make the boundary around that folder",
            code="git_refused",
        )
    for folder in _folders(top):
        real = os.path.realpath(folder)
        if not workspace.admits(real):
            raise Denied(
                f"a part of the repository lies in {real}, outside the workspace (this is a linked work tree, or it "
                "borrows objects); the host may take a workspace that holds both, or list that folder in allowed_paths",
                code="git_refused",
            )
    try:
        return hardened(argv, git.filter_drivers(top))
    except git.GitFailed as error:
        raise Denied(f"git cannot be hardened here ({error})", code="git_refused") from error


def _folders(top: repository.Repository) -> Iterator[str]:
    """Every folder that git would read as a part of this repository."""
    yield top.git_dir
    yield top.common
    lenders = [os.path.join(top.common, "objects")]
    for _ in range(_LENDERS):
        yield from lenders
        lenders = [other for lender in lenders for other in _lent(lender)]
    yield from lenders


def _lent(objects: str) -> Iterator[str]:
    text = repository.read_file(os.path.join(objects, "info", "alternates")) or b""
    for line in text.splitlines():
        if line and not line.startswith(b"#"):
            # git undoes quotes in front of a name; whatever that would be, it is no folder here
            yield os.path.join(objects, os.fsdecode(line.strip()))
