"""The three questions that can be put to a stream. A check on one stream is a subclass that names it."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal

from veil.checks import patterns
from veil.checks.values import each, flag, one_or_many, text_of
from veil.checks.wording import clipped, gap, listed, nearest_line, shown
from veil.model.outcome import Observation, Stream
from veil.model.verdict import Judgement


class StreamCheck:
    """What they share: the stream judged is the last attempt's, all of it that was kept, never a condensed view.

    With ``merge_stderr`` everything lands in stdout and stderr is empty.
    """

    name: ClassVar[str]
    stream: ClassVar[Literal["stdout", "stderr"]]

    def paths(self, expected: Any) -> tuple[str, ...]:
        """None: a stream is in the observation already."""
        return ()

    def _stream(self, seen: Observation) -> Stream:
        found: Stream = getattr(seen.outcome, self.stream)
        return found

    def _got(self, stream: Stream, wanted: str) -> tuple[str, str]:
        """An excerpt for ``got``, and the words for the message."""
        if not stream.total_bytes:
            return "", f"{self.stream} is empty"
        line = nearest_line(stream, wanted)
        if not line:
            return f"{stream.total_bytes} bytes", f"{self.stream} is {stream.total_bytes} bytes without a line of text"
        return clipped(line), f"nearest line: {shown(line)}"


class StreamContains(StreamCheck):
    """The text stands in the stream, byte for byte (case, spaces, line ends and terminal escapes included).

    A list means all of them. On a truncated stream a text that was found is there; one that was not found may be in the
    bytes that were dropped, or across the gap, so the answer is ``inconclusive``.
    """

    def parse(self, value: Any) -> Any:
        """A text, or a list of texts. Raises ``BadInput`` (an empty text would be in everything)."""
        return one_or_many(f"expect.{self.name}", value, "a text that is not empty, or a list of such", text_of)

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """Searches the kept bytes; head and tail apart, so nothing is found across a gap."""
        stream = self._stream(seen)
        missing = [text for text in each(expected) if not _holds(stream, text)]
        if not missing:
            return Judgement(self.name, "passed", expected, None, f"{self.stream} contains {listed(each(expected))}")
        if stream.truncated:
            why = f"{listed(missing)} is not in what was kept, and {gap(self.stream, stream)}"
            return Judgement(self.name, "inconclusive", expected, None, why)
        got, words = self._got(stream, missing[0])
        hint = _near_miss(stream, missing[0])
        return Judgement(
            self.name, "failed", expected, got, f"{self.stream} does not contain {listed(missing)}{hint}; {words}"
        )


class StreamMatches(StreamCheck):
    """The pattern is found in the text of the stream (see ``veil.checks.patterns`` for its syntax and limits).

    A list means all of them. Bytes that are not UTF-8 are seen as U+FFFD. On a truncated stream a match that touches
    nothing near the gap holds; anything else is ``inconclusive``, and so is a search that took too long.
    """

    def parse(self, value: Any) -> Any:
        """A pattern, or a list of patterns. Raises ``BadInput`` with the position of what is wrong in it."""
        argument = f"expect.{self.name}"
        found = one_or_many(argument, value, "a pattern that is not empty, or a list of such", text_of)
        for pattern in each(found):
            patterns.parsed(argument, pattern)
        return found

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """All patterns together get ``patterns.SECONDS``."""
        stream = self._stream(seen)
        until = time.monotonic() + patterns.SECONDS
        answers = {pattern: patterns.find(pattern, stream, until) for pattern in each(expected)}
        missing = [pattern for pattern, answer in answers.items() if answer == "missing"]
        slow = [pattern for pattern, answer in answers.items() if answer == "slow"]
        unknown = [pattern for pattern, answer in answers.items() if answer == "unknown"]
        if missing:
            got, words = self._got(stream, missing[0])
            return Judgement(
                self.name, "failed", expected, got, f"{self.stream} does not match {listed(missing)}; {words}"
            )
        if slow:
            why = f"the time limit of {patterns.SECONDS:g} s for patterns was reached at {listed(slow)}"
            return Judgement(self.name, "inconclusive", expected, None, why)
        if unknown:
            reason = gap(self.stream, stream) if stream.truncated else "the search broke off"
            why = f"no certain match of {listed(unknown)}: {reason}"
            return Judgement(self.name, "inconclusive", expected, None, why)
        return Judgement(self.name, "passed", expected, None, f"{self.stream} matches {listed(each(expected))}")


class StreamEmpty(StreamCheck):
    """``True``: the command wrote not one byte to the stream. ``False``: it wrote something (a newline is something).

    Judged by the true total, so a truncated stream is judged as surely as any other.
    """

    def parse(self, value: Any) -> Any:
        """A bool. Raises ``BadInput``."""
        return flag(f"expect.{self.name}", value, "True (nothing may be written) or False (something must be)")

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """Never inconclusive."""
        stream = self._stream(seen)
        total = stream.total_bytes
        status: Literal["passed", "failed"] = "passed" if (total == 0) is expected else "failed"
        if not total:
            words = f"{self.stream} is empty" if expected else f"{self.stream} is empty, something was expected"
            return Judgement(self.name, status, expected, "", words)
        line = nearest_line(stream, "")
        words = f"{self.stream} holds {total} bytes" + (f", last line: {shown(line)}" if line else "")
        return Judgement(self.name, status, expected, clipped(line) or f"{total} bytes", words)


def _holds(stream: Stream, text: str) -> bool:
    needle = text.encode("utf-8", "surrogateescape")
    if stream.truncated:
        return needle in stream.head or needle in stream.tail
    return needle in stream.data


def _near_miss(stream: Stream, text: str) -> str:
    """What stands between the text and the stream, where that is cheap to see."""
    whole = stream.text
    if text.casefold() in whole.casefold():
        return " (it does in another case)"
    if "\n" in text and text.replace("\r\n", "\n") in whole.replace("\r\n", "\n"):
        return " (it does with other line ends)"
    return ""
