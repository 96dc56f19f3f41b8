"""Runs a command in a disposable view of its folder and tells what would have changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from veil.layers.base import Entered
from veil.model.command import Effects, Look, Preview, Sandbox
from veil.model.errors import Refused
from veil.model.outcome import Change, Fact, Findings, Outcome
from veil.model.plan import Launch, Place, Plan

if TYPE_CHECKING:  # imported by the first preview: no other run needs them
    from veil.host.differing import Difference
    from veil.host.views import Method, View

#: Gaps named at most.
MAX_GAPS = 20
#: What programs say when an overlay refuses what the folder would not have, and how that comes.
_OTHERWISE = {
    b"ross-device link": "in an overlay a folder that was there before is not renamed but copied (EXDEV)",
    b"too large for defined data type": "in an overlay of a plain user nothing can be done to the files of others",
}


class Keeper(Protocol):
    """Where a previewed change goes so that it can be made real later."""

    def keep(self, real: str, difference: Difference, opened_ns: int) -> tuple[str | None, str | None]:
        """The name under which it is kept, or ``None`` and why it is not."""


class PreviewLayer:
    """Grants ``Preview``. Entered once around all attempts: a retry finds what the attempt before it did, as it would
    in the tree itself.

    Notes that it leaves: ``previewed`` (``True``), ``preview_method`` (``overlay``, ``clone`` or ``copy``),
    ``preview_gaps`` (what it does not hold back or shows otherwise), ``preview_more`` (how many paths that git ignores,
    or that lie in a ``.git``, would change as well), ``preview_git`` (hooks and configuration that a confined command
    would have changed), ``preview_kept`` (the name under which it is kept) or ``preview_not_kept`` (why it is not), and
    ``look_gaps`` as ``Look`` would.

    Args:
        rooms: a folder for the rooms that views are made in; ``None``: temporary folders only.
        keeper: gives what keeps changes; ``None``: they are not kept, for the reason ``why_not``.
        max_bytes: of a tree that is copied because nothing cheaper works here.
        own: absolute paths of veil's own, empty in every view.
        methods: those that may be used, the better ones first; ``None``: all.
        cover: the view may stand at the folder's own path, where that can be had.
    """

    name = "preview"
    place = Place.PLACE
    needed = True
    supersedes: tuple[type, ...] = (Effects, Look)
    grants = Preview

    def __init__(
        self,
        rooms: Path | None,
        keeper: Callable[[], Keeper] | None,
        *,
        why_not: str = "there is no state folder",
        max_bytes: int = 1_000_000_000,
        own: tuple[str, ...] = (),
        methods: Sequence[Method] | None = None,
        cover: bool = True,
    ) -> None:
        self._rooms, self._keeper, self._why_not, self._max_bytes = rooms, keeper, why_not, max_bytes
        self._own = tuple(os.path.realpath(path) for path in own)
        self._methods, self._cover = methods, cover

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        """Only the root folder has no view; what else cannot be had is found out when the run begins."""
        if os.path.realpath(plan.request.command.cwd) == "/":
            return "the root folder cannot be covered by a view of itself; give another cwd"
        return None

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        """Yields the launch in the view.

        Raises:
            Refused: no view can be had (``preview_unavailable``), or it could not be made when the command was to start
                (``preview_broken``); nothing has run then.
        """
        view = self._view(launch.cwd, plan)
        try:
            outcome = yield view.launch(launch)
            reason = view.broken() if outcome.ended == "exited" else None
            if reason is not None:
                raise Refused(
                    f"the view of {view.folder} could not be made, so nothing was run: {reason}",
                    code="preview_broken",
                    reason=reason,
                )
            return self._findings(view, launch.cwd, plan, outcome)
        finally:
            view.close()

    def _view(self, cwd: str, plan: Plan) -> View:
        from veil.host.rooms import Rooms
        from veil.host.views import METHODS, CannotView, open_view

        methods = METHODS if self._methods is None else self._methods
        # Landlock is put on before anything is started, and lets nobody mount
        barred = any(isinstance(wish, Sandbox) and wish.backend == "landlock" for wish in plan.request.wishes)
        try:
            return open_view(
                cwd,
                Rooms(self._rooms),
                most_bytes=self._max_bytes,
                methods=methods,
                own=self._own,
                cover=self._cover and not barred,
            )
        except CannotView as error:
            raise Refused(
                f"{cwd} cannot be previewed here: {error}; allow user namespaces, or raise VEIL_MAX_PREVIEW_BYTES",
                code="preview_unavailable",
                reasons=error.reasons,
            ) from error

    def _findings(self, view: View, cwd: str, plan: Plan, outcome: Outcome) -> Findings:
        from veil.host.telling import told

        # before the difference, which opens what the command closed
        crowded = view.crowded()
        files, wrong = _looked(view, cwd, plan)
        try:
            difference = view.difference()
        except OSError as error:
            raise Refused(
                f"what the command did in the view could not be read: {error.strerror}", code="preview_unreadable"
            ) from error
        changes, more = _changes(view.folder, told(difference, view.folder), difference, plan, self._own)
        notes: dict[str, Any] = {"previewed": True, "preview_method": view.method}
        gaps = [*_not_held(view, plan), *view.gaps, *difference.gaps]
        if not outcome.ok and view.method == "overlay":
            said = outcome.stdout.data + outcome.stderr.data
            gaps += [gap for words, gap in _OTHERWISE.items() if words in said]
        if crowded:
            gaps.append(
                "the disk that the view is written to is full: the command may have met that, not in the folder"
            )
        if outcome.survivors != "none":
            gaps.append("processes of the command may still be alive, and what they write is lost")
        if len(gaps) > MAX_GAPS:
            gaps = [*gaps[:MAX_GAPS], f"and {len(gaps) - MAX_GAPS} more"]
        if gaps:
            notes["preview_gaps"] = gaps
        if more:
            notes["preview_more"] = more
        if runs := _git_runs(view, difference, plan):
            notes["preview_git"] = runs
        if wrong:
            notes["look_gaps"] = wrong
        if difference.touched:
            token, why = self._keep(view, difference, plan)
            if token is not None:
                notes["preview_kept"] = token
            else:
                notes["preview_not_kept"] = why
        return Findings(tuple(changes), view.method, files, notes)

    def _keep(self, view: View, difference: Difference, plan: Plan) -> tuple[str | None, str | None]:
        if plan.request.no_store:
            return None, "nothing of the run was to go to disk (no_store)"
        if plan.request.redact:
            return None, "its contents would hold what redact takes away"
        if self._keeper is None:
            return None, self._why_not
        return self._keeper().keep(view.folder, difference, view.opened_ns)


def _looked(view: View, cwd: str, plan: Plan) -> tuple[dict[str, Fact], dict[str, str]]:
    paths = list(dict.fromkeys(path for wish in plan.request.wishes if isinstance(wish, Look) for path in wish.paths))
    try:
        return view.look(paths, cwd)
    except OSError as error:
        return {}, dict.fromkeys(paths, f"the view could not be made again: {error.strerror}")


def _changes(
    real: str, changes: list[Change], difference: Difference, plan: Plan, own: tuple[str, ...]
) -> tuple[list[Change], dict[str, int]]:
    """What is told, as after a run without preview, and how much more there is."""
    from veil.host.telling import in_git

    more = {"git": sum(in_git(each.path) and not each.is_dir for each in difference.touched)}
    if not any(isinstance(wish, Effects) and wish.ignored for wish in plan.request.wishes):
        ignored = _ignored(real, changes, own)
        more["ignored"] = len(ignored)
        changes = [change for change in changes if change.path not in ignored]
    return changes, {name: count for name, count in more.items() if count}


def _git_runs(view: View, difference: Difference, plan: Plan) -> list[str]:
    """What a sandbox tells after a run, of the view that it could not see from where it stands."""
    from veil.host.telling import git_runs

    if not any(isinstance(wish, Sandbox) for wish in plan.request.wishes):
        return []
    return git_runs(difference, view.folder)


def _ignored(real: str, changes: list[Change], own: tuple[str, ...]) -> set[str]:
    """Paths of changes that git ignores."""
    if not changes:
        return set()
    from veil.host import git, pictures
    from veil.host.ignored import ignored_paths
    from veil.host.tree import TreeUnknown

    try:
        tree = pictures.locate(real, own)
        if tree.repository is None:
            return set()
        prefix = os.path.relpath(tree.cwd, tree.root) + "/" if tree.cwd != tree.root else ""
        nested = {folder for folder in _folders(changes, prefix) if os.path.lexists(f"{tree.root}/{folder}/.git")}
        found = ignored_paths(tree, {prefix + change.path: change.kind == "dir" for change in changes}, nested)
    except (git.GitFailed, TreeUnknown):
        return set()  # then all are told, which hides nothing
    return {path[len(prefix) :] for path in found}


def _folders(changes: list[Change], prefix: str) -> set[str]:
    found: set[str] = set()
    for change in changes:
        at = (prefix + change.path).rpartition("/")[0]
        while at and at not in found:
            found.add(at)
            at = at.rpartition("/")[0]
    return found


def _not_held(view: View, plan: Plan) -> list[str]:
    """What a command can do for good although it is only a preview."""
    from veil.host.repository import find
    from veil.host.rooms import lies_below

    confined = next((wish for wish in plan.request.wishes if isinstance(wish, Sandbox)), None)
    gaps = []
    if confined is None:
        gaps.append("what it writes outside of the folder is real (sandbox holds it back)")
    elif confined.writable:
        gaps.append("what it writes in sandbox.writable is real")
    if confined is None or confined.network:
        gaps.append("what it does over the network is real (sandbox with network off holds it back)")
    repository = find(view.folder)
    if repository is not None and not lies_below(repository.git_dir, view.folder):
        gaps.append(f"the repository is not in the folder ({repository.git_dir}): what git writes there is real")
    return gaps
