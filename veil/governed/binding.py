"""Hashes of several values at once, each with its length in front: no two lists of values give the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def digest(*values: str) -> str:
    """``sha256:`` and the hash of these texts. ``("a b",)`` and ``("a", "b")`` differ, as do all other lists."""
    hashed = hashlib.sha256(len(values).to_bytes(8, "big"))
    for value in values:
        data = value.encode("utf-8", "surrogateescape")
        hashed.update(len(data).to_bytes(8, "big"))
        hashed.update(data)
    return "sha256:" + hashed.hexdigest()


def binding(
    argv: Sequence[str], cwd: str, timeout: float, environment: str, executable: Sequence[str], policy: str
) -> str:
    """What an approval is good for: exactly this, and nothing else.

    Args:
        cwd: absolute. timeout: seconds.
        environment: hash of it. executable: what identifies the program. policy: hash of the policy.
    """
    return digest(digest(*argv), cwd, float(timeout).hex(), environment, digest(*executable), policy)
