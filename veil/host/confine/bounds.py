"""From a wish to bounds: every path resolved, made sure of, and put where it belongs.

What is asked and what it becomes:

=================  ======================  ====================  ====================================================
option             absent (``None``)       empty                 filled
=================  ======================  ====================  ====================================================
``writable``       cwd, the private temp   the same              these as well; one that is not there is refused
``deny_read``      nothing                 nothing               cannot be read; one that is not there is a named gap
``unix_sockets``   see ``network``         the same              can be reached; one that is not there is refused
``network``        as it is                (no such thing)       ``False``: none
=================  ======================  ====================  ====================================================
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from veil.host.confine import credentials, repositories
from veil.host.confine.base import Allowance, Bounds
from veil.host.confine.listed import Notes, names_in, remembered
from veil.host.confine.temporary import Temporary, temporary
from veil.model.command import Sandbox

#: A command that could write there could do anything, whatever else is said. Those at or above these are refused as
#: writable, and so is whatever lies below the second group.
_WHOLE, _KERNEL = ("/tmp", "/run", "/dev", "/proc", "/sys", "/etc", "/usr"), ("/proc", "/sys")
#: Start-up files of shells and tools: whoever writes them runs later, outside.
_STARTUP = (".bashrc", ".profile", ".bash_profile", ".zshrc", ".zshenv", ".gitconfig", ".config", ".local", ".ssh")


class CannotBound(Exception):
    """What is asked cannot be held to; the message gives the reason and the way out. ``option`` is its name."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(reason)
        self.option = option


@dataclass(frozen=True)
class Drawn:
    """Bounds with what else is to be told of them.

    Attributes:
        gaps: what they leave open whatever confines.
        secrets: how many places with credentials cannot be read.
        foreign: the number of the user whom cwd belongs to when root, who has no special rights inside, calls.
        temporary: the run's own folder.
    """

    bounds: Bounds
    gaps: tuple[str, ...]
    secrets: int
    foreign: int | None
    temporary: Temporary


