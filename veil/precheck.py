"""The Python door to the pre-check."""

from __future__ import annotations

from collections.abc import Sequence

from veil.classify import Assessment, Effect, Segment, assess
from veil.model.errors import BadInput

__all__ = ["Assessment", "Effect", "Segment", "plan"]


def plan(command: str | Sequence[str]) -> Assessment:
    """Tell what a command may do, from its text alone: nothing is run, opened or looked up.

    It knows programs by name and errs on the bad side; what it cannot know is in ``docs/plan.md``. It is advice, and no
    protection: that is what a sandbox is for.

    Args:
        command: as for ``veil.run``: a shell text, read as bash reads it, or an argv that no shell touches.

    Returns:
        ``category`` (read-only, mutating, unknown, complex, network or destructive: the worst that is in it),
        ``reversible``, the ``effects`` on files that are named literally, a segment with its span and reason for each
        command, redirection and assignment in it, and a ``warning`` when something would be lost.

    Raises:
        BadInput: a blank text, or no command at all.
        Refused: tree-sitter or its grammar of bash is not installed (``parser_missing``).
    """
    if not isinstance(command, str):
        from veil.asking.command import argv_of  # brings settings and checks along, which no text needs

        return assess(argv_of(command))
    if not command.strip():
        raise BadInput("command", command, "a shell text that is not blank, or an argv")
    return assess(command)
