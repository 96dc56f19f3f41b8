"""The Python door: ``run``, ``arun``, ``start`` of this process, and what was kept of earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from veil.asking.options import RunOptions
from veil.background import Handle, Killed, Logs
from veil.by_id import handle_of, kill, logs
from veil.details import Detail, detail, runs
from veil.result import Result
from veil.runner import Runner

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Detail",
    "Handle",
    "Killed",
    "Logs",
    "RunOptions",
    "arun",
    "detail",
    "handle_of",
    "kill",
    "logs",
    "run",
    "runs",
    "start",
]

_runner = Runner()


def run(command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
    """Run one command to its end.

    Args:
        command: a shell text (read by bash where there is one), or an argv (no shell; never joined into a text).
        options: see ``RunOptions``: cwd, timeout (s), env, stdin, expect, retries, retry_on_exit, backoff (s), full,
            effects, no_store, scrub_env, redact, secrets, check, merge_stderr, on_output, shell, max_output (bytes),
            contain, left_running, project.

    Returns:
        The run as data, also when the command failed, timed out or could not start. Nothing of it is alive then
        (``survivors`` says where that cannot be known).

    Raises:
        BadInput: an argument that cannot mean anything; names it, what came and what was expected.
        Refused: something asked for cannot be granted here.
        CommandFailed: only with ``check=True``.
    """
    return _runner.run(command, options)


async def arun(command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
    """``run`` for asyncio, with the same keywords. Cancelling the task ends the whole tree before it returns.

    The run has a thread of its own, so the number of runs at a time is bounded by nothing but the machine.
    ``on_output`` is called on that thread.
    """
    return await _runner.arun(command, options)


def start(command: str | Sequence[str], **options: Unpack[RunOptions]) -> Handle:
    """Start a long-running command and return at once.

    Options that need the command to end (expect, retries, retry_on_exit, backoff, full, timeout, check) are refused by
    name (``Refused``, code ``background_incompatible``).

    Raises:
        BadInput, Refused: as ``run``; also code ``too_many_background`` when ``VEIL_MAX_BG_PROCS`` are alive.
    """
    return _runner.start(command, options)
