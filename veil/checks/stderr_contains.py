"""``expect={"stderr_contains": ...}``: the text stands in stderr."""

from __future__ import annotations

from typing import ClassVar, Literal

from veil.checks.streams import StreamContains


class StderrContains(StreamContains):
    """See ``StreamContains``."""

    name: ClassVar[str] = "stderr_contains"
    stream: ClassVar[Literal["stdout", "stderr"]] = "stderr"
