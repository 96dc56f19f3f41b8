"""What a check is. One check, one file; ``veil.builtin`` names them."""

from __future__ import annotations

from typing import Any, Protocol

from veil.model.outcome import Observation
from veil.model.verdict import Judgement


class Check(Protocol):
    """One post-condition. Pure: it judges an observation and looks at nothing else."""

    @property
    def name(self) -> str:
        """Key in the ``expect`` dict."""

    def parse(self, value: Any) -> Any:
        """The expected value, validated, in its JSON-ready canonical form.

        Raises ``BadInput`` naming ``expect.<name>`` (before the command runs).
        """

    def paths(self, expected: Any) -> tuple[str, ...]:
        """Paths that must be looked at when the command has ended (as the caller wrote them)."""

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """The judgement on the full captured streams and findings."""
