"""``[tool.veil]`` of a project's ``pyproject.toml``: found, and parsed only when it can be there."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from veil.model.errors import BadInput, Refused, nearest
from veil.settings.kinds import Setting

#: Every spelling in which TOML can name the table ``tool.veil``; only then is the file worth a parser.
_MAY_NAME_US = rb"""tool["']?\s*(?:\.\s*["']?veil|[\]=])"""


def values_of(project: Path, environ: Mapping[str, str], table: Mapping[str, Setting]) -> dict[str, Any]:
    """The values that the nearest ``pyproject.toml`` sets, by field name of ``table``. Errors as ``Settings.load``."""
    for file in _candidates(os.path.abspath(project), environ.get("HOME")):
        try:
            data = Path(file).read_bytes()
        except OSError as error:
            raise Refused(f"{file} cannot be read: {error}", code="settings_unreadable", file=file) from error
        if b"veil" not in data or not re.search(_MAY_NAME_US, data):
            return {}
        return _from_toml(file, data, table)
    return {}


def _candidates(folder: str, home: str | None) -> Iterator[str]:
    """The nearest ``pyproject.toml``: of the project, else above it, up to the top of a git work tree or the home.

    Above the project only files of the project's own owner count, so that nobody can lay one into a shared
    temporary folder. What is not a plain file (a FIFO would block) is passed over.
    """
    try:
        owner = os.stat(folder).st_uid
    except OSError:
        return
    above = False
    while True:
        file = os.path.join(folder, "pyproject.toml")
        try:
            seen = os.stat(file)
        except OSError:
            pass
        else:
            if stat.S_ISREG(seen.st_mode) and (not above or seen.st_uid == owner):
                yield file
        parent = os.path.dirname(folder)
        if parent == folder or folder == home or os.path.lexists(os.path.join(folder, ".git")):
            return
        folder, above = parent, True


def _from_toml(file: str, data: bytes, table: Mapping[str, Setting]) -> dict[str, Any]:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        tool = tomllib.loads(data.decode("utf-8")).get("tool", {})
    except ValueError as error:  # both a TOML fault and bytes that are not UTF-8
        raise BadInput(file, str(error), "valid TOML in UTF-8") from error
    ours = tool.get("veil", {}) if isinstance(tool, dict) else {}
    if not isinstance(ours, dict):
        raise BadInput(f"tool.veil in {file}", ours, "a table of settings")
    fields = {line.key: name for name, line in table.items()}
    values: dict[str, Any] = {}
    for key, value in ours.items():
        if key == "policy":  # of the governed boundary, which reads it when it is told to
            continue
        where = f"[tool.veil] {key} in {file}"
        name = fields.get(key)
        if name is None:
            raise BadInput(where, value, f"the name of a setting{nearest(key, tuple(fields))}")
        line = table[name]
        if not line.in_project:
            raise BadInput(where, value, f"no such key here: a project may not choose it; set {line.variable}")
        try:
            values[name] = line.kind.from_toml(value)
        except ValueError:
            raise BadInput(where, value, f"{line.kind.range} in TOML's own types") from None
    return values
