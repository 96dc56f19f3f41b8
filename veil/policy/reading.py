"""A policy out of TOML: a file of its own, or ``[tool.veil.policy]`` of a ``pyproject.toml``.

Everything is checked before anything is judged, and an error names the line.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from veil.model.errors import BadInput, nearest
from veil.policy.labels import LEVELS as SENSITIVITIES
from veil.policy.lines import Path, lines_of, nearest_line
from veil.policy.rules import JUDGEMENTS, LEVELS, STRENGTH, Example, Policy, Rule

_KEYS = ("level", "judgements", "allowed_paths", "rule", "example", "clearance", "label")
_RULE_KEYS = ("id", "effect", "exact", "prefix", "executable", "options", "cwd", "network", "reason")
_CONDITIONS = ("exact", "prefix", "executable", "options", "cwd", "network")
_ANSWERS = tuple(STRENGTH)


class BadPolicy(BadInput):
    """A policy that cannot mean anything. ``facts["line"]`` is the line, ``facts["file"]`` the file."""

    code = "bad_policy"


def read(text: str, name: str = "the policy") -> Policy:
    """The policy that a text holds.

    Args:
        text: of a policy file, or of a ``pyproject.toml`` with a table ``tool.veil.policy``.
        name: of the file, for errors.

    Raises:
        BadPolicy: no TOML, no policy in it, a key that means nothing, a value that cannot mean anything.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        data = tomllib.loads(text)
    except ValueError as error:
        line = int(found[1]) if (found := _line_in(str(error))) else 1
        raise BadPolicy(name, str(error), "valid TOML", line=line, file=name) from error
    tool = data.get("tool")
    root: Path = ()
    if isinstance(tool, dict) or name.rpartition("/")[2] == "pyproject.toml":
        veil = tool.get("veil") if isinstance(tool, dict) else None
        if not isinstance(veil, dict) or not isinstance(veil.get("policy"), dict):
            raise BadPolicy(f"tool.veil.policy in {name}", None, "a table", line=1, file=name, missing=True)
        data, root = veil["policy"], ("tool", "veil", "policy")
    digest = "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return _Reader(data, _At(name, lines_of(text), root), digest).policy()


def _line_in(message: str) -> Any:
    import re

    return re.search(r"line (\d+)", message)


@dataclass(frozen=True)
class _At:
    """A place in the file."""

    file: str
    lines: Mapping[Path, int]
    path: Path

    def down(self, *parts: str | int) -> _At:
        return _At(self.file, self.lines, (*self.path, *parts))

    @property
    def line(self) -> int:
        return nearest_line(self.lines, self.path)

    def wrong(self, got: object, expected: str) -> BadPolicy:
        dotted = ".".join(str(part) for part in self.path) or "the policy"
        return BadPolicy(f"{self.file}:{self.line}: {dotted}", got, expected, line=self.line, file=self.file)


class _Reader:
    def __init__(self, data: Mapping[str, Any], at: _At, digest: str) -> None:
        self.data = data
        self.at = at
        self.digest = digest

    def policy(self) -> Policy:
        _known(self.data, _KEYS, self.at)
        level = _one_of(self.data.get("level", "allowlist"), LEVELS, self.at.down("level"))
        clearances = self._table("clearance")
        for name, value in clearances.items():
            _one_of(value, SENSITIVITIES, self.at.down("clearance", name))
        judgements = self._table("judgements")
        for name, value in judgements.items():
            if name not in JUDGEMENTS:
                raise self.at.down("judgements", name).wrong(name, f"one of {', '.join(JUDGEMENTS)}")
            _one_of(value, _ANSWERS, self.at.down("judgements", name))
        return Policy(
            level=level,
            rules=self._rules(),
            judgements=judgements,
            allowed_paths=self._paths(),
            clearances={name: value for name, value in clearances.items() if name != "default"},
            clearance=clearances.get("default", "internal"),
            labels=self._labels(),
            examples=self._examples(),
            digest=self.digest,
        )

    def _table(self, name: str) -> dict[str, Any]:
        value = self.data.get(name, {})
        if not isinstance(value, dict):
            raise self.at.down(name).wrong(value, "a table")
        return value

    def _tables(self, name: str) -> list[tuple[dict[str, Any], _At]]:
        value = self.data.get(name, [])
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            raise self.at.down(name).wrong(value, f"tables, each headed [[{name}]]")
        return [(row, self.at.down(name, number)) for number, row in enumerate(value)]

    def _paths(self) -> tuple[str, ...]:
        at = self.at.down("allowed_paths")
        paths = _words(self.data.get("allowed_paths", []), at, empty=True)
        for path in paths:
            if not path.startswith("/"):
                raise at.wrong(path, "absolute paths")
        return paths

    def _rules(self) -> tuple[Rule, ...]:
        rules: dict[str, Rule] = {}
        for row, at in self._tables("rule"):
            rule = _rule(row, at)
            if rule.id in rules and "id" not in row:
                rule = replace(rule, id=f"{rule.id} (line {at.line})")
            if rule.id in rules:
                raise at.down("id").wrong(rule.id, "an id that no other rule has")
            rules[rule.id] = rule
        return tuple(rules.values())

    def _labels(self) -> tuple[tuple[str, str], ...]:
        found = []
        for row, at in self._tables("label"):
            _known(row, ("path", "sensitivity"), at)
            path = row.get("path")
            if not isinstance(path, str) or not path or path.startswith("/"):
                raise at.down("path").wrong(path, "a pattern for paths below the workspace")
            found.append((path, _one_of(row.get("sensitivity"), SENSITIVITIES, at.down("sensitivity"))))
        return tuple(found)

    def _examples(self) -> tuple[Example, ...]:
        found = []
        for row, at in self._tables("example"):
            _known(row, ("argv", "expect", "cwd"), at)
            argv = _words(row.get("argv"), at.down("argv"))
            expect = _one_of(row.get("expect"), _ANSWERS, at.down("expect"))
            found.append(Example(argv, expect, _cwd(row.get("cwd", "."), at.down("cwd")), at.line))  # type: ignore[arg-type]
        return tuple(found)


