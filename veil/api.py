"""The Python door: ``run``, ``arun``, and what was kept of earlier runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from veil import pipeline, wiring
from veil.asking.options import RunOptions
from veil.background import Handle, Logs, handle_of, kill, logs, start
from veil.detail import Detail, detail, runs
from veil.host.orders import Controls, Orders
from veil.model.command import Request
from veil.model.errors import BadInput, CommandFailed
from veil.result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Detail",
    "Handle",
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
    session, request, environment = _ask(command, options)
    record = pipeline.run(session.kit, request, environment, Controls(listener=_listener(options)))
    return _checked(Result(record), options)


def _ask(command: str | Sequence[str], options: Mapping[str, Any]) -> tuple[wiring.Session, Request, Mapping[str, str]]:
    environment = dict(os.environ)
    session = wiring.session(environment, options.get("project"))
    return session, session.request(command, options), environment


def _listener(options: Mapping[str, Any]) -> Any:
    listener = options.get("on_output")
    if listener is not None and not callable(listener):
        raise BadInput("on_output", listener, "a function of a stream's name and bytes")
    return listener


def _checked(result: Result, options: Mapping[str, Any]) -> Result:
    check = options.get("check")
    if check is not None and not isinstance(check, bool):
        raise BadInput("check", check, "True or False")
    if not check:
        return result
    wrong = []
    # an exit that was expected by name is no failure
    asked = any(judgement.check == "exit" for judgement in result.verdict.judgements)
    if not result.ok and not (asked and result.ended in ("exited", "signaled")):
        wrong.append(f"{result.ended} with {result.exit}" + (f" ({result.signal})" if result.signal else ""))
    wrong += [judgement.message for judgement in (*result.verdict.failed, *result.verdict.inconclusive)]
    if wrong:
        raise CommandFailed(
            f"{result.command}: {'; '.join(wrong)} [{result.id}]", result, id=result.id, exit=result.exit
        )
    return result


async def arun(command: str | Sequence[str], **options: Unpack[RunOptions]) -> Result:
    """``run`` for asyncio, with the same keywords. Cancelling the task ends the whole tree before it returns.

    The run has a thread of its own, so the number of runs at a time is bounded by nothing but the machine.
    ``on_output`` is called on that thread.
    """
    import asyncio

    session, request, environment = _ask(command, options)
    orders = Orders()
    controls = Controls(listener=_listener(options), orders=orders)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if not done.done():
            if error is None:
                done.set_result(value)
            else:
                done.set_exception(error)

    def work() -> None:
        try:
            outcome, error = pipeline.run(session.kit, request, environment, controls), None
        except BaseException as caught:  # raised again where the task awaits it
            outcome, error = None, caught
        finally:
            orders.close()
        loop.call_soon_threadsafe(settle, outcome, error)

    thread = threading.Thread(target=work, name="veil-run", daemon=True)
    thread.start()
    try:
        record = await asyncio.shield(done)
    except asyncio.CancelledError:
        orders.cancel()
        while not done.done():
            try:
                await asyncio.shield(done)
            except asyncio.CancelledError:
                continue  # cancelled again: the tree still has to be gone first
            except BaseException:
                break
        raise
    return _checked(Result(record), options)
