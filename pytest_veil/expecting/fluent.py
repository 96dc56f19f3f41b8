"""``expect(result)``: checks that read as a sentence. Each returns the expectation, so that they chain."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pytest_veil.expecting import contents, effects, endings, files
from pytest_veil.expecting.aspects import FileExpectation, StreamExpectation
from pytest_veil.expecting.failures import Failure, Finding, call_text
from pytest_veil.expecting.seams import heard
from pytest_veil.expecting.soft import Soft, settle
from veil import BadInput, Refused

if TYPE_CHECKING:
    import signal

    from veil import Result

    PathOrGlob = str | os.PathLike[str]

#: How a check begins that must not hold.
NOT = "not_."


class Expectation:
    """Checks on one run. A failed one raises ``ExpectationError``; within ``expect.all()`` it is collected.

    Several arguments are several checks: ``created("a", "b")`` wants both, ``not_.created("a", "b")`` neither. What
    cannot be known (a truncated stream, effects that nobody looked for) fails, also after ``not_``. An argument that
    cannot mean anything raises ``veil.BadInput``.
    """

    def __init__(self, result: Result, *, _positive: Expectation | None = None) -> None:
        self._result = result
        self._positive = _positive

    def __repr__(self) -> str:
        return f"expect({self._result!r}){'.not_' if self._positive is not None else ''}"

    @property
    def result(self) -> Result:
        """The run that is judged."""
        return self._result

    @property
    def not_(self) -> Expectation:
        """The next check must not hold; the one after it must again."""
        return Expectation(self._result, _positive=self) if self._positive is None else self._positive

    @property
    def stdout(self) -> StreamExpectation:
        """Checks on stdout, all of it that was kept, never the condensed view."""
        return StreamExpectation(self, "stdout")

    @property
    def stderr(self) -> StreamExpectation:
        """Checks on stderr, all of it that was kept."""
        return StreamExpectation(self, "stderr")

    def file(self, path: str | os.PathLike[str]) -> FileExpectation:
        """Checks on a path, relative to the run's working directory: what is there now, when the check is made.

        Raises ``veil.Refused`` (code ``previewed``) for a run that only previewed its changes.
        """
        return FileExpectation(self, files.path_of(path))

    def exit(self, *codes: int) -> Expectation:
        """The exit code is this one, or any of several."""
        __tracebackhide__ = True
        if not codes:
            raise BadInput("exit", codes, "at least one exit code")
        return self._check(
            call_text("exit", *codes), lambda: [self._judged("exit", codes[0] if len(codes) == 1 else list(codes))]
        )

    def ok(self) -> Expectation:
        """It exited with 0."""
        __tracebackhide__ = True
        return self._check("ok()", lambda: [self._judged("exit", 0)])

    def failed(self) -> Expectation:
        """It ended in any other way than by exit 0: another code, a signal, a timeout, or it could not start."""
        __tracebackhide__ = True
        return self._check("failed()", lambda: [endings.failed(self._result)])

    def timed_out(self) -> Expectation:
        """It was ended at its time limit (an exit code of 124 alone is not that)."""
        __tracebackhide__ = True
        return self._check("timed_out()", lambda: [endings.timed_out(self._result)])

    def signaled(self, signal: str | int | signal.Signals | None = None) -> Expectation:
        """A signal ended it: this one (``"SIGSEGV"``, ``11``), or any."""
        __tracebackhide__ = True
        said = () if signal is None else (signal,)
        return self._check(
            call_text("signaled", *said), lambda: [endings.signaled(self._result, endings.signal_name(signal))]
        )

    def within(self, *, ms: float) -> Expectation:
        """The last attempt took at most this many milliseconds."""
        __tracebackhide__ = True
        return self._check(call_text("within", ms=ms), lambda: [self._judged("max_ms", ms)])

    def json(self, subset: Any) -> Expectation:
        """stdout is one JSON document that holds at least this (arrays: same length and order)."""
        __tracebackhide__ = True
        return self._check(call_text("json", subset), lambda: [self._judged("json", subset)])

    def created(self, *paths: PathOrGlob) -> Expectation:
        """Each glob matches a file that the run created. Text is a glob, a path object is taken literally."""
        __tracebackhide__ = True
        return self._happened("created", paths)

    def modified(self, *paths: PathOrGlob) -> Expectation:
        """Each glob matches a file whose content the run changed."""
        __tracebackhide__ = True
        return self._happened("modified", paths)

    def deleted(self, *paths: PathOrGlob) -> Expectation:
        """Each glob matches a file that the run deleted (a renamed one is not)."""
        __tracebackhide__ = True
        return self._happened("deleted", paths)

    def renamed(self, old: PathOrGlob, new: PathOrGlob) -> Expectation:
        """The run renamed a file from a name that ``old`` matches to one that ``new`` matches."""
        __tracebackhide__ = True
        return self._check(call_text("renamed", old, new), lambda: [effects.renamed(self._result, old, new)])

    def changed_nothing(self) -> Expectation:
        """No file changed."""
        __tracebackhide__ = True
        return self._check("changed_nothing()", lambda: [effects.changed_nothing(self._result)])

    def changed_only(self, *globs: PathOrGlob) -> Expectation:
        """Every file that changed, if any did, is matched by one of the globs."""
        __tracebackhide__ = True
        return self._check(call_text("changed_only", *globs), lambda: [effects.changed_only(self._result, globs)])

    def assert_ok(self) -> Expectation:
        """All post-conditions that the run was given (``expect={...}``) hold."""
        __tracebackhide__ = True
        return self._check("assert_ok()", lambda: endings.assert_ok(self._result), together=True)

    def left_nothing_running(self) -> Expectation:
        """When the command itself had ended, nothing that it started was still running."""
        __tracebackhide__ = True
        return self._check("left_nothing_running()", lambda: [endings.left_nothing_running(self._result)])

    def _happened(self, word: effects.Word, paths: tuple[PathOrGlob, ...]) -> Expectation:
        __tracebackhide__ = True
        if not paths:
            raise BadInput(word, paths, "at least one path or glob")
        return self._check(
            call_text(word, *paths), lambda: [effects.happened(self._result, word, path) for path in paths]
        )

    def _judged(self, check: str, expected: Any) -> Finding:
        return contents.judged(self._result, check, expected)

    def _check(self, call: str, ask: Callable[[], Iterable[Finding]], *, together: bool = False) -> Expectation:
        """``together``: the findings are parts of one check, so after ``not_`` one that failed is enough."""
        __tracebackhide__ = True
        negated = self._positive is not None
        try:
            found = list(ask())
        except (BadInput, Refused) as wrong_question:
            # the caller's line is what matters, not ours that noticed it
            raise wrong_question.with_traceback(None) from None
        wanted = "failed" if negated else "passed"
        wrong = [each for each in found if each.judgement.status != wanted]
        if together and negated and any(each.judgement.status == "failed" for each in found):
            wrong = []
        call = (NOT if negated else "") + call
        for each in found:
            heard(self._result, call, each.judgement, each not in wrong)
        error = settle([Failure(self._result, call, negated, each.judgement, each.detail) for each in wrong])
        if error is not None:
            raise error
        return self if self._positive is None else self._positive


class Expect:
    """``expect``: ``expect(result)`` begins a sentence, ``with expect.all():`` collects what fails."""

    def __call__(self, result: Result) -> Expectation:
        """Checks on one run. Raises ``BadInput`` for anything else."""
        __tracebackhide__ = True
        from veil import Result

        if not isinstance(result, Result):
            raise BadInput("expect", result, "the result of a run (of veil.run, veil_run, handle.wait())")
        return Expectation(result)

    def all(self) -> Soft:
        """A block in which failures are collected; its end raises one error that lists all of them."""
        return Soft()
