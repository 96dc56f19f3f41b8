"""``expect={"json": {"name": "x"}}``: stdout is JSON that holds at least this."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, ClassVar

from veil.checks.wording import clipped, gap, shown
from veil.model.errors import BadInput
from veil.model.outcome import Observation
from veil.model.verdict import Judgement, Status

#: How deep an expected value may be nested.
MAX_DEPTH = 100
#: Digits of an integer; Python itself refuses to turn longer ones into text.
MAX_DIGITS = 4000

_NAME = re.compile(r"[A-Za-z_$][\w$]*")


class _Object(dict[str, Any]):
    """A JSON object that remembers which keys were written more than once."""

    twice: frozenset[str] = frozenset()


class _NotJson(ValueError):
    pass


class JsonSubset:
    """stdout, parsed as one JSON document, holds the expected value as a deep subset.

    Objects: each expected key is there with a matching value; further keys do not matter. Arrays: same length and
    order, each element a subset of its partner. Numbers are equal by value (``1`` is ``1.0``, as in JSON, and integers
    are exact at any size); ``true`` is not ``1``, ``"1"`` is not ``1``, ``null`` is not a missing key. A key written
    twice in one object has no one value: expecting it fails. ``NaN`` and
    ``Infinity`` are not JSON. A byte order mark is passed over.
    """

    name: ClassVar[str] = "json"

    def parse(self, value: Any) -> Any:
        """Any JSON value, ``None`` (``null``) included; tuples become lists. Raises ``BadInput``."""
        return _canonical(value, 0)

    def paths(self, expected: Any) -> tuple[str, ...]:
        """None."""
        return ()

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """A truncated stdout cannot be parsed and is ``inconclusive``."""
        stream = seen.outcome.stdout
        if stream.truncated:
            return self._judged("inconclusive", expected, None, gap("stdout", stream))
        try:
            actual = _parsed(stream.data)
        except (RecursionError, MemoryError):
            return self._judged("inconclusive", expected, None, "stdout is JSON nested too deep to be read")
        except _NotJson as trouble:
            excerpt = clipped(stream.data[:1000].decode("utf-8", "replace"))
            return self._judged("failed", expected, excerpt, f"stdout is not JSON: {trouble}")
        wrong = _difference(expected, actual, "$")
        if wrong is None:
            return self._judged("passed", expected, None, "stdout holds the expected JSON")
        where, got, why = wrong
        return self._judged("failed", expected, {"path": clipped(where), "value": got}, f"at {clipped(where)}: {why}")

    def _judged(self, status: Status, expected: Any, got: Any, message: str) -> Judgement:
        return Judgement(self.name, status, expected, got, message)


def _canonical(value: Any, depth: int) -> Any:
    """A copy made of plain JSON types."""
    if depth > MAX_DEPTH:
        raise BadInput("expect.json", type(value).__name__, f"a value nested at most {MAX_DEPTH} deep")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int) and abs(value) < 10**MAX_DIGITS:
        return int(value)
    if isinstance(value, float) and value - value == 0:
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_canonical(item, depth + 1) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _canonical(item, depth + 1) for key, item in value.items()}
    got = f"an integer of more than {MAX_DIGITS} digits" if isinstance(value, int) else value
    raise BadInput("expect.json", got, "a JSON value (object with text keys, array, text, finite number, bool or null)")


def _parsed(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as trouble:
        raise _NotJson(f"byte {trouble.start} is not UTF-8") from None
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise _NotJson("it is empty")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)
    except json.JSONDecodeError as trouble:
        around = text[max(0, trouble.pos - 20) : trouble.pos + 20]
        where = f"line {trouble.lineno} column {trouble.colno} (character {trouble.pos})"
        raise _NotJson(f"{trouble.msg} at {where}, near {shown(around)}") from None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    found = _Object(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        found.twice = frozenset(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return found


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= MAX_DIGITS else Decimal(digits)


def _constant(name: str) -> Any:
    raise _NotJson(f"{name} is not a JSON value")


def _difference(expected: Any, actual: Any, where: str) -> tuple[str, Any, str] | None:
    """Where the first difference is, an excerpt of what is there, and the words; ``None`` when there is none."""
    if isinstance(expected, dict):
        return _object_difference(expected, actual, where)
    if isinstance(expected, list):
        if not isinstance(actual, list):
            return where, _excerpt(actual), f"expected an array, got {_excerpt(actual)}"
        if len(actual) != len(expected):
            got = f"an array of {len(actual)}"
            return where, got, f"expected an array of {len(expected)}, got {got}"
        for index, (wanted, item) in enumerate(zip(expected, actual, strict=True)):
            wrong = _difference(wanted, item, f"{where}[{index}]")
            if wrong is not None:
                return wrong
        return None
    if _same(expected, actual):
        return None
    return where, _excerpt(actual), f"expected {_excerpt(expected)}, got {_excerpt(actual)}"


def _object_difference(expected: dict[str, Any], actual: Any, where: str) -> tuple[str, Any, str] | None:
    if not isinstance(actual, _Object):
        return where, _excerpt(actual), f"expected an object, got {_excerpt(actual)}"
    for key, wanted in expected.items():
        place = f"{where}.{key}" if _NAME.fullmatch(key) else f"{where}[{json.dumps(key)}]"
        if key not in actual:
            return place, None, f"no such key; keys: {clipped(', '.join(sorted(actual)[:20])) or 'none'}"
        if key in actual.twice:
            return place, None, "the key is written more than once"
        wrong = _difference(wanted, actual[key], place)
        if wrong is not None:
            return wrong
    return None


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool) or expected is None or actual is None:
        return expected is actual
    if isinstance(expected, str) or isinstance(actual, str):
        return isinstance(expected, str) and isinstance(actual, str) and expected == actual
    return isinstance(actual, (int, float, Decimal)) and bool(expected == actual)


def _excerpt(value: Any) -> str:
    """A value as JSON on one line; large ones by their size."""
    if isinstance(value, dict):
        return f"an object with {len(value)} keys"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, str):
        return json.dumps(value[:120]) + ("..." if len(value) > 120 else "")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return clipped(str(value), 80)