def _rule(row: Mapping[str, Any], at: _At) -> Rule:
    _known(row, _RULE_KEYS, at)
    effect = _one_of(row.get("effect"), _ANSWERS, at.down("effect"))
    if not any(key in row for key in _CONDITIONS):
        raise at.wrong(dict(row), f"at least one of {', '.join(_CONDITIONS)}")
    if "exact" in row and "prefix" in row:
        raise at.down("prefix").wrong(row["prefix"], "either exact or prefix")
    words = {key: _words(row[key], at.down(key)) for key in ("exact", "prefix") if key in row}
    options = _words(row["options"], at.down("options")) if "options" in row else ()
    for option in options:
        if not option.startswith("-") or option in ("-", "--"):
            raise at.down("options").wrong(option, "options that begin with a dash")
    network = row.get("network")
    if network is not None and not isinstance(network, bool):
        raise at.down("network").wrong(network, "true or false")
    begins = next(iter(words.values()), ())
    return Rule(
        id=_text(row.get("id", f"{effect}:{shlex.join(begins)}" if begins else f"rule-{at.line}"), at.down("id")),
        effect=effect,  # type: ignore[arg-type]  # it is one of the three
        exact=words.get("exact"),
        prefix=words.get("prefix"),
        executable=_executable(row["executable"], at.down("executable")) if "executable" in row else None,
        options=options,
        cwd=_cwd(row["cwd"], at.down("cwd")) if "cwd" in row else None,
        network=network,
        reason=_text(row["reason"], at.down("reason")) if "reason" in row else "",
    )


def _known(row: Mapping[str, Any], keys: tuple[str, ...], at: _At) -> None:
    for key in row:
        if key not in keys:
            raise at.down(key).wrong(key, f"one of {', '.join(keys)}{nearest(key, keys)}")


def _one_of(value: object, allowed: tuple[str, ...], at: _At) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise at.wrong(value, f"one of {', '.join(allowed)}")
    return value


def _text(value: object, at: _At) -> str:
    if not isinstance(value, str) or not value:
        raise at.wrong(value, "a text that is not empty")
    return value


def _words(value: object, at: _At, *, empty: bool = False) -> tuple[str, ...]:
    if not isinstance(value, list) or not (value or empty) or not all(isinstance(word, str) for word in value):
        raise at.wrong(value, "a list of texts" + ("" if empty else " that is not empty"))
    if any("\0" in word for word in value) or (value and not value[0].strip() and not empty):
        raise at.wrong(value, "words without NUL, the first of them not blank")
    return tuple(value)


def _executable(value: object, at: _At) -> str:
    text = _text(value, at)
    digest = text[7:] if text.startswith("sha256:") else None
    if digest is None and not text.startswith("/"):
        raise at.wrong(text, "an absolute path, or sha256: and the hash of the file")
    if digest is not None and (len(digest) != 64 or set(digest) - set("0123456789abcdef")):
        raise at.wrong(text, "sha256: and 64 hexadecimal digits")
    return text


def _cwd(value: object, at: _At) -> str:
    text = _text(value, at).strip("/") or "."
    if text.startswith("~") or ".." in text.split("/") or (isinstance(value, str) and value.startswith("/")):
        raise at.wrong(value, "a folder below the workspace, without ..")
    return text
