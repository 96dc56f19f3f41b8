"""From the arguments that an agent sent to those of the tool: slips whose meaning is certain are taken, the rest is
answered."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from veil import BadInput, UnknownOption, VeilError
from veil.asking.options import JSON_NAMES
from veil.model.errors import nearest
from veil.stateful import MAX_NAME
from veil.tools.table import Tool
from veil.tools.typed import Schema

#: What agents add to say why they call; it means nothing to a tool.
_IGNORED = ("description",)
#: Below this a ``timeout`` without a unit is taken for seconds by mistake (milliseconds).
_SECONDS_MEANT = 1000
_SWITCHES = {"true": True, "false": False}


def read(tool: Tool, arguments: object) -> dict[str, Any]:
    """Arguments by their names, ``None`` left out.

    Raises ``BadInput`` (``UnknownOption`` for a name that means nothing), naming what exists.
    """
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise BadInput("arguments", arguments, f"an object with {', '.join(tool.arguments) or 'nothing in it'}")
    found: dict[str, Any] = {}
    said: dict[str, str] = {}
    for key, value in arguments.items():
        name = tool.aliases.get(key, key)
        if name not in tool.arguments:
            if key in _IGNORED:
                continue
            raise _unknown(tool, key, value)
        if value is None:
            continue
        if key == "timeout":
            _require_milliseconds(value)
        value = _typed(value, tool.arguments[name])
        _require_usable(name, value)
        if name in found and found[name] != value:
            raise BadInput(key, value, f"the same as {said[name]}, or only one of the two")
        found[name], said[name] = value, key
    for name in tool.input_schema.get("required", ()):
        if name not in found:
            raise BadInput(name, None, f"an argument: {tool.name} needs it")
    return found


def _unknown(tool: Tool, key: object, value: object) -> UnknownOption:
    hint = nearest(key, tuple(tool.arguments)) if isinstance(key, str) else ""
    known = ", ".join(tool.arguments) or "none"
    return UnknownOption(str(key), value, f"an argument of {tool.name}{hint}; these are: {known}")


def _number(value: object) -> float | None:
    """A number, also as text; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _require_milliseconds(value: object) -> None:
    number = _number(value)
    if number is not None and 0 < number < _SECONDS_MEANT:
        raise BadInput(
            "timeout",
            value,
            f"milliseconds, {_SECONDS_MEANT} or more (for {number:g} seconds say timeout_ms: {number * 1000:.0f}; "
            "for less than a second say timeout_ms); nothing was run",
        )


def _require_usable(name: str, value: object) -> None:
    """What the tools hand on to where only Python's own callers come, who are held by types."""
    if name == "session" and not (
        isinstance(value, str) and value.strip() and len(value) <= MAX_NAME and value.isprintable()
    ):
        raise BadInput(name, value, f"a name of 1 to {MAX_NAME} characters that can be printed")
    if name == "limit" and (isinstance(value, bool) or not isinstance(value, int)):
        raise BadInput(name, value, "a whole number of bytes")
    if name == "dir" and isinstance(value, str):
        try:
            os.fsencode(value)
        except UnicodeEncodeError:
            raise BadInput(name, value, "a path that can be encoded (it holds a lone surrogate)") from None


def _kinds(schema: Schema) -> set[str]:
    parts = schema.get("anyOf", [schema])
    return {part["type"] for part in parts if "type" in part}


def _typed(value: Any, schema: Schema) -> Any:
    """A switch, a number or an object that came as text, where text has no meaning of its own."""
    kinds = _kinds(schema)
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return int(value)  # 2.0 is a whole number in JSON
    if not isinstance(value, str) or "string" in kinds:
        return value
    if "boolean" in kinds and value.lower() in _SWITCHES:
        return _SWITCHES[value.lower()]
    if kinds & {"number", "integer"}:
        number = _number(value)
        if number is not None:
            return int(number) if number.is_integer() else number
    if kinds & {"object", "array"} and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value  # refused by name where every value is judged
    return value


def options_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a run in the units of the Python API. Raises ``BadInput`` for milliseconds that cannot mean any."""
    options: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in JSON_NAMES:
            options[name] = value
            continue
        option, factor = JSON_NAMES[name]
        number = _number(value)
        low = 1e-3 if name == "timeout_ms" else 0.0
        if number is None or number < low:
            raise BadInput(name, value, f"milliseconds, {'more than' if low else 'at least'} 0")
        options[option] = number / factor
    return options


_WORDS = {option: name for name, (option, _) in JSON_NAMES.items()}
#: By code: the way out that only Python has, and the one that the tools have.
_WAYS = {
    "background_incompatible": (
        "judge the result of handle.wait()",
        "follow the run with sh_logs and look at it with sh_detail",
    ),
    "too_many_sessions": ("end one with its close()", "end one with sh_kill (session)"),
    "session_broken": ("end this one and begin it anew", "end this one with sh_kill (session) and begin it anew"),
    "other_origin": ("force_origin=True puts it here all the same", "name its own folder in dir"),
}


def in_their_words(error: VeilError) -> dict[str, Any]:
    """The error as the tools show it, with options and ways out called what they are called here."""
    told = error.to_dict()
    head, colon, rest = told["message"].partition(":")
    if colon and any(word in _WORDS for word in head.split(", ")):
        told["message"] = ", ".join(_WORDS.get(word, word) for word in head.split(", ")) + colon + rest
    if told["error"] in _WAYS:
        told["message"] = told["message"].replace(*_WAYS[told["error"]])
    facts = told["facts"]
    if isinstance(facts.get("options"), list):
        facts["options"] = [_WORDS.get(name, name) for name in facts["options"]]
    if facts.get("argument") in _WORDS:
        facts["argument"] = _WORDS[facts["argument"]]
    return told
