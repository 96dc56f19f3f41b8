"""Approvers that come with veil: a person at a terminal, and a list of answers for tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from veil.governed.approvals import Answer, Later, Question


def _visible(text: str) -> str:
    """One text as it cannot be mistaken for others: quoted, and everything that is no plain ASCII spelt out."""
    return ascii(text)


class Terminal:
    """Asks on the terminal of this process. Anything but ``y`` or ``yes`` is a denial; so is a missing terminal.

    Args:
        read: gives one line for a prompt. write: shows a line.
    """

    def __init__(self, read: Callable[[str], str] | None = None, write: Callable[[str], object] | None = None) -> None:
        self._read = read
        self._write = write

    def __call__(self, question: Question) -> Answer:
        """Show everything that the approval would be bound to, and ask."""
        if self._read is None and not sys.stdin.isatty():
            return Answer(False, by="terminal", reason="there is no terminal to ask on")
        read = self._read or input
        write = self._write or sys.stderr.write
        lines = [f"argv[{at}]  {_visible(word)}" for at, word in enumerate(question.argv)]
        lines += [f"program  {_visible(question.executable)}", f"cwd      {_visible(question.cwd)}"]
        lines += [
            f"timeout  {question.timeout:g} s",
            *(f"because  {_visible(reason)[1:-1]}" for reason in question.reasons),
        ]
        write("\n".join(lines) + "\n")
        try:
            said = read("Run this once? [y/N] ")
        except (EOFError, KeyboardInterrupt):
            said = ""
        return Answer(said.strip().lower() in ("y", "yes"), by="terminal", reason="denied at the terminal")


class Scripted:
    """Gives these answers one after the other, then denies. Keeps what it was asked.

    Attributes:
        questions: every question, in order.
    """

    def __init__(self, answers: Iterable[Answer | bool] = ()) -> None:
        self._answers = iter(answers)
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> Answer | bool:
        """The next answer."""
        self.questions.append(question)
        return next(self._answers, Answer(False, by="script", reason="no answer was left"))


def later(question: Question) -> Answer:
    """Nobody is asked now: the request is refused with ``approval_required``, and ``Boundary.approve`` may follow."""
    raise Later(question.id)
