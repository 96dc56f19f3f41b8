"""``expect={"stdout_contains": ...}``: the text stands in stdout."""

from __future__ import annotations

from typing import ClassVar, Literal

from veil.checks.streams import StreamContains


class StdoutContains(StreamContains):
    """See ``StreamContains``."""

    name: ClassVar[str] = "stdout_contains"
    stream: ClassVar[Literal["stdout", "stderr"]] = "stdout"
