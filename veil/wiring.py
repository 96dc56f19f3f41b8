"""Where the parts are gathered and bound to one project: the only room that meets pluggy and reads settings."""

from __future__ import annotations

import builtins
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veil import builtin, hookspecs
from veil.asking import build
from veil.checks.base import Check
from veil.executors.live import Live
from veil.host.capture import Filter
from veil.jobs import Beside, Job, Jobs
from veil.kit import Kit, Redaction
from veil.layers.base import Layer
from veil.layers.effects import EffectsLayer
from veil.model.command import Request
from veil.model.errors import BadInput, Refused
from veil.secrets.redactor import SecretSet
from veil.settings import Settings
from veil.store.base import Store
from veil.store.disk import DiskStore
from veil.store.live import Control, LiveLog
from veil.store.memory import MemoryStore
from veil.store.where import project_directory, project_root, state_directory


@dataclass(frozen=True)
class Session:
    """One project under one set of ``VEIL_*`` variables.

    Attributes:
        project: root folder of the project.
        state: veil's own folder; ``None`` when there is none, and then ``why`` says so.
        folder: where the records of this project lie.
        live, control: what background runs tell other processes; ``None`` when nothing goes to disk.
    """

    project: Path
    settings: Settings
    state: Path | None
    folder: Path | None
    why: str | None
    kit: Kit
    mark: Callable[[str], Beside]
    live: LiveLog | None = None
    control: Control | None = None

    def place(self, id: str) -> str:
        """Where the record of this id lies: ids are unique there, and only there."""
        return str(self.folder) if id.startswith("cmd") else f"memory {builtins.id(self.kit.memory)}"

    def job(self, id: str) -> Job | None:
        """The background run of this id that this process owns."""
        return jobs.get(id, self.place(id))

    def request(self, command: str | Sequence[str], options: Mapping[str, Any], *, background: bool = False) -> Request:
        """One request from keywords, under this project's settings."""
        return build(command, options, self.settings, self.kit.checks, background=background)


class _Redaction:
    """The secrets of one run, in the shape that the pipeline wants."""

    def __init__(self, secrets: SecretSet) -> None:
        self._secrets = secrets

    def filter(self) -> Filter:
        return self._secrets.redactor()

    def text(self, text: str) -> str:
        return self._secrets.redact_text(text)


def _redaction(environment: Mapping[str, str], extra: Sequence[str]) -> Redaction:
    return _Redaction(SecretSet.of(environment, extra, argument="secrets"))


#: Background runs that this process owns.
jobs = Jobs()
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it, and is not here


os.register_at_fork(after_in_child=_after_fork)
_sessions: dict[tuple[str, tuple[tuple[str, str], ...]], Session] = {}
_started_in: dict[str, str] = {}
_OTHERS = ("HOME", "TMPDIR", "XDG_STATE_HOME")


def session(environment: Mapping[str, str], project: str | os.PathLike[str] | None = None) -> Session:
    """The session of a project (default: where the process was when it first used veil), made once.

    Raises ``BadInput`` for a setting that cannot mean anything.
    """
    said = tuple((k, v) for k, v in environment.items() if k.startswith("VEIL_") or k in _OTHERS)
    if project is None:
        root = _started_in.get("root") or _started_in.setdefault("root", str(project_root(_here())))
    else:
        root = str(project_root(_folder(project)))
    found = _sessions.get((root, said))
    if found is not None:
        return found
    with _lock:
        found = _sessions.get((root, said))
        if found is None:
            if len(_sessions) >= 16:  # a program that keeps changing its variables must not keep every store open
                oldest = _sessions.pop(next(iter(_sessions)))
                oldest.kit.store.close()
            found = _sessions[root, said] = _make(Path(root), environment)
        return found


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise BadInput("project", None, f"a folder, since this process's own is gone ({error.strerror})") from None


def _folder(project: object) -> Path:
    try:
        name = os.fsdecode(project)  # type: ignore[arg-type]  # the TypeError is the check
    except TypeError:
        raise BadInput("project", project, "a path") from None
    if not name:
        raise BadInput("project", project, "a path that is not empty")
    try:
        folder = Path(os.path.abspath(name))
    except OSError:  # it is relative
        raise BadInput("project", project, "an absolute path, since this process's own folder is gone") from None
    if "\0" in str(folder) or not folder.is_dir():
        raise BadInput("project", project, "a folder that exists")
    return folder


def _make(root: Path, environment: Mapping[str, str]) -> Session:
    settings = Settings.load(project=root, environ=environment)
    place = state_directory(environment)
    limits = {
        "max_records": settings.max_records,
        "max_bytes": settings.max_store_bytes,
        "ttl_seconds": settings.record_ttl,
    }
    memory = MemoryStore(**limits)  # type: ignore[arg-type]  # one dict for both stores
    store: Store
    if place.path is None:
        folder = None
        store = MemoryStore(**limits, why=place.why)  # type: ignore[arg-type]
    else:
        folder = project_directory(place.path, root)
        store = DiskStore(folder, **limits, memory=memory)  # type: ignore[arg-type]
    manager = plugins()
    layers: dict[type, Layer] = {}
    for pairs in reversed(manager.hook.veil_layers(settings=settings, state=place.path)):
        for wish, layer in pairs:
            if wish in layers:
                raise Refused(f"two layers grant {wish.__name__}", code="plugin_conflict", wish=wish.__name__)
            layers[wish] = layer
    kit = Kit(
        executor=Live(),
        layers=tuple(sorted(layers.values(), key=lambda layer: layer.place)),
        wishes=layers,
        checks=checks(),
        store=store,
        memory=memory,
        secrets=_redaction,
        max_background=settings.max_background,
    )
    effects = next(layer for layer in layers.values() if isinstance(layer, EffectsLayer))
    shared = (store.live, store.control) if isinstance(store, DiskStore) else (None, None)
    return Session(root, settings, place.path, folder, place.why, kit, effects.mark_job, *shared)


def own_process() -> None:
    """Say that this process is veil's own (the command line): orphans of its runs come to it and are ended with them.

    Never to be called in a program that starts processes of its own.
    """
    from veil.host import children, prctl

    children.PlainChild.adopting = prctl.become_subreaper()


def end_adopted() -> int:
    """End everything below a process of veil's own, after a run that broke; returns how many could not be ended."""
    from veil.host import adopted

    return adopted.end_all()


def checks() -> Mapping[str, Check]:
    """Every post-condition there is, by name."""
    found: dict[str, Check] = {}
    for group in reversed(plugins().hook.veil_checks()):
        for check in group:
            if check.name in found:
                raise Refused(f"two checks are called {check.name}", code="plugin_conflict", check=check.name)
            found[check.name] = check
    return found


_manager: Any = None


def plugins() -> Any:
    """The plugin manager, with veil's own parts and those of installed distributions (entry point group ``veil``)."""
    global _manager
    if _manager is None:
        import pluggy

        manager = pluggy.PluginManager("veil")
        manager.add_hookspecs(hookspecs)
        manager.register(builtin, "builtin")
        manager.load_setuptools_entrypoints("veil")
        _manager = manager
    return _manager
