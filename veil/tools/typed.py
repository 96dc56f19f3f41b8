"""From the annotations of the Python API to JSON Schema."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import os
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

Schema = dict[str, Any]

#: Plain types and what JSON calls them; a path is given as text.
_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    os.PathLike: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Any: {},
    object: {},
}


def schema_of(annotation: Any, *, reply: bool = False) -> Schema:
    """The schema of one annotation.

    Args:
        reply: of what veil answers, where ``None`` is a value; in what it is asked, ``None`` means "not said" and falls
            away.

    Raises ``TypeError`` for what has no place in JSON.
    """
    if annotation is type(None):
        return {"type": "null"}
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    origin = get_origin(annotation)
    if origin in _PLAIN:
        return dict(_PLAIN[origin])
    if origin in (Union, types.UnionType):
        left_out = (bytes,) if reply else (bytes, type(None))
        return _any_of([schema_of(part, reply=reply) for part in get_args(annotation) if part not in left_out])
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(annotation))}
    if origin in (list, collections.abc.Sequence, tuple):
        inner = get_args(annotation)
        return {"type": "array", "items": schema_of(inner[0], reply=reply)} if inner else {"type": "array"}
    if origin in (dict, collections.abc.Mapping):
        # a value of null says something: it takes a name away from the environment
        value = schema_of(get_args(annotation)[1], reply=True)
        return {"type": "object", "additionalProperties": value} if value else {"type": "object"}
    if dataclasses.is_dataclass(annotation) or is_typeddict(annotation):
        parts = {name: schema_of(kind, reply=reply) for name, kind in hints_of(annotation).items()}
        return {"type": "object", "properties": parts}
    raise TypeError(f"{annotation!r} has no place in JSON")


def _any_of(schemas: list[Schema]) -> Schema:
    """One of several, each once: an empty schema takes all, a number takes every whole number."""
    kept: list[Schema] = []
    for schema in schemas:
        if schema not in kept:
            kept.append(schema)
    if {} in kept:
        return {}
    if {"type": "number"} in kept and {"type": "integer"} in kept:
        kept.remove({"type": "integer"})
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


@functools.cache
def hints_of(described: Any) -> dict[str, Any]:
    """Fields of a TypedDict or dataclass, or parameters of a function, by name."""
    hints = get_type_hints(described)
    if isinstance(described, Callable) and not isinstance(described, type):  # type: ignore[arg-type]
        return {name: hints[name] for name in inspect.signature(described).parameters if name in hints}
    return hints
