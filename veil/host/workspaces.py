"""Filling an empty folder with what a recording started from: a copy of a folder, or a revision of a git repository.

File permissions are made 644 or 755 (a checkout keeps only whether a file is executable, and its umask decides the
rest), so that a recording holds in every checkout.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

from veil.host.git import CALL_SECONDS, executable
from veil.model.errors import Refused

#: Our own calls run no hook, ask nobody, and write no log that would hold today's time.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=",
    "core.autocrlf=false",
    "core.logAllRefUpdates=false",
    "init.defaultBranch=main",
    "gc.auto=0",
    "maintenance.auto=false",
)
#: Checking out a large tree takes longer than a question.
_CHECKOUT_SECONDS = 24 * CALL_SECONDS


def copy_folder(source: str, into: str) -> None:
    """Files, folders and links of ``source``, without what is called ``.git``, into the empty folder ``into``.

    Raises:
        Refused: it is no folder, cannot be read, or holds something else (``no_workspace``).
    """
    if not os.path.isdir(source):
        raise _no_workspace(source, "it is no folder")
    try:
        for name in sorted(os.listdir(source)):
            if name != ".git":
                _copy(os.path.join(source, name), os.path.join(into, name))
    except OSError as error:
        raise _no_workspace(error.filename or source, error.strerror or str(error)) from error
    plain_modes(into)


def _copy(source: str, target: str) -> None:
    mode = os.lstat(source).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISREG(mode):
        shutil.copyfile(source, target)
        os.chmod(target, stat.S_IMODE(mode) | stat.S_IWUSR)
    elif stat.S_ISDIR(mode):
        os.mkdir(target)
        for name in sorted(os.listdir(source)):
            if name != ".git":
                _copy(os.path.join(source, name), os.path.join(target, name))
    else:
        raise _no_workspace(source, "it is neither a file nor a folder nor a link")


def plain_modes(root: str) -> None:
    """Folders below ``root`` 755, files 755 when their owner may execute them and else 644. ``.git`` is left alone."""
    for folder, names, files in os.walk(root):
        if ".git" in names:
            names.remove(".git")
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755)
        for name in files:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                os.chmod(path, 0o755 if mode & stat.S_IXUSR else 0o644)


def check_out(repository: str, revision: str, into: str) -> None:
    """``revision`` on branch ``main`` in a new repository in the empty folder ``into``, its history included.

    Objects are borrowed from ``repository`` (which is only read), so this costs no more than writing the files.

    Raises:
        Refused: no git, no repository there, or it does not have the revision (``no_workspace``).
    """
    name = f"revision {revision} of {repository}"
    commit = commit_of(repository, revision)
    said = _git(repository, name, "rev-parse", "--show-object-format", "--git-path", "objects", "--git-path", "shallow")
    kind, objects, shallow = said.splitlines()
    _git(into, name, "init", "--quiet", "--template=", f"--object-format={kind}", ".", own=True)
    inside = os.path.join(into, ".git")
    os.makedirs(os.path.join(inside, "objects", "info"), exist_ok=True)
    borrowed = os.path.realpath(os.path.join(repository, objects))
    Path(inside, "objects", "info", "alternates").write_bytes(os.fsencode(borrowed) + b"\n")
    shallow = os.path.join(repository, shallow)
    if os.path.exists(shallow):
        shutil.copyfile(shallow, os.path.join(inside, "shallow"))
    _git(into, name, "update-ref", "refs/heads/main", commit, own=True)
    _git(into, name, "symbolic-ref", "HEAD", "refs/heads/main", own=True)
    _git(into, name, "reset", "--quiet", "--hard", own=True)
    plain_modes(into)


def refresh_index(root: str) -> None:
    """Tell the repository in ``root`` that its files are as checked out, whatever their time stamps say now."""
    _git(root, root, "update-index", "-q", "--really-refresh", own=True)


def commit_of(repository: str, revision: str) -> str:
    """Full id of the commit that ``revision`` names. Raises ``Refused`` (``no_workspace``)."""
    name = f"revision {revision} of {repository}"
    if revision.startswith("-"):
        raise _no_workspace(name, "that names no commit")
    return _git(repository, name, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").strip()


def _git(folder: str, name: str, *arguments: str, own: bool = False) -> str:
    """``own``: a repository that we made, where the user's own settings (filters, templates) must not matter."""
    program = executable()
    if program is None:
        raise _no_workspace(name, "git was not found in PATH, where the folders of projects do not count")
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "LD_", "DYLD_"))}
    env.update(GIT_TERMINAL_PROMPT="0", GIT_NO_LAZY_FETCH="1", GIT_NO_REPLACE_OBJECTS="1", LC_ALL="C")
    if own:
        env.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1", GIT_CEILING_DIRECTORIES=folder)
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    try:
        done = subprocess.run(
            [program, "--no-pager", *settings, *arguments],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CHECKOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _no_workspace(name, f"git {arguments[0]} took longer than {_CHECKOUT_SECONDS:g} s") from error
    except OSError as error:
        raise _no_workspace(name, f"git could not be started there: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
        raise _no_workspace(name, said or f"git {arguments[0]} does not find it")
    return os.fsdecode(done.stdout)


def _no_workspace(what: str, why: str) -> Refused:
    return Refused(f"the workspace of this recording cannot be made: {what}: {why}", code="no_workspace", what=what)


def read_plain(folder: str, limit: int) -> dict[str, tuple[bytes, int]]:
    """Content and permissions (644 or 755) by path of all files below ``folder`` but ``.git``.

    Args:
        limit: bytes of all together.

    Raises:
        Refused: more than that, or a link, an empty folder or anything else that is no file (``not_inline``).
    """
    found: dict[str, tuple[bytes, int]] = {}
    total = 0
    for above, names, files in os.walk(folder, onerror=_raise):
        names[:] = sorted(name for name in names if name != ".git")
        if not names and not files and above != folder:
            raise _not_inline(above, "an empty folder")
        for name in [*names, *files]:
            path = os.path.join(above, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                continue
            if not stat.S_ISREG(mode):
                raise _not_inline(path, "a link" if stat.S_ISLNK(mode) else "no regular file")
            total += os.lstat(path).st_size
            if total > limit:
                raise _not_inline(folder, f"more than {limit} bytes")
            found[os.path.relpath(path, folder)] = (Path(path).read_bytes(), 0o755 if mode & stat.S_IXUSR else 0o644)
    return found


def _raise(error: OSError) -> None:
    raise error


def _not_inline(path: str, what: str) -> Refused:
    return Refused(
        f"{path} is {what}, which cannot stand inside a recording; let it name the folder or a git revision instead",
        code="not_inline",
        path=path,
    )
