"""Whether recordings are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from veil import VeilError
from veil.cli.human import name_of
from veil.cli.screen import Line
from veil.cli.shown import read
from veil.taping import SUFFIX, encode


def check(paths: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each recording: ``file``, ``ok``, and ``steps`` or what is wrong."""
    return [_checked(file) for path in paths for file in _files(path)]


def _files(path: str) -> Iterator[str]:
    """A folder's recordings in order; anything else is taken for a recording itself."""
    if not os.path.isdir(path):
        yield path
        return
    for folder, names, files in os.walk(path):
        names.sort()
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(SUFFIX))


def _checked(file: str) -> dict[str, Any]:
    try:
        tape = read(file)
    except VeilError as error:
        return {"file": file, "ok": False, "error": error.code, "message": str(error)}
    row: dict[str, Any] = {"file": file, "ok": True, "steps": len(tape.steps)}
    if encode(tape) != Path(file).read_bytes():
        row["note"] = "it is whole, but not written as veil writes it: recording again will change its text"
    return row


def lines(rows: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """Those that are not whole, and how many are."""
    for row in rows:
        if not row["ok"]:
            yield "bad", row["message"]
        elif "note" in row:
            yield "warn", f"{name_of(row['file'])}: {row['note']}"
    good = sum(row["ok"] for row in rows)
    if not rows:
        yield "bad", f"no recording there (*{SUFFIX})"
    else:
        yield ("good" if good == len(rows) else "bad"), f"{good} of {len(rows)} recordings are whole"
