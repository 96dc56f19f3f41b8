"""Checks on how the command ended that the dict form has no word for."""

from __future__ import annotations

import signal as signals
from typing import TYPE_CHECKING

from pytest_veil.expecting.failures import Finding
from veil import BadInput, Judgement

if TYPE_CHECKING:
    from veil import Result


def how(result: Result) -> str:
    """How the command ended, in a few words."""
    outcome = result.record.observation.outcome
    if outcome.ended == "timed_out":
        return f"timed out (exit {outcome.exit})"
    if outcome.ended == "spawn_failed":
        return f"could not start (exit {outcome.exit}): {outcome.spawn_error or 'no reason given'}"
    if outcome.ended == "signaled":
        return f"ended by {outcome.signal or 'a signal'} (exit {outcome.exit})"
    return f"exit {outcome.exit}"


def timed_out(result: Result) -> Finding:
    if result.timed_out:
        return Finding(Judgement("timed_out", "passed", True, result.ended, f"it {how(result)}"))
    return Finding(Judgement("timed_out", "failed", True, result.ended, f"it did not time out: {how(result)}"))


def failed(result: Result) -> Finding:
    if result.ok:
        return Finding(Judgement("failed", "failed", True, result.exit, "exit is 0, expected a failure"))
    return Finding(Judgement("failed", "passed", True, result.exit, f"it failed: {how(result)}"))


def signal_name(value: str | int | None) -> str | None:
    """``SIGSEGV`` for ``"SIGSEGV"``, ``"segv"``, ``11`` or ``signal.SIGSEGV``. Raises ``BadInput``."""
    wanted = "the name or number of a signal, such as 'SIGSEGV'"
    if value is None:
        return None
    if isinstance(value, str):
        name = value.upper()
        name = name if name.startswith("SIG") else f"SIG{name}"
        if name in signals.Signals.__members__:
            return signals.Signals[name].name  # the usual one of two names for a number
    elif not isinstance(value, bool):
        try:
            return signals.Signals(value).name
        except ValueError:
            raise BadInput("signaled", value, wanted) from None
    raise BadInput("signaled", value, wanted)


def signaled(result: Result, name: str | None) -> Finding:
    words = how(result)
    if result.ended != "signaled":
        hint = ""
        if result.ended == "exited" and result.exit > 128:
            hint = " (what a shell answers when its own child died by a signal)"
        wanted = name or "a signal"
        message = f"expected an end by {wanted}, got {words}{hint}"
        return Finding(Judgement("signaled", "failed", name, result.ended, message))
    if name is not None and result.signal is None:
        return Finding(Judgement("signaled", "inconclusive", name, None, f"{words}; which one is not known"))
    if name in (None, result.signal):
        return Finding(Judgement("signaled", "passed", name, result.signal, words))
    return Finding(Judgement("signaled", "failed", name, result.signal, f"expected an end by {name}, got {words}"))


def left_nothing_running(result: Result) -> Finding:
    left, survivors = result.left_running, result.survivors
    if left or survivors == "kept":
        processes = "1 process" if left == 1 else f"{left} processes"
        what = f"{processes} left running when the command had ended" if left else "what it left was kept running"
        fate = {"none": ", ended by veil", "kept": ", kept on purpose"}.get(survivors, ", may still run")
        return Finding(Judgement("left_nothing_running", "failed", 0, left, what + (fate if left else "")))
    if survivors == "unknown":
        message = "this platform cannot tell whether processes were left running"
        return Finding(Judgement("left_nothing_running", "inconclusive", 0, None, message))
    return Finding(Judgement("left_nothing_running", "passed", 0, 0, "nothing was left running"))


def assert_ok(result: Result) -> list[Finding]:
    """The post-conditions that the run itself was given."""
    verdict = result.verdict
    if not verdict.judgements:
        message = "the run was given no post-conditions (expect={...})"
        return [Finding(Judgement("assert_ok", "inconclusive", True, None, message))]
    if verdict.ok:
        many = len(verdict.judgements)
        words = "the post-condition of the run holds" if many == 1 else f"all {many} post-conditions of the run hold"
        return [Finding(Judgement("assert_ok", "passed", True, True, words))]
    return [Finding(each) for each in (*verdict.failed, *verdict.inconclusive)]
