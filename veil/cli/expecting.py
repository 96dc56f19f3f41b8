"""``--expect KEY=VALUE`` and ``--sandbox-option KEY=VALUE``: from words to the values that ``veil.run`` takes.

Only text is converted here. What a key means, which keys there are and which values they take is told by the checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from veil import BadInput

_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def number(text: str) -> int | float | str:
    """The number that a text spells, or the text itself: whoever takes it says what it should have been."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _truth(text: str) -> bool | str:
    return _TRUTH.get(text.lower(), text)


def _codes(text: str) -> Any:
    codes = [number(part.strip()) for part in text.split(",")]
    return codes[0] if len(codes) == 1 else codes


def _changed(text: str) -> Any:
    truth = _truth(text)
    if isinstance(truth, bool):
        return truth
    globs = [part for part in text.split(",") if part]
    return globs if len(globs) > 1 else text.strip(",") or text


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput("expect.json", text, f"a JSON value ({error})") from None


_READ: dict[str, Callable[[str], Any]] = {
    "exit": _codes,
    "max_ms": number,
    "changed": _changed,
    "json": _json,
    "stdout_empty": _truth,
    "stderr_empty": _truth,
}
#: Written without a value they mean ``true``.
_BARE = frozenset({"changed", "stdout_empty", "stderr_empty"})
#: Given twice they cannot both be meant.
_ONCE = frozenset({"json", "max_ms", "stdout_empty", "stderr_empty"})


def expectations(words: Iterable[str]) -> dict[str, Any]:
    """The mapping for ``expect``. A key given several times becomes a list.

    Raises ``BadInput`` for a word that is no ``KEY=VALUE``, text that is no JSON, and a key that can stand only once.
    """
    found: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals and key not in _BARE:
            raise BadInput("expect", word, "KEY=VALUE, such as exit=0 or stdout_contains=ready")
        value = _READ.get(key, str)(text) if equals else True
        if key not in found:
            found[key] = value
            continue
        if key in _ONCE or isinstance(value, bool) or isinstance(found[key], bool):
            raise BadInput(f"expect.{key}", text, "one value: it was given twice")
        earlier = found[key] if isinstance(found[key], list) else [found[key]]
        found[key] = [*earlier, *(value if isinstance(value, list) else [value])]
    return found


#: Options of ``sandbox`` that are text; the others are truths and numbers.
_TEXT = ("writable", "deny_read", "unix_sockets", "backend")
_MANY = ("writable", "deny_read", "unix_sockets")


def confined(words: Iterable[str]) -> dict[str, Any]:
    """The mapping for ``sandbox`` from ``KEY=VALUE`` words; a key alone means true, a path given twice is a list.

    Raises ``BadInput`` for a key that is given twice and can stand only once.
    """
    found: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        value: Any = text if key in _TEXT else _truth(text) if equals else True
        if isinstance(value, str) and key not in _TEXT:
            value = number(value)
        if key in _MANY:
            found[key] = [*found.get(key, ()), value]
        elif key in found:
            raise BadInput(f"sandbox.{key}", text, "one value: it was given twice")
        else:
            found[key] = value
    return found
