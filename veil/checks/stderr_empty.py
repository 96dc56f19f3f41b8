"""``expect={"stderr_empty": ...}``: nothing, or something, was written to stderr."""

from __future__ import annotations

from typing import ClassVar, Literal

from veil.checks.streams import StreamEmpty


class StderrEmpty(StreamEmpty):
    """See ``StreamEmpty``."""

    name: ClassVar[str] = "stderr_empty"
    stream: ClassVar[Literal["stdout", "stderr"]] = "stderr"
