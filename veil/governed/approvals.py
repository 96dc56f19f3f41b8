"""Approvals: bound to one exact request, good for one run, gone when they are old."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from veil.model.errors import BadInput, NotFound

#: Seconds that an approval is good for unless whoever gives it says otherwise.
EXPIRES = 300.0
#: Questions kept that nobody has answered.
_PENDING = 256


@dataclass(frozen=True)
class Question:
    """What somebody is asked to approve.

    Attributes:
        id: of the approval that may come of it. request: id of the request.
        argv: exactly what would run, a tuple of words: never to be shown joined without quoting.
        cwd: absolute. timeout: seconds. environment: hash of the environment.
        executable: absolute path. digest: hash of that file.
        reasons: why it is asked, one line each. rules: ids of the rules that ask.
        binding: hash of all of it, and of every program that is seen behind the first one.
    """

    id: str
    request: str
    argv: tuple[str, ...]
    cwd: str
    timeout: float
    environment: str
    executable: str
    digest: str
    reasons: tuple[str, ...]
    rules: tuple[str, ...]
    binding: str

    def to_dict(self) -> dict[str, Any]:
        """The JSON view."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Answer:
    """What an approver says.

    Attributes:
        approved: run it, or not.
        by: who said so, for the audit. reason: said to whoever is denied.
        expires: seconds from now on.
        remember: also approve later requests that are the same to the letter (only where the host allows it).
    """

    approved: bool
    by: str = ""
    reason: str = ""
    expires: float = EXPIRES
    remember: bool = False


class Approver(Protocol):
    """Asks somebody. ``True`` and ``False`` will do; an exception denies."""

    def __call__(self, question: Question) -> Answer | bool:
        """The answer, now. Raise ``Later`` when it comes by ``Boundary.approve``."""


class Later(Exception):
    """Raised by an approver that has passed the question on: the request is refused with ``approval_required``."""


@dataclass
class _Given:
    question: Question
    answer: Answer
    until: float


@dataclass
class Approvals:
    """The approvals of one boundary. Safe to use from several threads.

    Args:
        clock: seconds that never go back.
    """

    clock: Callable[[], float] = time.monotonic
    _asked: dict[str, Question] = field(default_factory=dict)
    _given: dict[str, list[_Given]] = field(default_factory=dict)
    _kept: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def new_id() -> str:
        """A fresh id that nobody can guess."""
        return "ask-" + os.urandom(8).hex()

    def ask(self, question: Question) -> None:
        """Keep a question until it is answered; the oldest ones go."""
        with self._lock:
            self._asked[question.id] = question
            while len(self._asked) > _PENDING:
                del self._asked[next(iter(self._asked))]

    def pending(self) -> tuple[Question, ...]:
        """The questions that nobody has answered, oldest first."""
        with self._lock:
            return tuple(self._asked.values())

    def answered(self, id: str) -> Question:
        """Take a question off the list. Raises ``NotFound``."""
        with self._lock:
            question = self._asked.pop(id, None)
            if question is None:
                raise NotFound(f"the question {id}", list(self._asked)[::-1][:20])
            return question

    def give(self, question: Question, answer: Answer, *, keep: bool = False) -> None:
        """Note an approval. ``keep``: as good for every later request that is the same.

        Raises ``BadInput`` for seconds that are no time to come.
        """
        seconds = answer.expires
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= 86_400 * 365:
            raise BadInput("expires", seconds, "seconds greater than 0, at most a year")
        with self._lock:
            if keep:
                self._kept[question.binding] = question.id
            self._given.setdefault(question.binding, []).append(_Given(question, answer, self.clock() + seconds))

    def has(self, binding: str) -> bool:
        """Whether there is an approval for exactly this that has not expired."""
        with self._lock:
            self._forget(binding)
            return binding in self._kept or bool(self._given.get(binding))

    def take(self, binding: str) -> str | None:
        """Use up one approval for exactly this: its id, or ``None``. Nobody else gets it, whatever the run comes to."""
        with self._lock:
            self._forget(binding)
            given = self._given.get(binding)
            if given:
                return given.pop(0).question.id
            return self._kept.get(binding)

    def _forget(self, binding: str) -> None:
        now = self.clock()
        left = [one for one in self._given.get(binding, ()) if one.until > now]
        if left:
            self._given[binding] = left
        else:
            self._given.pop(binding, None)
