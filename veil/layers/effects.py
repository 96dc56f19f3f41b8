"""Tells which files a run changed: takes its turn in the tree, a picture before, a picture after."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from veil.host import beside, locks, pictures
from veil.host.attributing import attributed
from veil.host.changes import MAX_NAMED, compare
from veil.host.tree import MAX_ENTRIES, TooMuch, TreeUnknown
from veil.layers.base import Entered
from veil.model.command import Effects, Request, Trace
from veil.model.outcome import Findings
from veil.model.plan import Launch, Place, Plan, Touched
from veil.model.variation import varied

_NEEDLESS = {"effects": "read-only"}


class EffectsLayer:
    """Grants ``Effects``. Fails open: what could not be known is ``None`` with the reason, never an empty list.

    Notes that it may leave: ``effects_unavailable`` (reason), ``shared`` (``True`` or ``"unknown"``: others may have
    worked in the tree meanwhile), ``head``/``branch``/``stash`` (``{"before", "after"}`` when git's moved),
    ``effects_gaps`` (what was not looked at), ``ignored_changed`` (``{"total", "first"}``: changed files that git
    ignores), ``ignored_unseen`` (``True``: nobody looked at ignored files).

    Where a tracer was at work (``Launch.touched``), the changes are those that it saw the command make, however many
    others worked in the tree (``source`` is then its name); ``effects_untraced`` (``{"total", "first"}``) names what
    changed meanwhile and was not seen to be done by the command.

    ``effects``: ``"read-only"`` (nobody looked, since the pre-check says that the command can change nothing).

    The pre-check is asked where looking costs more than asking: where git tracks many files, where an earlier look saw
    many, and before a run would wait for its turn.

    Args:
        lock_directory: where lock files go (made with mode 0700); ``None``: no turns are taken.
        wait_seconds: how long a run waits for its turn before it goes ahead.
        own_paths: absolute paths of veil's own that are never reported.
        git_first: tracked files beyond which git is asked instead of scanning.
        harmless: whether the command of a request can change nothing, by the pre-check.
        most_entries: files and folders beyond which the changes of a tree are given up as unknown.
    """

    name = "effects"
    place = Place.WATCH
    needed = False
    supersedes: tuple[type, ...] = ()

    def __init__(
        self,
        lock_directory: Path | None,
        wait_seconds: float = 2.0,
        own_paths: tuple[str, ...] = (),
        git_first: int = pictures.GIT_FIRST,
        most_entries: int = MAX_ENTRIES,
        harmless: Callable[[Request], bool] = lambda request: False,
    ) -> None:
        self.lock_directory = lock_directory
        self.wait_seconds = wait_seconds
        own = own_paths if lock_directory is None else (*own_paths, str(lock_directory))
        self.own_paths = tuple(os.path.realpath(path) for path in own)
        self.git_first = git_first
        self.most_entries = most_entries
        self.harmless = harmless
        self._large: set[str] = set()

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        return None

    def mark_job(self, cwd: str) -> beside.Job:
        """Let runs in the tree of ``cwd`` know of a background job until the handle is closed. Never raises."""
        try:
            return locks.mark_job(self.lock_directory, pictures.locate(cwd).root)
        except TreeUnknown:
            return beside.Job(None, -1)

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        ignored = isinstance(wish, Effects) and wish.ignored
        touched = Touched()
        if any(isinstance(each, Trace) for each in plan.request.wishes):
            launch = varied(launch, touched=touched)
        try:
            tree = pictures.locate(launch.cwd, self.own_paths, self.most_entries)
        except TreeUnknown as error:
            yield launch
            return _unknown(error, False)
        needless = self._judged(plan.request)
        if (tree.root in self._large or pictures.tracks_more(tree, self.git_first)) and needless():
            yield launch
            return Findings(notes=dict(_NEEDLESS))
        window = locks.enter(
            self.lock_directory, tree.root, self.wait_seconds, needless, launch.unwanted or locks.never
        )
        if window.needless:
            yield launch
            return Findings(notes=dict(_NEEDLESS))
        try:
            try:
                tree, before = self._first(tree, ignored)
            except TreeUnknown as error:
                yield launch
                return _unknown(error, window.leave())
            if len(before.scan.entries) > self.git_first:
                self._remember(tree.root)
            yield launch
            return _told(tree, before, ignored, window, touched)
        finally:
            window.leave()

    def _judged(self, request: Request) -> Callable[[], bool]:
        """Asks the pre-check when it is called, once."""
        return functools.cache(lambda: not request.insist and self.harmless(request))

    def _remember(self, root: str) -> None:
        if len(self._large) >= 256:
            self._large.clear()
        self._large.add(root)

    def _first(self, tree: pictures.Tree, ignored: bool) -> tuple[pictures.Tree, pictures.Picture]:
        """The first picture; of the working directory alone when the tree around it is too much to look at."""
        try:
            return tree, pictures.first(tree, ignored=ignored, git_first=self.git_first)
        except TooMuch as error:
            smaller = pictures.narrowed(tree)
            if smaller is None:
                raise
            before = pictures.first(smaller, ignored=ignored)
            before.scan.gaps[".."] = f"only the working directory was looked at: {error}"
            return smaller, before


def _told(
    tree: pictures.Tree, before: pictures.Picture, ignored: bool, window: locks.Window, touched: Touched
) -> Findings:
    try:
        told = compare(tree, before, pictures.second(tree, before), ignored=ignored)
    except TreeUnknown as error:
        return _unknown(error, window.leave())
    notes = told.notes
    shared = window.leave()
    source: str = before.how
    if touched.by is not None and touched.complete:
        # whoever else was at work here meanwhile: these changes are the command's own
        source, shared = touched.by, False
        mine, others = attributed(tree.cwd, told.changes, touched)
        told.changes = tuple(mine)
        if others:
            notes["effects_untraced"] = {"total": len(others), "first": [each.path for each in others[:MAX_NAMED]]}
    if shared:
        notes["shared"] = shared
    if before.how == "git":
        notes["ignored_unseen"] = True
    return Findings(told.changes, source, notes=notes)


def _unknown(error: TreeUnknown, shared: beside.Shared) -> Findings:
    notes: dict[str, Any] = {"effects_unavailable": str(error)}
    if shared:
        notes["shared"] = shared
    return Findings(notes=notes)
