"""The names of records: ``cmdN`` on the disk, ``memN`` in one process. Judged before anything is looked up."""

from __future__ import annotations

import re

from veil.model.errors import BadInput

#: No leading zero, so one record has one name; at most 18 digits, so that every number fits SQLite's integers.
_GRAMMAR = re.compile(r"(cmd|mem)([1-9][0-9]{0,17})")

EXPECTED = "a record id such as 'cmd12' or 'mem3'"


def parse(id: object) -> tuple[str, int]:
    """``("cmd", 12)`` for ``"cmd12"``. Only the exact spelling counts: no blanks, prefixes, paths or other digits.

    Raises:
        BadInput: naming ``id``, for everything else.
    """
    found = _GRAMMAR.fullmatch(id) if isinstance(id, str) else None
    if found is None:
        raise BadInput("id", id, EXPECTED)
    return found[1], int(found[2])
