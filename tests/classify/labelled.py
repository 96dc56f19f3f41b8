"""Reads the labelled corpus: commands with the category that is right (or, of hostile ones, the least that is)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from veil.classify import CATEGORIES

CORPUS = Path(__file__).with_name("corpus")
RANK = {category: rank for rank, category in enumerate(CATEGORIES)}
_NOTATION = str.maketrans({"␤": "\n", "␍": "\r", "␉": "\t", "␀": "\0"})


def labelled(name: str) -> Iterator[tuple[str, str]]:
    """Category and command of each line of ``corpus/NAME.txt``."""
    category = ""
    for line in (CORPUS / f"{name}.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("[") and line.endswith("]") and line[1:-1] in RANK:
            category = line[1:-1]
        elif line and not line.startswith("## "):
            yield category, line.translate(_NOTATION)


def held_out(command: str) -> bool:
    """Whether a command belongs to the quarter that the tables were not tuned on."""
    return hashlib.sha256(command.encode()).digest()[0] % 4 == 0
