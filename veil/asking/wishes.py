"""The options that ask for a layer of safety: ``sandbox``, ``trace``, ``preview``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from veil.model.command import Preview, Sandbox, Trace
from veil.model.errors import BadInput, nearest

_OPTIONS = frozenset({"sandbox", "trace", "preview"})
#: The keys of ``sandbox`` and how a value of each is read.
_KEYS = tuple(field.name for field in fields(Sandbox))
_FLAGS = ("network", "protect_secrets", "protect_git")
_PATHS = ("writable", "deny_read", "unix_sockets")
_LIMITS = ("max_processes", "max_memory", "max_file_size", "max_disk")


def safety(said: Mapping[str, Any]) -> list[object]:
    """The wishes, in no order. Raises ``BadInput`` naming the option."""
    wishes: list[object] = []
    if not _OPTIONS.intersection(said):
        return wishes
    confined = sandbox(said.get("sandbox", False))
    if confined is not None:
        wishes.append(confined)
    for name, wish in (("trace", Trace()), ("preview", Preview())):
        value = said.get(name, False)
        if not isinstance(value, bool):
            raise BadInput(name, value, "True or False")
        if value:
            wishes.append(wish)
    if Preview() in wishes and said.get("left_running") == "keep":
        raise BadInput("left_running", "keep", "'kill' with preview (what is left would go on in a view that is gone)")
    return wishes


def secrets_protected(wish: object) -> bool:
    """Whether the wish keeps credentials from the command; those in its environment go as well then."""
    return isinstance(wish, Sandbox) and wish.protect_secrets


def sandbox(value: object) -> Sandbox | None:
    """``True``, ``False``, a mapping of its options, or a ``Sandbox``. An empty mapping is ``True``.

    Raises:
        BadInput: a key that means nothing (the nearest is named), or a value that cannot mean anything.
    """
    if value is False or value is None:
        return None
    if value is True:
        return Sandbox()
    if isinstance(value, Sandbox):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if not isinstance(value, Mapping):
        raise BadInput("sandbox", value, f"True, False or a mapping of {', '.join(_KEYS)}")
    found: dict[str, Any] = {}
    for name, given in value.items():
        if name not in _KEYS:
            hint = nearest(name, _KEYS) if isinstance(name, str) else ""
            raise BadInput(f"sandbox.{name}", given, f"one of {', '.join(_KEYS)}{hint}")
        if given is not None:
            found[name] = _value(name, given)
    return Sandbox(**found)


def _value(name: str, given: object) -> Any:
    if name in _FLAGS:
        if not isinstance(given, bool):
            raise BadInput(f"sandbox.{name}", given, "True or False")
        return given
    if name in _PATHS:
        return _paths(name, given)
    if name == "backend":
        if not isinstance(given, str) or not given:
            raise BadInput("sandbox.backend", given, "the name of a backend, such as 'bubblewrap' or 'landlock'")
        return given
    if name in _LIMITS:
        if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given < 2**63:
            raise BadInput(f"sandbox.{name}", given, "a whole number of at least 1")
        return given
    # every comparison with NaN is false
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < 10**9:
        raise BadInput(f"sandbox.{name}", given, "seconds greater than 0")
    return float(given)


def _paths(name: str, given: object) -> tuple[str, ...]:
    """Paths as they were written; the backend resolves them against cwd when the run begins."""
    many = (given,) if isinstance(given, (str, bytes, os.PathLike)) else given
    if not isinstance(many, Sequence):
        raise BadInput(f"sandbox.{name}", given, "a path or a list of paths")
    paths = []
    for at, path in enumerate(many):
        try:
            text = os.fsdecode(path)
        except TypeError:
            raise BadInput(f"sandbox.{name}[{at}]", path, "a path") from None
        if not text or "\0" in text:
            raise BadInput(f"sandbox.{name}[{at}]", path, "a path that is neither empty nor holds NUL")
        paths.append(text)
    return tuple(paths)
