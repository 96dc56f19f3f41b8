"""``expect={"stdout_matches": ...}``: the pattern is found in stdout."""

from __future__ import annotations

from typing import ClassVar, Literal

from veil.checks.streams import StreamMatches


class StdoutMatches(StreamMatches):
    """See ``StreamMatches``."""

    name: ClassVar[str] = "stdout_matches"
    stream: ClassVar[Literal["stdout", "stderr"]] = "stdout"
