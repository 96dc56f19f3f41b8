"""What a governed command gives back when its dispatch has succeeded, whatever its return code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GovernedResult:
    """One completed command. A return code that is not 0 is a completed command too.

    Attributes:
        argv: exactly as requested. cwd: absolute. timeout: seconds that it was given.
        returncode: of the process; 128+n after signal n.
        stdout, stderr: text; bytes that are not UTF-8 were replaced.
        stdout_truncated, stderr_truncated: the text is a prefix. ``cut`` says by which bound: ``boundary`` or ``call``.
        id: of the request, for ``Boundary.completion``. record: of the stored run, for ``veil.detail``.
        effect: what is known of what it changed; ``unknown`` until somebody has looked (``Boundary.verified``).
    """

    argv: tuple[str, ...]
    cwd: str
    timeout: float
    returncode: int
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    id: str
    record: str
    effect: str
    cut: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The tool's output: the fields of the reference, and where the evidence is."""
        return {
            "argv": list(self.argv),
            "returncode": self.returncode,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "stdout_truncated": self.stdout_truncated,
            "stderr_truncated": self.stderr_truncated,
            "id": self.id,
            "record": self.record,
            "effect": self.effect,
            **({"cut": dict(self.cut)} if self.cut else {}),
        }


def narrowed(text: str, boundary: int, call: int | None) -> tuple[str, str | None]:
    """The prefix that both caps allow, and which of them cut it; the call's own only ever takes away more."""
    by = None
    if len(text) > boundary:
        text, by = text[:boundary], "boundary"
    if call is not None and len(text) > call:
        text, by = text[:call], "call"
    return text, by
