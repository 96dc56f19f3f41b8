"""``expect={"stdout_empty": ...}``: nothing, or something, was written to stdout."""

from __future__ import annotations

from typing import ClassVar, Literal

from veil.checks.streams import StreamEmpty


class StdoutEmpty(StreamEmpty):
    """See ``StreamEmpty``."""

    name: ClassVar[str] = "stdout_empty"
    stream: ClassVar[Literal["stdout", "stderr"]] = "stdout"
