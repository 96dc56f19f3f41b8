"""File names for recordings: readable, and never two texts under one name, also where case does not count."""

from __future__ import annotations

import hashlib
import re

SUFFIX = ".veil.txtar"
#: Characters of the readable part; with the hash and the suffix well below the 255 bytes that file systems allow.
LONGEST = 100

_PLAIN = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")
_LIKE_ALTERED = re.compile(r".*-[0-9a-f]{12}")


def file_stem(text: str) -> str:
    """``text`` itself when it is a safe lower-case name, else a slug of it, ``-`` and 12 hex digits of its hash.

    A text that itself ends like an altered name is altered too, so that the two kinds can never meet.
    """
    plain = _PLAIN.fullmatch(text) and ".." not in text and len(text) <= LONGEST
    if plain and not _LIKE_ALTERED.fullmatch(text):
        return text
    slug = re.sub(r"[^a-z0-9_]+", "-", text.lower()[: 4 * LONGEST]).strip("-")[:LONGEST].rstrip("-")
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{slug or 'x'}-{digest}"


def file_name(text: str) -> str:
    """``file_stem`` with the suffix of a cassette."""
    return file_stem(text) + SUFFIX