def within(path: str, folder: str) -> bool:
    """Whether a real path is this folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def without_links(path: str) -> str:
    """The path of what is there, without links in it. Raises ``OSError`` when nothing is.

    The kernel knows it of an open descriptor, which takes a tenth of asking for each part of the path.
    """
    if not hasattr(os, "O_PATH"):
        return os.path.realpath(path, strict=True)
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        found = os.readlink(f"/proc/self/fd/{fd}")
        known = os.path.isabs(found) and os.path.samestat(os.stat(found), os.fstat(fd))
    except OSError:  # no /proc, or moved away from under this process
        known = False
    finally:
        os.close(fd)
    return found if known else os.path.realpath(path, strict=True)


@functools.cache
def system(path: str) -> str:
    """A place that a running system does not move, without links."""
    return os.path.realpath(path)


def sketch(wish: Sandbox, cwd: str) -> Bounds:
    """What can be said of the bounds without looking at any path: enough to ask a backend whether it can at all."""
    return Bounds(cwd, cwd, network=wish.network, sockets=wish.unix_sockets, allowance=_allowance(wish))


def _allowance(wish: Sandbox) -> Allowance:
    return Allowance(wish.max_processes, wish.max_memory, wish.max_file_size, wish.max_disk, wish.max_cpu)


@contextlib.contextmanager
def drawn(
    wish: Sandbox, cwd: str, environment: Mapping[str, str], own: tuple[str, ...], readable: tuple[str, ...]
) -> Iterator[Drawn]:
    """The bounds of one run, with a temporary folder that is gone afterwards.

    Args:
        own: folders of veil's own state.
        readable: files that the command must be able to read.

    Raises:
        CannotBound: a path that cannot be granted or kept, or no place for a temporary folder.
    """
    with contextlib.ExitStack() as stack:
        try:
            temp = stack.enter_context(temporary())
        except OSError as error:
            raise CannotBound("cwd", f"no private temporary folder could be made: {error.strerror}") from error
        temp.deserted = True
        found = _draw(wish, _real("cwd", cwd), environment, own, readable, temp)
        temp.deserted = False
        yield found


def _draw(
    wish: Sandbox,
    cwd: str,
    environment: Mapping[str, str],
    own: tuple[str, ...],
    readable: tuple[str, ...],
    temp: Temporary,
) -> Drawn:
    roots = [cwd, *(_real("writable", path, cwd, environment) for path in wish.writable)]
    for at, root in enumerate(roots):
        _refuse_too_much("writable" if at else "cwd", root)
    gaps: list[str] = []
    hidden: dict[str, bool] = {}
    for path in wish.deny_read:
        spelled = _absolute(path, cwd, environment)
        if os.path.exists(spelled):
            hidden[os.path.realpath(spelled)] = os.path.isdir(spelled)
        else:
            gaps.append(f"deny_read {path}: nothing was there when the run began")
    denied = len(hidden)
    if wish.protect_secrets:
        hidden.update(_credentials(environment))
    masked = _outermost(hidden)
    _refuse_covering(masked, roots)
    state = tuple(_own(own, roots))
    if set(credentials.homes(environment)) & set(roots):
        names = ", ".join(name for name in _STARTUP if os.path.lexists(os.path.join(cwd, name)))
        gaps.append(f"the home folder is writable, and with it what runs at the next login ({names or 'nothing yet'})")
    for own_code in (system(sys.prefix), system(os.path.dirname(__file__))):
        if any(within(own_code, root) for root in roots):
            gaps.append(f"{own_code} is writable, and the program that veil runs in comes from there")
            break
    kept = repositories.of(roots) if wish.protect_git else repositories.Kept()
    bounds = Bounds(
        cwd=cwd,
        temp=temp.path,
        writable=tuple(dict.fromkeys(roots[1:])),
        network=wish.network,
        sockets=tuple(_sockets(wish, cwd, environment)),
        masked_folders=tuple(path for path in masked if hidden[path]),
        masked_files=tuple(path for path in masked if not hidden[path]),
        readonly=kept.readonly,
        pinned=kept.pinned,
        readable=tuple(os.path.realpath(path) for path in readable),
        own=state,
        allowance=_allowance(wish),
    )
    owner = os.stat(cwd).st_uid
    foreign = owner if os.geteuid() == 0 and owner != 0 else None
    return Drawn(bounds, (*gaps, *kept.gaps), len(hidden) - denied, foreign, temp)


def _credentials(environment: Mapping[str, str]) -> tuple[tuple[str, bool], ...]:
    """Places with credentials, without links, and whether each is a folder."""
    places = credentials.places(environment)
    return remembered(places, functools.partial(_looked_up, places))


def _looked_up(places: tuple[credentials.Places, ...], notes: Notes) -> Iterator[tuple[str, bool]]:
    """Each place that is there; ``notes``: what that was told from."""
    listed: dict[str, frozenset[str]] = {}
    for folder, names, above, way in places:
        if above in listed and way not in listed[above]:
            listed[folder] = frozenset()
            continue
        there: Iterable[str] = names
        if len(names) >= credentials.MANY:
            notes.folder(folder)
            if (known := names_in(folder)) is not None:
                listed[folder] = known
                there = known.intersection(names)
        real = ""
        for name in there:
            notes.name(f"{folder}/{name}")
            try:
                kind = os.lstat(f"{folder}/{name}").st_mode
                link = stat.S_ISLNK(kind)
                if link:
                    notes.link()
                    kind = os.stat(f"{folder}/{name}").st_mode
            except OSError:  # not there, or where this user, who runs the command, cannot go either
                continue
            if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
                continue  # /dev/null often stands for no file at all
            if not real:
                real = os.path.realpath(folder).rstrip("/")
                notes.place(folder, real)
            path = f"{real}/{name}"
            yield os.path.realpath(path) if link else path, stat.S_ISDIR(kind)


def _absolute(path: str, cwd: str, environment: Mapping[str, str]) -> str:
    if path == "~" or path.startswith("~/"):
        for home in credentials.homes(environment)[:1]:
            path = home + path[1:]
    return os.path.join(cwd, path)


def _real(option: str, path: str, cwd: str = "/", environment: Mapping[str, str] | None = None) -> str:
    spelled = _absolute(path, cwd, environment or {})
    try:
        return without_links(spelled)
    except OSError as error:
        raise CannotBound(option, f"{option} {path}: {error.strerror}; make it first, or leave it out") from None


def _refuse_too_much(option: str, root: str) -> None:
    """A folder with which everything, or what holds the sandbox up, would be writable."""
    for place in _WHOLE:
        real = system(place)
        if within(real, root) or (place in _KERNEL and within(root, real)):
            raise CannotBound(
                option,
                f"{option} {root} would make {real} writable, and a sandbox around that confines nothing; "
                "name the folder that is needed instead",
            )


def _outermost(paths: Iterable[str]) -> list[str]:
    """Those that do not lie below another of them, in order of their names."""
    kept: list[str] = []
    # by their parts: "/a-b" must not come between "/a" and what lies below it
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not kept or not within(path, kept[-1]):
            kept.append(path)
    return kept


def _refuse_covering(masked: list[str], roots: list[str]) -> None:
    for path in masked:
        for root in roots:
            if within(root, path):
                raise CannotBound(
                    "deny_read",
                    f"{path} is to be unreadable, and {root} below it is to be written to; move one of them",
                )


def _own(own: tuple[str, ...], roots: list[str]) -> Iterator[str]:
    """veil's own folders as they are to be hidden: made where the command could else make them first."""
    for folder in own:
        try:
            real = without_links(folder)
        except OSError:
            real = os.path.realpath(folder)
        for root in roots:
            if within(root, real):
                raise CannotBound(
                    "cwd", f"{root} lies in veil's own folder {real}, which a command must not reach; work elsewhere"
                )
        if any(within(real, root) for root in roots):
            os.makedirs(real, mode=0o700, exist_ok=True)
        if os.path.isdir(real):
            yield real


def _sockets(wish: Sandbox, cwd: str, environment: Mapping[str, str]) -> Iterator[str]:
    for path in wish.unix_sockets:
        real = _real("unix_sockets", path, cwd, environment)
        if not stat.S_ISSOCK(os.stat(real).st_mode):
            raise CannotBound("unix_sockets", f"unix_sockets {path} is no socket")
        yield real
