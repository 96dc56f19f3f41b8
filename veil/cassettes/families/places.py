"""Where things are: known folders, and the random names that temporary files get."""

from __future__ import annotations

import re

from veil.cassettes.normalise import Context, Normaliser
from veil.cassettes.roots import Roots

#: Random names are only looked for below folders for temporary files: ``tmp_results`` elsewhere is somebody's own name.
_TEMPORARY = re.compile(
    rb"(?P<folder>(?:<tmp>|<home>|/tmp|/var/tmp|/dev/shm|/var/folders/[^/\s]+/[^/\s]+/T)/(?:[^\s/'\":]{1,255}/){0,6}?)"
    rb"(?P<name>tmp[a-z0-9_]{8}(?![A-Za-z0-9_])|tmp\.[A-Za-z0-9]{6,12}(?![A-Za-z0-9])"
    rb"|pytest-of-[^/\s'\"]+/pytest-[0-9]+|pip-[a-z-]+-[a-z0-9_]{8}(?![a-z0-9_])|npm-[0-9a-f]{8}(?![0-9a-f]))"
)


def _paths(text: bytes, context: Context) -> bytes:
    return Roots.of(context.roots).hide(text)


def _temporary(text: bytes, context: Context) -> bytes:
    return _TEMPORARY.sub(lambda found: found["folder"] + context.token("temp", found["name"]), text)


FAMILY = (
    Normaliser(
        "paths", 1, "known folders (workspace, home, temporary) become <root>, <home>, <tmp>", False, (), _paths
    ),
    Normaliser("temp_names", 1, "random names below folders for temporary files", False, ("temp",), _temporary),
)
