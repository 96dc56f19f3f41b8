"""``expect={"stderr_matches": ...}``: the pattern is found in stderr."""

from __future__ import annotations

from typing import ClassVar, Literal

from veil.checks.streams import StreamMatches


class StderrMatches(StreamMatches):
    """See ``StreamMatches``."""

    name: ClassVar[str] = "stderr_matches"
    stream: ClassVar[Literal["stdout", "stderr"]] = "stderr"
