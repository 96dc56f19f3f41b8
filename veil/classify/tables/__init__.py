"""What the usual tools do, as data: one row per tool, families in modules of their own. ``row`` finds one by name.

A row's keywords: ``category`` and ``why`` without options; ``read``/``mutating``/``unknown``/``complex``/``network``/
``destructive``: options that lead there (``-o=`` takes a value, ``-o=>`` writes the file that the value names);
``only``: an option that is not listed is unknown; ``operands``: what happens to them (``write``, ``delete``, ...),
with ``skip`` and ``last``; ``most`` and ``extra``: more operands than that are of that category; ``style``:
``single`` for ``-long`` options; ``judge``: the function that decides instead; ``subs``: rows by sub-command;
``default``: for others; ``bare``: without one; ``probe``: a sole argument that only asks for a version or help, which
is of the category ``asks``; ``address``: the category of operands like ``scheme://...``; ``listed``: ``@file`` holds
options; ``reversible`` and ``lost``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

Row = Mapping[str, Any]


@lru_cache(maxsize=1)
def every() -> Mapping[str, Row]:
    """All rows by the tool's name."""
    from veil.classify.tables import (
        archives,
        containers,
        databases,
        files,
        git,
        languages,
        network,
        packages,
        system,
        text,
        wrappers,
    )

    rows: dict[str, Row] = {}
    for family in (files, text, system, archives, network, languages, packages, containers, databases, git, wrappers):
        for names, found in family.ROWS.items():
            rows.update(dict.fromkeys(names.split(), found))
    return rows
