"""On which line of a TOML file a key stands: the parser tells it for faults of its own only."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_STRINGS = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#|[\[\]{}]')

Path = tuple[str | int, ...]


def lines_of(text: str) -> Mapping[Path, int]:
    """Line (from 1) of every table and key, by its path; tables of an array have their number in it.

    Keys inside inline tables are not told apart from the key that holds them.
    """
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    open_string, depth = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not open_string and depth == 0:
            header, key = _HEADER.match(line), _KEY.match(line)
            if header is not None:
                table = _entered(_parts(header[2]), header[1] == "[[", counts)
                found.setdefault(table, number)
                continue
            if key is not None:
                found.setdefault((*table, *_parts(key[1])), number)
        open_string, depth = _after(line, open_string, depth)
    return found


def _entered(parts: tuple[str, ...], many: bool, counts: dict[Path, int]) -> Path:
    path: Path = ()
    for part in parts[:-1]:
        path = (*path, part)
        if path in counts:
            path = (*path, counts[path])
    path = (*path, parts[-1])
    if many:
        counts[path] = counts.get(path, -1) + 1
        path = (*path, counts[path])
    return path


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.\s]+', dotted))


def _after(line: str, open_string: str, depth: int) -> tuple[str, int]:
    """Whether a string of several lines, or an array, is still open behind this line."""
    at = 0
    while at < len(line):
        if open_string:
            end = line.find(open_string, at)
            if end < 0:
                return open_string, depth
            at, open_string = end + 3, ""
            continue
        match = _STRINGS.search(line, at)
        if match is None or match[0] == "#":
            break
        at = match.end()
        if match[0] in ('"""', "'''"):
            open_string = match[0]
        elif match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth = max(0, depth - 1)
    return open_string, depth


def nearest_line(lines: Mapping[Path, int], path: Path) -> int:
    """The line of a path, or of what holds it; 1 where nothing is known."""
    while path not in lines and path:
        path = path[:-1]
    return lines.get(path, 1)
